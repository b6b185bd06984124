//! Records that were read and may not be handed on yet, because somebody may still submit an older one.
//!
//! Owns their order. All of them lie in one piece of memory, as there may be a million of a hundred bytes each second.

use std::ops::Range;

/// Room that is kept when a burst is over.
const KEPT_BYTES: usize = 1 << 18;
const KEPT_RECORDS: usize = KEPT_BYTES / 64;

/// A record, and when it was submitted, CLOCK_MONOTONIC ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Submitted<'a> {
    pub stamp: u64,
    pub stream: u32,
    pub bytes: &'a [u8],
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    stamp: u64,
    start: usize,
    length: u32,
    stream: u32,
}

impl Entry {
    fn range(&self) -> Range<usize> {
        self.start..self.start + self.length as usize
    }
}

/// Records that were read and not handed on.
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// Of records, end to end; also of some that were handed on.
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    /// Bytes of those that were not.
    pending_bytes: usize,
}

impl Pending {
    /// Adds a record of so many bytes, which `fill` writes.
    pub(super) fn push(&mut self, stamp: u64, stream: u32, length: u32, fill: impl FnOnce(&mut [u8])) {
        let start = self.bytes.len();
        self.bytes.resize(start + length as usize, 0);
        fill(&mut self.bytes[start..]);
        self.pending_bytes += length as usize;
        self.entries.push(Entry {
            stamp,
            start,
            length,
            stream,
        });
    }

    /// Hands out those that were submitted before `until`, in order, and keeps the others.
    pub(super) fn hand_out(&mut self, until: u64, take: &mut dyn FnMut(Submitted<'_>)) {
        self.entries.sort_by_key(|entry| entry.stamp);
        let ready = self.entries.partition_point(|entry| entry.stamp < until);
        for entry in self.entries.drain(..ready) {
            self.pending_bytes -= entry.length as usize;
            take(Submitted {
                stamp: entry.stamp,
                stream: entry.stream,
                bytes: &self.bytes[entry.range()],
            });
        }
        // what is kept is moved only where it is less than what was handed on: no byte is moved for ever
        if self.pending_bytes * 2 < self.bytes.len() {
            self.make_room();
        }
    }

    fn make_room(&mut self) {
        let mut kept = Vec::with_capacity(self.pending_bytes);
        for entry in &mut self.entries {
            let start = kept.len();
            kept.extend_from_slice(&self.bytes[entry.range()]);
            entry.start = start;
        }
        self.bytes.clear();
        self.bytes.extend_from_slice(&kept);
        self.bytes.shrink_to(KEPT_BYTES);
        self.entries.shrink_to(KEPT_RECORDS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn push(pending: &mut Pending, stamp: u64, bytes: &[u8]) {
        pending.push(stamp, 3, bytes.len() as u32, |to| to.copy_from_slice(bytes));
    }

    fn handed_out(pending: &mut Pending, until: u64) -> Vec<(u64, Vec<u8>)> {
        let mut taken = Vec::new();
        pending.hand_out(until, &mut |record| taken.push((record.stamp, record.bytes.to_vec())));
        taken
    }

    #[test]
    fn what_is_kept_has_its_bytes_when_the_others_are_gone() {
        let mut pending = Pending::default();
        push(&mut pending, 30, b"last");
        push(&mut pending, 10, &[7; 100]);
        assert_eq!(handed_out(&mut pending, 20), [(10, vec![7; 100])]);
        assert_eq!(pending.bytes, b"last");
        assert_eq!(handed_out(&mut pending, u64::MAX), [(30, b"last".to_vec())]);
        assert!(pending.bytes.is_empty());
    }

    #[test]
    fn little_room_is_kept_behind_a_burst() {
        let mut pending = Pending::default();
        (0..100_000).for_each(|stamp| push(&mut pending, stamp, &[0; 64]));
        assert_eq!(handed_out(&mut pending, u64::MAX).len(), 100_000);
        assert!(pending.bytes.capacity() <= KEPT_BYTES && pending.entries.capacity() <= KEPT_RECORDS);
    }

    proptest! {
        #[test]
        fn records_come_once_each_in_order_with_their_own_bytes(
            rounds in proptest::collection::vec((proptest::collection::vec(0..1000u64, 0..20), 0..1000u64), 0..20),
        ) {
            let (mut pending, mut expected) = (Pending::default(), Vec::new());
            for (stamps, until) in rounds {
                for stamp in stamps {
                    let bytes = vec![stamp as u8; stamp as usize % 50];
                    push(&mut pending, stamp, &bytes);
                    expected.push((stamp, bytes));
                }
                expected.sort_by_key(|(stamp, _)| *stamp);
                let ready = expected.partition_point(|(stamp, _)| *stamp < until);
                prop_assert_eq!(handed_out(&mut pending, until), expected.drain(..ready).collect::<Vec<_>>());
            }
        }
    }
}
