//! Calls that take so long that somebody has to hear of it before they return.
//!
//! Owns which calls are open as far as is known; does not know how that is found out.

use crate::frame::Frame;
use std::collections::HashMap;

/// From then on a call is told of.
pub const LONG_NS: u64 = 1_000_000_000;
/// Beyond that none is added.
const MOST: usize = 4096;

/// Thread, time of entry.
pub(crate) type CallKey = (u32, u64);

/// A call that has not returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open {
    pub row: u32,
    pub pid: u32,
    pub tid: u32,
    /// CLOCK_MONOTONIC ns, as the next.
    pub entered: u64,
    /// When it was last known to be open.
    pub until: u64,
    /// Its thread ended within it.
    pub ended: bool,
    /// Where its thread was within it when it was last seen: the number of a call site.
    pub site: Option<u64>,
    /// What was known of it when it was found, as the event of a call that is seen at entry only; `None`: it becomes no row.
    pub event: Option<Vec<u8>>,
}

/// The same for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenCall {
    pub layer: String,
    pub function: String,
    pub pid: u32,
    pub tid: u32,
    pub comm: String,
    /// So far.
    pub ns: u64,
    /// Its thread ended within it.
    pub ended: bool,
    /// Where its thread was when it was last seen within it, innermost first; `None`: it was not.
    pub stack: Option<Vec<Frame>>,
}

/// Calls that take so long that somebody has to hear of it before they return.
#[derive(Debug, Default)]
pub struct OpenCalls {
    calls: HashMap<CallKey, Open>,
    /// Threads that have called, with their process.
    threads: HashMap<u32, u32>,
}

impl OpenCalls {
    /// A thread calls for the first time.
    pub fn meet(&mut self, pid: u32, tid: u32) {
        self.threads.insert(tid, pid);
    }

    /// Those that may be in a call: thread and process.
    #[must_use]
    pub fn threads(&self) -> Vec<(u32, u32)> {
        self.threads.iter().map(|(tid, pid)| (*tid, *pid)).collect()
    }

    /// Those of process `pid`.
    #[must_use]
    pub fn threads_of(&self, pid: u32) -> Vec<u32> {
        let own = self.threads.iter().filter(|(_, of)| **of == pid);
        own.map(|(tid, _)| *tid).collect()
    }

    /// At `now` the thread is in these calls (row, time of entry). Those that have just become long.
    pub fn look(&mut self, (tid, pid): (u32, u32), open: &[(u32, u64)], now: u64) -> Vec<CallKey> {
        // its number may have been that of a thread that has ended
        let stays = |call: &Open| call.ended || open.iter().any(|(_, entered)| *entered == call.entered);
        self.calls.retain(|key, call| key.0 != tid || stays(call));
        let mut fresh = Vec::new();
        for (row, entered) in open {
            let key = (tid, *entered);
            if let Some(known) = self.calls.get_mut(&key) {
                known.until = known.until.max(now);
            } else if now.saturating_sub(*entered) >= LONG_NS && self.calls.len() < MOST {
                let call = Open {
                    row: *row,
                    pid,
                    tid,
                    entered: *entered,
                    until: now,
                    ended: false,
                    site: None,
                    event: None,
                };
                self.calls.insert(key, call);
                fresh.push(key);
            }
        }
        fresh
    }

    /// What is known of a call that was found.
    pub fn describe(&mut self, key: CallKey, event: &[u8]) {
        if let Some(call) = self.calls.get_mut(&key) {
            call.event = Some(event.to_vec());
        }
    }

    /// A call has returned.
    pub fn returned(&mut self, key: CallKey) {
        if !self.calls.is_empty() {
            self.calls.remove(&key);
        }
    }

    /// Whether a thread has called and is not known to have ended.
    #[must_use]
    pub fn knows(&self, tid: u32) -> bool {
        self.threads.contains_key(&tid)
    }

    /// Whether a thread is in a long call.
    #[must_use]
    pub fn hangs(&self, tid: u32) -> bool {
        self.calls.values().any(|call| call.tid == tid && !call.ended)
    }

    /// At `at` the thread was at that site. It says nothing of calls that were entered later.
    pub fn seen_at(&mut self, tid: u32, at: u64, site: u64) {
        let within = |call: &&mut Open| call.tid == tid && !call.ended && call.entered <= at;
        self.calls
            .values_mut()
            .filter(within)
            .for_each(|call| call.site = Some(site));
    }

    /// Where the thread was within a call when it was last seen.
    #[must_use]
    pub fn site_of(&self, key: CallKey) -> Option<u64> {
        self.calls.get(&key)?.site
    }

    /// A thread has ended; `at`: when, if that is known.
    pub fn gone(&mut self, tid: u32, at: Option<u64>) {
        self.threads.remove(&tid);
        for call in self.calls.values_mut().filter(|call| call.tid == tid && !call.ended) {
            call.ended = true;
            call.until = at.unwrap_or(call.until).max(call.entered);
        }
    }

    /// A process has ended.
    pub fn exited(&mut self, pid: u32, at: u64) {
        let threads = self.threads_of(pid);
        threads.into_iter().for_each(|tid| self.gone(tid, Some(at)));
    }

    /// Those that have not returned, the longest first.
    #[must_use]
    pub fn open(&self) -> Vec<&Open> {
        let mut calls: Vec<&Open> = self.calls.values().collect();
        calls.sort_by_key(|call| {
            (
                std::cmp::Reverse(call.until.saturating_sub(call.entered)),
                call.tid,
                call.entered,
            )
        });
        calls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREAD: (u32, u32) = (7, 1);

    #[test]
    fn a_call_is_told_of_once_when_it_has_become_long() {
        let mut calls = OpenCalls::default();
        calls.meet(1, 7);
        let call = [(3, 100)];
        assert!(calls.look(THREAD, &call, 50 + LONG_NS).is_empty());
        assert_eq!(calls.look(THREAD, &call, 100 + LONG_NS), [(7, 100)]);
        assert!(calls.look(THREAD, &call, 100 + 2 * LONG_NS).is_empty());
        assert_eq!(calls.open()[0].until, 100 + 2 * LONG_NS);
    }

    #[test]
    fn a_call_that_has_returned_is_not_open_though_its_thread_ends_before_the_next_look() {
        let mut calls = OpenCalls::default();
        calls.meet(1, 7);
        drop(calls.look(THREAD, &[(3, 100)], 100 + LONG_NS));
        calls.returned((7, 100));
        calls.exited(1, 200 + LONG_NS);
        assert!(calls.open().is_empty());
    }

    #[test]
    fn where_a_thread_was_is_said_of_the_calls_that_it_was_in_by_then() {
        let mut calls = OpenCalls::default();
        calls.meet(1, 7);
        drop(calls.look(THREAD, &[(3, 100), (4, 200)], 200 + LONG_NS));
        calls.seen_at(7, 150, 42);
        assert_eq!((calls.site_of((7, 100)), calls.site_of((7, 200))), (Some(42), None));
    }

    #[test]
    fn a_thread_that_has_the_number_of_one_that_has_ended_takes_nothing_from_it() {
        let mut calls = OpenCalls::default();
        calls.meet(1, 7);
        drop(calls.look(THREAD, &[(3, 100)], 100 + LONG_NS));
        calls.exited(1, 200 + LONG_NS);
        calls.meet(2, 7);
        assert!(calls.look((7, 2), &[], 300 + LONG_NS).is_empty());
        assert_eq!(calls.open().len(), 1);
        assert_eq!(calls.open()[0].until, 200 + LONG_NS);
    }

    #[test]
    fn a_call_that_returns_is_forgotten_and_one_whose_thread_ends_is_not() {
        let mut calls = OpenCalls::default();
        calls.meet(1, 7);
        drop(calls.look(THREAD, &[(3, 100), (4, 200)], 200 + LONG_NS));
        drop(calls.look(THREAD, &[(3, 100)], 300 + LONG_NS));
        assert_eq!(calls.open().len(), 1);
        calls.exited(1, 400 + LONG_NS);
        let open = calls.open();
        assert_eq!((open[0].until, open[0].ended), (400 + LONG_NS, true));
        assert!(calls.threads().is_empty());
    }
}
