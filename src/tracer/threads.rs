//! Threads of processes that have ended: their names and numbers are needed until their last lines are written.

use super::Tracer;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Longer than any line is held back.
const UNTIL_WRITTEN: Duration = Duration::from_secs(2);

/// Which threads of whom have called, and who of them is to be forgotten.
#[derive(Debug, Default)]
pub(super) struct Threads {
    by_process: HashMap<u32, Vec<u32>>,
    leaving: Vec<(Instant, u32)>,
}

impl Threads {
    /// A thread calls for the first time.
    pub(super) fn met(&mut self, tgid: u32, tid: u32) {
        self.by_process.entry(tgid).or_default().push(tid);
    }

    /// A process is no more.
    pub(super) fn left(&mut self, tgid: u32) {
        let threads = self.by_process.remove(&tgid).unwrap_or_default();
        let others = threads.into_iter().filter(|tid| *tid != tgid);
        let now = Instant::now();
        self.leaving.extend(others.chain([tgid]).map(|tid| (now, tid)));
    }

    /// Those that are not needed any more.
    fn take_gone(&mut self, now: Instant) -> Vec<u32> {
        let is_gone = |(since, _): &mut (Instant, u32)| now.saturating_duration_since(*since) > UNTIL_WRITTEN;
        self.leaving.extract_if(.., is_gone).map(|(_, tid)| tid).collect()
    }
}

impl Tracer {
    /// To be called each second.
    pub(super) fn forget_threads(&mut self) {
        for tid in self.threads.take_gone(Instant::now()) {
            self.comms.remove(&tid);
            self.numbers.forget(tid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_threads_of_a_process_are_forgotten_once_their_lines_are_written() {
        let mut threads = Threads::default();
        for tid in [7, 8, 9] {
            threads.met(7, tid);
        }
        threads.met(20, 21);
        threads.left(7);
        let now = Instant::now();
        assert!(threads.take_gone(now).is_empty(), "lines may come");
        assert_eq!(threads.take_gone(now + UNTIL_WRITTEN * 2), [8, 9, 7]);
        assert!(threads.take_gone(now + UNTIL_WRITTEN * 2).is_empty(), "once");
    }
}
