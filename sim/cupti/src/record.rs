//! Records as CUPTI 13.0 lays them out.

use gpusim_common::MULTIPROCESSORS;

use crate::driver::Told;
use crate::faults;
use crate::store::interned;

pub const KERNEL: u32 = 10;
pub const MEMSET: u32 = 2;
pub const PEER_COPY: u32 = 22;
pub const OVERHEAD: u32 = 17;
pub const DEVICE: u32 = 8;
pub const GRAPH: u32 = 51;

/// What a multiprocessor has room for, by where it stands: warps, blocks, shared memory, registers; compute capability.
const H100: [(usize, u32); 6] = [(52, 64), (56, 32), (60, 228 << 10), (64, 65_536), (104, 9), (108, 0)];

pub const COPY: u32 = 1;

/// The kind by which it is asked for.
pub fn bytes_of(kind: u32) -> usize {
    match kind {
        KERNEL => 216,
        MEMSET => 88,
        OVERHEAD | GRAPH => 56,
        DEVICE => 184,
        _ => 96,
    }
}

/// Something that ran, with times of CUPTI's clock.
#[derive(Clone, Copy)]
pub struct Ran {
    pub told: Told,
    pub name: usize,
}

impl Ran {
    pub fn new(told: &Told) -> Ran {
        Ran {
            told: *told,
            name: interned(told.name),
        }
    }

    /// Whether faults of records may hit it.
    pub fn is_work(&self) -> bool {
        !matches!(self.told.kind, DEVICE | OVERHEAD)
    }

    /// The launch of a graph, of which `told` is the first node.
    pub fn graph(told: &Told) -> Ran {
        let told = Told { kind: GRAPH, ..*told };
        Ran { told, name: 0 }
    }

    /// What a device is.
    pub fn device(number: u32) -> Ran {
        let told = Told {
            kind: DEVICE,
            device: number,
            bytes: MULTIPROCESSORS as u64,
            ..Told::default()
        };
        Ran { told, name: 0 }
    }

    /// Overhead of that kind; it has no name.
    pub fn overhead(kind: u64, start_ns: u64, end_ns: u64) -> Ran {
        let told = Told {
            kind: OVERHEAD,
            start_ns,
            end_ns,
            bytes: kind,
            ..Told::default()
        };
        Ran { told, name: 0 }
    }

    /// Writes it where there is room; times are what `time` makes of them.
    pub fn write(&self, to: &mut [u8], (start, end): (u64, u64)) {
        let told = &self.told;
        to.fill(0);
        let mut put = |at: usize, bytes: &[u8]| to[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &told.kind.to_le_bytes());
        if told.kind == OVERHEAD {
            put(4, &(told.bytes as u32).to_le_bytes());
            put(24, &start.to_le_bytes());
            put(32, &end.to_le_bytes());
            return;
        }
        if told.kind == GRAPH {
            put(8, &start.to_le_bytes());
            put(16, &end.to_le_bytes());
            put(24, &told.device.to_le_bytes());
            put(28, &told.graph.to_le_bytes());
            put(32, &told.context.to_le_bytes());
            put(36, &told.stream.to_le_bytes());
            return;
        }
        if told.kind == DEVICE {
            put(32, &32u32.to_le_bytes());
            put(44, &(told.bytes as u32).to_le_bytes());
            for (at, number) in H100 {
                put(at, &number.to_le_bytes());
            }
            put(112, &told.device.to_le_bytes());
            put(145, &[u8::from(faults::has("mig"))]);
            return;
        }
        put(16, &start.to_le_bytes());
        put(24, &end.to_le_bytes());
        let place = if told.kind == KERNEL { 40 } else { 32 };
        put(place, &told.device.to_le_bytes());
        put(place + 4, &told.context.to_le_bytes());
        put(place + 8, &told.stream.to_le_bytes());
        match told.kind {
            KERNEL => {
                put(6, &32u16.to_le_bytes());
                for axis in 0..3 {
                    put(52 + 4 * axis, &told.grid[axis].to_le_bytes());
                    put(64 + 4 * axis, &told.block[axis].to_le_bytes());
                }
                put(80, &told.shared.to_le_bytes());
                put(104, &self.name.to_le_bytes());
                put(144, &told.node.to_le_bytes());
                put(156, &told.graph.to_le_bytes());
            }
            kind => {
                put(8, &told.bytes.to_le_bytes());
                let graph = if kind == PEER_COPY { 72 } else { 64 };
                put(graph, &told.node.to_le_bytes());
                put(graph + 8, &told.graph.to_le_bytes());
                if kind == MEMSET {
                    put(50, &(told.to as u16).to_le_bytes());
                } else {
                    put(4, &[told.copy_kind as u8, told.from as u8, told.to as u8, 1]);
                }
            }
        }
    }
}
