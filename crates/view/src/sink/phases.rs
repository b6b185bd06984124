//! Entries and returns of calls as records of their own: returns wait until their time has come.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

/// Time of return in ns since the start, the innermost call first, number of the call.
type Due = (i64, Reverse<u8>, u64);

/// Entries and returns of calls as records of their own.
#[derive(Debug, Default)]
pub(crate) struct Phases {
    returns: BTreeMap<Due, Vec<u8>>,
    /// Open calls whose entry has been written.
    begun: HashSet<u64>,
}

impl Phases {
    /// The entry of call `id` is written before it returns.
    pub(crate) fn begin(&mut self, id: u64) {
        self.begun.insert(id);
    }

    /// Whether the entry of call `id`, which has returned, was written before.
    pub(crate) fn has_begun(&mut self, id: u64) -> bool {
        self.begun.remove(&id)
    }

    /// Keeps the record of the return of call `id`, at nesting `depth`, until `at`.
    pub(crate) fn keep(&mut self, at: i64, depth: u8, id: u64, record: Vec<u8>) {
        self.returns.insert((at, Reverse(depth), id), record);
    }

    /// Writes the returns up to `until`.
    pub(crate) fn release(&mut self, until: i64, out: &mut Vec<u8>) {
        while let Some(first) = self.returns.first_entry() {
            if first.key().0 > until {
                return;
            }
            out.extend(first.remove());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_come_by_time_and_the_inner_call_first() {
        let (mut phases, mut out) = (Phases::default(), Vec::new());
        phases.keep(30, 0, 1, b"outer ".to_vec());
        phases.keep(20, 1, 3, b"second ".to_vec());
        phases.keep(20, 2, 4, b"first ".to_vec());
        phases.release(10, &mut out);
        assert!(out.is_empty());
        phases.release(20, &mut out);
        assert_eq!(out, b"first second ");
        phases.release(i64::MAX, &mut out);
        assert_eq!(out, b"first second outer ");
    }
}
