//! What gpuscope and its agents share: `crates/collect/src/agent/arena.h` in Rust, and how much room each table gets.

#[expect(dead_code, reason = "what agents alone need")]
mod generated;

pub(super) use generated::*;

use crate::stack::wire::Python;
use crate::wire;

/// What [`wire::Flow`]s are shared by, as in the body.
pub(super) const FLOWS: u32 = 4096;

/// Bytes of a table with an index.
fn indexed(offset: u64, most: u32, key: usize, value: usize) -> TableShape {
    TableShape {
        offset,
        most,
        slots: (most * 2).next_power_of_two(),
        key_bytes: key as u32,
        value_bytes: value as u32,
    }
}

fn array(offset: u64, most: u32, value: usize) -> TableShape {
    TableShape {
        offset,
        most,
        slots: 0,
        key_bytes: 4,
        value_bytes: value as u32,
    }
}

const fn filled_up(bytes: u32) -> u64 {
    (bytes as u64).next_multiple_of(8)
}

impl TableShape {
    /// From one entry to the next.
    pub(super) fn stride(&self) -> u64 {
        match self.slots {
            0 => u64::from(self.value_bytes),
            _ => size_of::<TableEntry>() as u64 + filled_up(self.key_bytes) + filled_up(self.value_bytes),
        }
    }

    /// Where the first entry lies.
    pub(super) fn first(&self) -> u64 {
        match self.slots {
            0 => self.offset,
            slots => self.offset + size_of::<Table>() as u64 + u64::from(slots) * 4,
        }
    }

    /// Where the value lies behind the beginning of an entry.
    pub(super) fn value_at(&self) -> u64 {
        size_of::<TableEntry>() as u64 + filled_up(self.key_bytes)
    }

    fn end(&self) -> u64 {
        self.first() + u64::from(self.most) * self.stride()
    }
}

/// Where the tables of every process and every thread lie.
pub(super) fn layout() -> [TableShape; ARENA_TABLES] {
    let mut shapes = [TableShape::default(); ARENA_TABLES];
    shapes[OWN_ROWS] = array(BLOCK_ROWS, ARENA_ROWS as u32, size_of::<wire::RowCounter>());
    let total = (size_of::<wire::TotalKey>(), size_of::<wire::Total>());
    shapes[OWN_TOTALS] = indexed(BLOCK_TOTALS, 13_000, total.0, total.1);
    shapes[OWN_FAILURES] = indexed(BLOCK_FAILURES, 512, size_of::<wire::FailureKey>(), 8);
    shapes[PROCESS_FLOWS] = array(PROCESS_TABLES, FLOWS, size_of::<wire::Flow>());
    let kernel = size_of::<wire::KernelKey>();
    let rest = [
        (PROCESS_SHAPES, 16384, size_of::<wire::ShapeKey>(), 8),
        (PROCESS_KERNELS, 16384, kernel, size_of::<wire::KnownKernel>()),
        (PROCESS_NAMED_HANDLES, 16384, kernel, size_of::<wire::NamedHandle>()),
        (
            PROCESS_AGGREGATES,
            16384,
            size_of::<wire::AggregateKey>(),
            size_of::<wire::Aggregate>(),
        ),
        (PROCESS_AGGREGATE_TEXTS, 8192, wire::TEXT, 8),
        (
            PROCESS_LANES,
            16384,
            size_of::<wire::LaneKey>(),
            size_of::<wire::Lane>(),
        ),
        (PROCESS_WORK_LOSSES, 16, 4, size_of::<wire::WorkLoss>()),
        (PROCESS_MEMORY_LOSSES, 16, 4, size_of::<wire::MemoryLoss>()),
        (PROCESS_KNOWN_SITES, 32768, 8, 4),
        (PROCESS_PYTHONS, 4, 4, size_of::<Python>()),
    ];
    let mut at = shapes[PROCESS_FLOWS].end();
    for (table, most, key, value) in rest {
        shapes[table] = indexed(at.next_multiple_of(4096), most, key, value);
        at = shapes[table].end();
    }
    shapes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_lie_side_by_side_and_within_their_memory() {
        let shapes = layout();
        assert!(shapes[OWN_ROWS].end() <= BLOCK_FAILURES);
        assert!(shapes[OWN_FAILURES].end() <= BLOCK_TOTALS);
        assert!(shapes[OWN_TOTALS].end() <= BLOCK_RANGES);
        assert_eq!(BLOCK_RING + RING_BYTES_OF_MANY, BLOCK_PLAIN);
        assert_eq!(BLOCK_PLAIN + ARENA_ROWS * 8, BLOCK_BYTES);
        for pair in shapes[PROCESS_FLOWS..].windows(2) {
            assert!(pair[0].end() <= pair[1].offset);
        }
        assert!(shapes[ARENA_TABLES - 1].end() <= PROCESS_BLOCKS);
        assert_eq!(
            PROCESS_BLOCKS + u64::from(MOST_BLOCKS) * BLOCK_BYTES,
            PROCESS_LARGE_RINGS
        );
        assert_eq!(PROCESS_LARGE_RINGS + u64::from(LARGE_RINGS) * RING_MOST, PROCESS_BYTES);
        let files = u64::from(RUN_FILES_MOST) * 56 + u64::from(RUN_FILES_SLOTS) * 4;
        assert!(RUN_FILES + files < RUN_PLANS && RUN_SPECS + ARENA_ROWS * size_of::<wire::Spec>() as u64 <= RUN_FILES);
    }
}
