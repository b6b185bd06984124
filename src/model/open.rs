//! Calls that take so long that somebody has to hear of it before they return.
//!
//! Owns which calls are open as far as is known; does not know how that is found out.

use std::collections::HashMap;

/// From then on a call is told of.
pub const LONG_NS: u64 = 1_000_000_000;
/// Beyond that none is added.
const MOST: usize = 4096;

/// Thread, time of entry.
pub type CallKey = (u32, u64);

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
}

/// See the module.
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

    /// At `now` the thread is in these calls (row, time of entry). Those that have just become long.
    pub fn look(&mut self, (tid, pid): (u32, u32), open: &[(u32, u64)], now: u64) -> Vec<CallKey> {
        self.calls
            .retain(|key, _| key.0 != tid || open.iter().any(|(_, entered)| *entered == key.1));
        let mut fresh = Vec::new();
        for (row, entered) in open {
            let key = (tid, *entered);
            if let Some(known) = self.calls.get_mut(&key) {
                known.until = now;
            } else if now.saturating_sub(*entered) >= LONG_NS && self.calls.len() < MOST {
                let call = Open {
                    row: *row,
                    pid,
                    tid,
                    entered: *entered,
                    until: now,
                    ended: false,
                };
                self.calls.insert(key, call);
                fresh.push(key);
            }
        }
        fresh
    }

    /// A thread has ended; `at`: when, if that is known.
    pub fn gone(&mut self, tid: u32, at: Option<u64>) {
        self.threads.remove(&tid);
        for call in self.calls.values_mut().filter(|call| call.tid == tid && !call.ended) {
            call.ended = true;
            call.until = at.unwrap_or(call.until);
        }
    }

    /// A process has ended.
    pub fn exited(&mut self, pid: u32, at: u64) {
        let threads: Vec<u32> = self
            .threads
            .iter()
            .filter(|(_, of)| **of == pid)
            .map(|(tid, _)| *tid)
            .collect();
        threads.into_iter().for_each(|tid| self.gone(tid, Some(at)));
    }

    /// Those that have not returned, the longest first.
    #[must_use]
    pub fn open(&self) -> Vec<&Open> {
        let mut calls: Vec<&Open> = self.calls.values().collect();
        calls.sort_by_key(|call| (std::cmp::Reverse(call.until - call.entered), call.tid, call.entered));
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
