//! What a program has written where its agent should have, and its user where we should have: any bytes, anywhere. Reading them
//! neither fails nor takes long.

use super::arena::{
    ArenaPatch, BLOCK_BYTES, BLOCK_FAILURES, BLOCK_PLAIN, BLOCK_RANGES, BLOCK_RING, BLOCK_ROWS, BLOCK_THREAD,
    BLOCK_TOTALS, KeptHead, PROCESS_AGGREGATE_COUNTERS, PROCESS_BLOCKS, PROCESS_CONTROL, PROCESS_LARGE_RINGS,
    PROCESS_SITE_COUNTERS, PROCESS_STARTED, RING_BYTES, layout,
};
use super::kept;
use super::members::Members;
use super::process::{Process, Room, TABLES};
use crate::engine::Table;
use crate::wire::COMM;

/// Bytes of one piece; two more say where it lies.
const PIECE: usize = 30;
/// What lies in its tables and rings is kept up to these.
const MOST_KEPT: usize = 256 << 20;

const ROOM: Room = Room {
    rows: 8,
    ring: RING_BYTES,
};

/// Where something of a process begins that is read.
fn places() -> Vec<u64> {
    let mut places = vec![
        0,
        PROCESS_CONTROL,
        PROCESS_SITE_COUNTERS,
        PROCESS_AGGREGATE_COUNTERS,
        PROCESS_STARTED,
        PROCESS_LARGE_RINGS,
    ];
    places.extend(layout().iter().skip(3).flat_map(|shape| [shape.offset, shape.first()]));
    for block in 0..2 {
        let at = PROCESS_BLOCKS + block * BLOCK_BYTES;
        let parts = [
            0,
            BLOCK_THREAD,
            BLOCK_ROWS,
            BLOCK_FAILURES,
            BLOCK_TOTALS,
            BLOCK_RANGES,
            BLOCK_RING,
            BLOCK_PLAIN,
        ];
        places.extend(parts.map(|part| at + part));
    }
    places
}

/// Reads a process whose memory holds `bytes`, in pieces: each begins with where it lies. False: there is no memory.
///
/// # Panics
/// More is kept of it than there is room for in what its agent may write.
pub fn read(bytes: &[u8]) -> bool {
    let Ok(process) = Process::make(1, [0; COMM], 1, ROOM, true) else {
        return false;
    };
    let places = places();
    for piece in bytes.chunks(PIECE + 2) {
        let &[place, distance, ref rest @ ..] = piece else {
            continue;
        };
        let at = places[usize::from(place) % places.len()];
        process.memory.put(at + u64::from(distance) * 8, rest);
    }
    let mut members = Members::default();
    members.uses_row(0);
    members.join(process);
    look(&mut members);
    members.end(1);
    look(&mut members);
    true
}

/// Bytes of the head of a file of plans, and of a patch in it.
pub const PLANS_HEAD: usize = size_of::<KeptHead>();
pub const PLANS_PATCH: usize = size_of::<ArenaPatch>();

/// Reads a file of plans that holds `plans` behind its head. As what it would be written, without its head; `None`: they are not
/// believed.
#[must_use]
pub fn rewritten_plans(plans: &[u8]) -> Option<Vec<u8>> {
    Some(kept::rewritten(plans)?.split_off(PLANS_HEAD))
}

fn look(members: &mut Members) {
    members.take_in(Some(u64::MAX));
    std::hint::black_box((
        members.counters(),
        members.site_counters(),
        members.done(),
        members.row(0),
        members.flow(1),
        members.thread(1, 4096),
        members.fill(),
    ));
    for (table, _) in TABLES {
        let mut kept = 0;
        for (key, value) in members.entries(table) {
            kept += key.len() + value.len();
        }
        assert!(kept <= MOST_KEPT, "{table:?}: {kept} bytes");
    }
    members.delete(Table::Totals, &[0; 16]);
    members.queues.clear();
    members.arrivals.clear();
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..1024)) {
            prop_assert!(read(&bytes));
        }

        #[test]
        fn plans_that_are_believed_are_written_as_they_were_read(plans in proptest::collection::vec(0_u8..3, 0..1024)) {
            prop_assert!(rewritten_plans(&plans).is_none_or(|again| again == plans));
        }
    }
}
