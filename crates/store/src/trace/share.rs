//! How much of a recording its snapshots may be: a tenth of what rows take.
//!
//! Owns the sum of both, in bytes of the file. How often there is one at most is the business of who makes them.

/// Of a recording that has hardly begun, that its first second may have totals.
const AT_FIRST: u64 = 16 << 10;
/// Totals as JSON take less than one part of so many of that in the file: they repeat their names.
const PACKED: u64 = 3;
/// Snapshots take at most one part of so many of what rows take.
const PART: u64 = 10;

/// How much of a recording its snapshots may be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Share {
    /// Of all that was written.
    all: u64,
    snapshots: u64,
    /// Of the last snapshot.
    last: u64,
}

impl Share {
    /// So many bytes were written.
    pub(super) fn wrote(&mut self, bytes: usize) {
        self.all += bytes as u64;
    }

    /// A snapshot of so many bytes of JSON is going to be.
    pub(super) fn charge(&mut self, json: usize) {
        self.last = json as u64 / PACKED;
        self.snapshots += self.last;
    }

    /// Whether there is room for one more, as large as the last.
    pub(super) fn has_room(&self) -> bool {
        let rows = self.all.saturating_sub(self.snapshots);
        self.snapshots + self.last <= AT_FIRST + rows / PART
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_has_room_before_anything_was_written() {
        assert!(Share::default().has_room());
    }

    #[test]
    fn a_large_one_waits_for_as_many_rows() {
        let mut share = Share::default();
        share.charge(300 << 10);
        assert!(!share.has_room());
        // itself, and rows for two of that size
        share.wrote(100 << 10);
        share.wrote(1839 << 10);
        assert!(!share.has_room());
        share.wrote(1 << 10);
        assert!(share.has_room());
    }

    proptest! {
        #[test]
        fn they_never_take_more_than_their_part(seconds in prop::collection::vec((0_usize..300_000, 1_usize..400_000), 1..200)) {
            let (mut share, mut rows, mut taken, mut largest) = (Share::default(), 0, 0, 0);
            for (written, json) in seconds {
                share.wrote(written);
                rows += written as u64;
                if share.has_room() {
                    share.charge(json);
                    share.wrote(json / PACKED as usize);
                    taken += json as u64 / PACKED;
                    largest = largest.max(json as u64 / PACKED);
                }
                // how large the next is, is known once it is there
                prop_assert!(taken <= AT_FIRST + rows / PART + largest);
            }
        }
    }
}
