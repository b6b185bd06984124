//! When processes have ended whose numbers may come again.
//!
//! Owns that what has a number now began after the end of what had it: an end is told when it is seen, by when the next one
//! may have begun.

use std::collections::HashMap;

/// More are looked through for those that nobody has taken since.
const MANY: usize = 1024;
/// A process that has taken a number says so within, ns.
const LONGEST: u64 = 60_000_000_000;

/// When processes have ended, CLOCK_MONOTONIC ns.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    ended_at: HashMap<u32, u64>,
    /// When there are so many, those are forgotten that have not come again.
    most: usize,
}

impl Numbers {
    /// The end of a process was told as of `at`.
    pub(super) fn end(&mut self, tgid: u32, at: u64) {
        self.ended_at.insert(tgid, at);
        if self.ended_at.len() > self.most.max(MANY) {
            self.ended_at.retain(|_, ended| at.saturating_sub(*ended) < LONGEST);
            self.most = 2 * self.ended_at.len();
        }
    }

    /// A process says that it began at `at`, and has done nothing since: when it is told to have begun.
    pub(super) fn begin(&mut self, tgid: u32, at: u64) -> u64 {
        let ended = self.ended_at.remove(&tgid);
        ended.map_or(at, |ended| at.max(ended.saturating_add(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_number_begins_after_the_end_of_what_had_it() {
        let mut numbers = Numbers::default();
        assert_eq!(numbers.begin(7, 100), 100);
        numbers.end(7, 200);
        assert_eq!(numbers.begin(8, 190), 190, "another number");
        assert_eq!(numbers.begin(7, 190), 201, "its end was seen late");
        assert_eq!(numbers.begin(7, 195), 195, "the same process becomes another program");
        numbers.end(7, 300);
        assert_eq!(numbers.begin(7, 400), 400);
    }

    #[test]
    fn numbers_that_do_not_come_again_are_forgotten() {
        let mut numbers = Numbers::default();
        for tgid in 0..100_000 {
            numbers.end(tgid, u64::from(tgid) * 1_000_000_000);
        }
        assert!(numbers.ended_at.len() <= MANY + 61, "{}", numbers.ended_at.len());
        assert_eq!(numbers.begin(99_999, 0), 99_999_000_000_001);
    }
}
