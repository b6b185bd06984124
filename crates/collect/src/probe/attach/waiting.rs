//! Files that could not be probed for a reason that passes, and the processes that run with them meanwhile.
//!
//! Owns who waits for what. Whether a reason passes is [`super::Attacher`]'s business.

use crate::clock::monotonic_ns;
use crate::discover::{self, Mapping};

/// Files and processes that wait to be looked at again, and how many of them are each second.
const MOST: usize = 64;
const RETRIED: usize = 8;

/// A process that maps a file which is not probed yet.
#[derive(Debug, Clone)]
pub struct Waiter {
    pub pid: u32,
    /// When that was seen first, CLOCK_MONOTONIC ns.
    pub since: u64,
    pub(super) mapping: Mapping,
}

impl Waiter {
    fn is(&self, pid: u32, mapping: &Mapping) -> bool {
        self.pid == pid && self.mapping.name() == mapping.name()
    }

    /// Whether that process is still there, with that file.
    pub(super) fn runs(&self) -> bool {
        let maps = discover::mappings(self.pid);
        maps.is_ok_and(|all| all.iter().any(|mapping| mapping.name() == self.mapping.name()))
    }
}

/// Files that could not be probed for a reason that passes.
#[derive(Debug, Default)]
pub(super) struct Waiting(Vec<Waiter>);

impl Waiting {
    /// Process `pid` runs with a file that is not probed.
    pub(super) fn note(&mut self, pid: u32, mapping: &Mapping) {
        let is_known = self.0.iter().any(|waiter| waiter.is(pid, mapping));
        if self.0.len() < MOST && !is_known {
            self.0.push(Waiter {
                pid,
                since: monotonic_ns(),
                mapping: mapping.clone(),
            });
        }
    }

    /// Those whose turn it is; they are forgotten.
    pub(super) fn due(&mut self) -> Vec<Waiter> {
        self.0.drain(..self.0.len().min(RETRIED)).collect()
    }

    /// Whether who was due was noted again; then it waits since it did at first.
    pub(super) fn goes_on(&mut self, due: &Waiter) -> bool {
        let again = self.0.iter_mut().find(|waiter| waiter.is(due.pid, &due.mapping));
        again.map(|waiter| waiter.since = due.since).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_process_that_maps_a_file_waits_once_and_since_it_did_at_first() {
        let (mut waiting, file) = (Waiting::default(), Mapping::example(1));
        for pid in [7, 7, 8] {
            waiting.note(pid, &file);
        }
        let due = waiting.due();
        assert_eq!(due.iter().map(|waiter| waiter.pid).collect::<Vec<_>>(), [7, 8]);
        assert!(!waiting.goes_on(&due[0]), "it was not noted again");
        let early = Waiter {
            since: 5,
            ..due[0].clone()
        };
        waiting.note(7, &file);
        assert!(waiting.goes_on(&early) && !waiting.goes_on(&due[1]));
        assert_eq!(waiting.due()[0].since, 5);
    }

    #[test]
    fn they_are_not_without_number() {
        let mut waiting = Waiting::default();
        (0..1000).for_each(|pid| waiting.note(pid, &Mapping::example(1)));
        let rounds = std::iter::from_fn(|| Some(waiting.due().len()).filter(|count| *count > 0));
        assert_eq!(rounds.collect::<Vec<_>>(), [RETRIED; MOST / RETRIED]);
    }
}
