//! Theoretical occupancy: how many of the warps that a multiprocessor has room for a kernel can have there at a time, by what each
//! of its blocks takes.
//!
//! Owns the limits of a device and how a kernel fits into them. What CUPTI says of a device are its limits; in which pieces registers and
//! shared memory are given, and how much of the latter CUDA keeps for itself, is that of NVIDIA's occupancy calculator by compute
//! capability, 7.0 to 12.x. That shared memory can have all the room that the device has for it is assumed, as there. How many warps
//! really ran is not known here.

use super::total::Total;
use crate::activity::shared::{ACTIVITY_DEVICE, ActivityRecord};

const WARP_THREADS: u64 = 32;
const MOST_THREADS: u64 = 1024;
/// Registers are given to a warp in pieces of so many, by one of so many parts of a multiprocessor.
const REGISTER_PIECE: u64 = 256;
const PARTS: u64 = 4;
/// Compute capabilities whose pieces are known, by their first number.
const KNOWN: std::ops::RangeInclusive<u32> = 7..=12;
/// No device has more of anything that its multiprocessors have.
const MOST: u32 = 1 << 24;
/// In what shares are counted.
const WHOLE: u64 = 10_000;

/// What the multiprocessors of a device have room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub multiprocessors: u64,
    /// Of one multiprocessor.
    pub warps: u64,
    pub blocks: u64,
    pub registers: u64,
    pub shared_bytes: u64,
    /// The first number of its compute capability.
    pub major: u32,
}

/// What keeps a kernel from having more warps at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LimitedBy {
    Registers,
    SharedMemory,
    /// Of blocks of this size no more fit, whatever else they take.
    BlockSize,
    /// It has fewer blocks than would fit on all multiprocessors.
    Grid,
}

impl LimitedBy {
    const ALL: [LimitedBy; 4] = [
        LimitedBy::Registers,
        LimitedBy::SharedMemory,
        LimitedBy::BlockSize,
        LimitedBy::Grid,
    ];

    /// As outputs have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            LimitedBy::Registers => "registers",
            LimitedBy::SharedMemory => "shared memory",
            LimitedBy::BlockSize => "block size",
            LimitedBy::Grid => "grid",
        }
    }
}

/// What a launch of a kernel takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    pub blocks: u64,
    pub threads: u64,
    pub registers: u16,
    /// Of shared memory, static and dynamic.
    pub shared_bytes: u64,
}

impl Shape {
    /// Of so many blocks and threads along each axis.
    #[must_use]
    pub(crate) fn new(grid: [u32; 3], block: [u32; 3], registers: u16, shared_bytes: u64) -> Shape {
        let product = |axes: [u32; 3]| axes.iter().fold(1u64, |all, axis| all.saturating_mul(u64::from(*axis)));
        Shape {
            blocks: product(grid),
            threads: product(block),
            registers,
            shared_bytes,
        }
    }
}

/// At most so much of a device's warps, of 10,000, on average over its multiprocessors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Occupancy {
    pub of_whole: u64,
    /// `None`: nothing, it is full.
    pub limited_by: Option<LimitedBy>,
}

impl Limits {
    /// What CUPTI says of a device; `None`: that is no device, or one that is not known here.
    #[must_use]
    pub fn of(record: &ActivityRecord) -> Option<Limits> {
        let [warps, blocks, registers] = record.grid;
        let [shared_bytes, major, _] = record.block;
        let makes_sense = [warps, blocks, registers, shared_bytes]
            .iter()
            .all(|number| (1..=MOST).contains(number));
        let is_known = record.kind == ACTIVITY_DEVICE && KNOWN.contains(&major) && record.bytes > 0;
        (makes_sense && is_known).then_some(Limits {
            multiprocessors: record.bytes,
            warps: warps.into(),
            blocks: blocks.into(),
            registers: registers.into(),
            shared_bytes: shared_bytes.into(),
            major,
        })
    }

    /// Shared memory that a block takes, with what CUDA keeps for itself.
    fn shared_of(&self, shape: &Shape) -> u64 {
        let (piece, kept) = if self.major < 8 { (256, 0) } else { (128, 1024) };
        shape
            .shared_bytes
            .saturating_add(kept)
            .div_ceil(piece)
            .saturating_mul(piece)
    }

    /// How a kernel fits; `None`: not at all, so that these are not its device's limits.
    #[must_use]
    pub(crate) fn occupancy(&self, shape: &Shape) -> Option<Occupancy> {
        if shape.blocks == 0 || !(1..=MOST_THREADS).contains(&shape.threads) {
            return None;
        }
        let warps = shape.threads.div_ceil(WARP_THREADS);
        let of_warp = (u64::from(shape.registers).max(1) * WARP_THREADS).next_multiple_of(REGISTER_PIECE);
        let by_registers = self.registers / PARTS / of_warp * PARTS / warps;
        let by_shared = self.shared_bytes.checked_div(self.shared_of(shape)).unwrap_or(u64::MAX);
        let by_size = self.blocks.min(self.warps / warps);
        let resident = by_registers.min(by_shared).min(by_size);
        let on_all = resident.saturating_mul(self.multiprocessors);
        let limited_by = match resident {
            0 => return None,
            _ if shape.blocks < on_all => Some(LimitedBy::Grid),
            _ if resident * warps == self.warps => None,
            _ if resident == by_size => Some(LimitedBy::BlockSize),
            _ if resident == by_registers => Some(LimitedBy::Registers),
            _ => Some(LimitedBy::SharedMemory),
        };
        let room = u128::from(self.warps) * u128::from(self.multiprocessors);
        let taken = u128::from(shape.blocks.min(on_all)) * u128::from(warps);
        Some(Occupancy {
            of_whole: (taken * u128::from(WHOLE) / room) as u64,
            limited_by,
        })
    }
}

/// The occupancy of the runs of a kernel, each by its time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Occupied {
    known_ns: u64,
    weighted: u128,
    /// Time by what limited it.
    limited_ns: [u64; LimitedBy::ALL.len()],
}

impl Occupied {
    /// It ran.
    pub(super) fn add(&mut self, ns: u64, occupancy: Occupancy) {
        self.known_ns = self.known_ns.saturating_add(ns);
        self.weighted += u128::from(ns) * u128::from(occupancy.of_whole);
        if let Some(limit) = occupancy.limited_by {
            let sum = &mut self.limited_ns[limit as usize];
            *sum = sum.saturating_add(ns);
        }
    }

    /// Of a whole; `None`: it is not known of at least half of the kernel's time.
    #[must_use]
    pub fn share(&self, total: &Total) -> Option<f64> {
        let is_known = self.known_ns > 0 && self.known_ns >= total.ns / 2;
        is_known.then(|| self.weighted as f64 / self.known_ns as f64 / WHOLE as f64)
    }

    /// What limited it for most of that time; `None`: nothing.
    #[must_use]
    pub fn limited_by(&self) -> Option<LimitedBy> {
        let limited: u64 = self.limited_ns.iter().fold(0, |all, ns| all.saturating_add(*ns));
        let most = LimitedBy::ALL
            .iter()
            .max_by_key(|limit| self.limited_ns[**limit as usize]);
        most.copied().filter(|_| limited > self.known_ns / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An A100: compute capability 8.0.
    const A100: Limits = Limits {
        multiprocessors: 108,
        warps: 64,
        blocks: 32,
        registers: 65_536,
        shared_bytes: 164 << 10,
        major: 8,
    };
    /// An H100: 9.0.
    const H100: Limits = Limits {
        multiprocessors: 132,
        shared_bytes: 228 << 10,
        major: 9,
        ..A100
    };

    fn shape(threads: u64, registers: u16, shared_bytes: u64) -> Shape {
        Shape {
            blocks: 1 << 20,
            threads,
            registers,
            shared_bytes,
        }
    }

    #[track_caller]
    fn is(limits: Limits, shape: Shape, of_whole: u64, limited_by: Option<LimitedBy>) {
        let occupancy = Occupancy { of_whole, limited_by };
        assert_eq!(limits.occupancy(&shape), Some(occupancy), "{shape:?}");
    }

    #[test]
    fn a_kernel_that_takes_little_fills_a_multiprocessor() {
        is(A100, shape(256, 32, 0), 10_000, None);
        is(H100, shape(1024, 32, 0), 10_000, None);
        // 8 blocks with 19 KiB, and 1 KiB that CUDA keeps, are 160 KiB of 164
        is(A100, shape(256, 32, 19 << 10), 10_000, None);
    }

    #[test]
    fn registers_are_given_to_a_warp_in_pieces_of_256_by_a_quarter_of_a_multiprocessor() {
        // 64 x 32 = 2,048 of a quarter's 16,384: 8 warps each, 32 of 64
        is(A100, shape(256, 64, 0), 5_000, Some(LimitedBy::Registers));
        // 33 x 32 = 1,056, so 1,280: 12 warps each, 48 of 64
        is(H100, shape(128, 33, 0), 7_500, Some(LimitedBy::Registers));
        // 168 x 32 = 5,376: 3 warps each, 12 in all: 1 block of 12 warps
        is(H100, shape(384, 168, 0), 1_875, Some(LimitedBy::Registers));
        // 255 x 32 = 8,160, so 8,192: 2 each
        is(A100, shape(128, 255, 0), 1_250, Some(LimitedBy::Registers));
    }

    #[test]
    fn shared_memory_is_given_in_pieces_of_128_bytes_beside_a_kibibyte_that_cuda_keeps() {
        // 49 KiB: 3 blocks of 8 warps in 164 KiB, 4 in 228 KiB
        is(A100, shape(256, 32, 48 << 10), 3_750, Some(LimitedBy::SharedMemory));
        is(H100, shape(256, 32, 48 << 10), 5_000, Some(LimitedBy::SharedMemory));
        // 227 KiB, the most that a block may have, fill the multiprocessor
        is(H100, shape(128, 32, 227 << 10), 625, Some(LimitedBy::SharedMemory));
        // a byte more than 81 KiB no longer fits twice into 164 KiB
        is(A100, shape(512, 32, 81 << 10), 5_000, Some(LimitedBy::SharedMemory));
        is(
            A100,
            shape(512, 32, (81 << 10) + 1),
            2_500,
            Some(LimitedBy::SharedMemory),
        );
    }

    #[test]
    fn blocks_of_a_bad_size_leave_room() {
        // 32 blocks of one warp
        is(A100, shape(32, 16, 0), 5_000, Some(LimitedBy::BlockSize));
        // 2 blocks of 24 warps
        is(H100, shape(768, 32, 0), 7_500, Some(LimitedBy::BlockSize));
        // a 33rd thread takes a second warp
        is(A100, shape(33, 16, 0), 10_000, None);
    }

    #[test]
    fn a_grid_with_fewer_blocks_than_fit_leaves_multiprocessors_empty() {
        let few = |blocks| Shape {
            blocks,
            ..shape(256, 32, 0)
        };
        // 132 multiprocessors have room for 8 blocks each
        is(H100, few(132), 1_250, Some(LimitedBy::Grid));
        is(H100, few(132 * 8 - 1), 9_990, Some(LimitedBy::Grid));
        is(H100, few(132 * 8), 10_000, None);
    }

    #[test]
    fn what_cannot_run_on_such_a_device_has_none() {
        for unfit in [
            shape(0, 32, 0),
            shape(1025, 32, 0),
            shape(32, 32, 229 << 10),
            shape(1024, 128, 0),
        ] {
            assert_eq!(H100.occupancy(&unfit), None, "{unfit:?}");
        }
    }

    #[test]
    fn limits_are_those_of_devices_that_are_known() {
        let record = ActivityRecord {
            kind: ACTIVITY_DEVICE,
            bytes: 132,
            grid: [64, 32, 65_536],
            block: [228 << 10, 9, 0],
            ..ActivityRecord::default()
        };
        assert_eq!(Limits::of(&record), Some(H100));
        let of = |grid, block| Limits::of(&ActivityRecord { grid, block, ..record });
        assert_eq!(of([64, 32, 65_536], [228 << 10, 13, 0]), None, "a newer one");
        assert_eq!(of([64, 0, 65_536], [228 << 10, 9, 0]), None);
        assert_eq!(of([64, 32, u32::MAX], [228 << 10, 9, 0]), None);
    }

    #[test]
    fn runs_count_by_their_time_and_what_is_mostly_unknown_is_not_said() {
        let mut occupied = Occupied::default();
        let of = |of_whole, limited_by| Occupancy { of_whole, limited_by };
        occupied.add(300, of(2_500, Some(LimitedBy::Registers)));
        occupied.add(100, of(10_000, None));
        let total = |ns| Total { ns, ..Total::default() };
        assert_eq!(occupied.share(&total(400)), Some(0.4375));
        assert_eq!(occupied.limited_by(), Some(LimitedBy::Registers));
        assert_eq!(occupied.share(&total(900)), None);
        assert_eq!(Occupied::default().share(&total(0)), None);
    }

    proptest! {
        #[test]
        fn a_kernel_never_takes_more_than_there_is_and_more_of_anything_never_helps(
            blocks in 1u64..100_000, threads in 1u64..=1024, registers in 1u16..=255, shared_bytes in 0u64..240_000, major in 7u32..=12,
        ) {
            let limits = Limits { major, ..H100 };
            let of = |shape: Shape| limits.occupancy(&shape).map_or(0, |occupancy| occupancy.of_whole);
            let one = Shape { blocks, threads, registers, shared_bytes };
            let taken = of(one);
            prop_assert!(taken <= WHOLE);
            let more_registers = of(Shape { registers: registers + 1, ..one });
            let more_shared = of(Shape { shared_bytes: shared_bytes + 1, ..one });
            let more_blocks = of(Shape { blocks: blocks + 1, ..one });
            prop_assert!(more_registers <= taken && more_shared <= taken && taken <= more_blocks, "{}", taken);
        }

        #[test]
        fn no_numbers_of_a_device_or_kernel_break_it(
            grid in any::<[u32; 3]>(), block in any::<[u32; 3]>(), of in any::<[u32; 5]>(), bytes in any::<u64>(), registers in any::<u16>(),
        ) {
            let record = ActivityRecord {
                kind: ACTIVITY_DEVICE, bytes, grid: [of[0] >> 8, of[1] >> 8, of[2] >> 8], block: [of[3] >> 8, 7 + of[4] % 6, 0],
                ..ActivityRecord::default()
            };
            let shape = Shape::new(grid, block, registers, bytes);
            let small = Shape { threads: 1 + shape.threads % 1024, ..shape };
            for shape in [shape, small] {
                let share = Limits::of(&record).and_then(|limits| limits.occupancy(&shape));
                prop_assert!(share.is_none_or(|one| one.of_whole <= WHOLE));
            }
        }
    }
}
