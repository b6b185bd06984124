//! When nothing that was submitted can have been running: from the moment at which everything is known to be done to
//! the next call that submits something.

use std::collections::VecDeque;

/// Gaps that a call which takes long, and is told of late, may still cut.
const RECENT: usize = 1024;

/// Lower bound of idle time. All times CLOCK_MONOTONIC ns.
#[derive(Debug, Default)]
pub struct Idle {
    /// Everything is done since then.
    since: Option<u64>,
    recent: VecDeque<(u64, u64)>,
    older_ns: u64,
    older_longest_ns: u64,
    older: u64,
}

impl Idle {
    /// Everything that was submitted is done, now.
    pub fn begin(&mut self, at: u64) {
        self.since.get_or_insert(at);
    }

    /// Something is being submitted since `entered`, by a call that has returned now.
    pub fn end(&mut self, entered: u64) {
        if let Some(since) = self.since.take().filter(|since| *since < entered) {
            self.recent.push_back((since, entered));
        }
        self.cut(entered);
        if self.recent.len() > RECENT {
            self.settle_oldest();
        }
    }

    /// What was taken for idle after `entered` was not.
    fn cut(&mut self, entered: u64) {
        while let Some((since, until)) = self.recent.pop_back() {
            if since >= entered {
                continue;
            }
            self.recent.push_back((since, until.min(entered)));
            return;
        }
    }

    fn settle_oldest(&mut self) {
        if let Some((since, until)) = self.recent.pop_front() {
            let ns = until - since;
            self.older_ns += ns;
            self.older_longest_ns = self.older_longest_ns.max(ns);
            self.older += 1;
        }
    }

    /// It is not known any more that everything is done.
    pub fn doubt(&mut self) {
        self.since = None;
    }

    /// Since when everything is done.
    #[must_use]
    pub fn since(&self) -> Option<u64> {
        self.since
    }

    /// Idle time between submissions.
    #[must_use]
    pub fn total_ns(&self) -> u64 {
        self.older_ns + self.gaps().sum::<u64>()
    }

    /// Pieces of it, and the longest.
    #[must_use]
    pub fn pieces(&self) -> (u64, u64) {
        let longest = self.gaps().max().unwrap_or(0).max(self.older_longest_ns);
        (self.older + self.recent.len() as u64, longest)
    }

    /// Recent pieces.
    #[cfg(test)]
    pub fn recent(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.recent.iter().copied()
    }

    fn gaps(&self) -> impl Iterator<Item = u64> + '_ {
        self.recent.iter().map(|(since, until)| until - since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_lasts_from_the_end_of_all_work_to_the_next_submission() {
        let mut idle = Idle::default();
        idle.end(100); // never idle before
        idle.begin(200);
        idle.begin(250); // already was
        idle.end(300);
        idle.begin(400);
        assert_eq!(idle.total_ns(), 100);
        assert_eq!(idle.pieces(), (1, 100));
        assert_eq!(idle.since(), Some(400));
    }

    #[test]
    fn a_call_that_was_under_way_takes_back_what_seemed_idle() {
        let mut idle = Idle::default();
        for (begin, end) in [(100, 150), (200, 250), (300, 350)] {
            idle.begin(begin);
            idle.end(end);
        }
        idle.begin(400);
        idle.end(220); // entered then, and told of only now
        assert_eq!(idle.total_ns(), 50 + 20);
        assert_eq!(idle.pieces(), (2, 50));
    }

    #[test]
    fn old_gaps_are_kept_as_a_sum() {
        let mut idle = Idle::default();
        for at in 0..2 * RECENT as u64 {
            idle.begin(at * 10 + 1);
            idle.end(at * 10 + 4);
        }
        assert_eq!(idle.total_ns(), 2 * RECENT as u64 * 3);
        assert_eq!(idle.pieces(), (2 * RECENT as u64, 3));
        assert!(idle.recent.len() <= RECENT);
    }
}
