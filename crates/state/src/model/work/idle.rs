//! When nothing that was submitted can have been running: from the moment at which everything is known to be done to
//! the next call that submits something, or to the last moment of which it is known that there was none.

use crate::model::reason::{Reason, Reasons};
use std::collections::VecDeque;

/// When nothing can have been running, CLOCK_MONOTONIC ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    pub since: u64,
    pub until: u64,
    /// The thread whose call ended it.
    pub tid: u32,
}

impl Gap {
    fn ns(&self) -> u64 {
        self.until - self.since
    }
}

/// A gap, and for how long of it threads took memory or gave it back.
#[derive(Debug, Clone, Copy)]
struct Piece {
    gap: Gap,
    memory_ns: u64,
}

impl Piece {
    fn reasons(&self) -> Reasons {
        Reasons::of_piece(self.gap.ns(), self.memory_ns, Reason::HostBound)
    }
}

/// Gaps that a call which takes long, and is told of late, may still cut.
const RECENT: usize = 1024;
/// Gaps that are kept until they are asked for.
const UNTAKEN: usize = 1 << 16;

/// Lower bound of idle time. All times CLOCK_MONOTONIC ns.
#[derive(Debug, Default)]
pub struct Idle {
    /// Everything is done since then.
    since: Option<u64>,
    /// Until then nothing was submitted after that.
    until: u64,
    recent: VecDeque<Piece>,
    /// Of the piece that nothing has ended yet: calls of memory until then, and their time, ns.
    memory_until: u64,
    memory_ns: u64,
    older_reasons: Reasons,
    older_longest_ns: u64,
    older: u64,
    /// Gaps that begin before this have been taken; `None`: nobody asks.
    taken_until: Option<u64>,
    /// Older ones that have not.
    untaken: Vec<Gap>,
}

impl Idle {
    /// Everything that was submitted is done, now.
    pub fn begin(&mut self, at: u64) {
        if self.since.is_none() {
            self.since = Some(at);
            (self.memory_until, self.memory_ns) = (at, 0);
        }
    }

    /// A thread took memory or gave it back.
    pub fn memory(&mut self, entered: u64, returned: u64) {
        if self.since.is_some() {
            let more = returned.saturating_sub(entered.max(self.memory_until));
            self.memory_ns = self.memory_ns.saturating_add(more);
            self.memory_until = self.memory_until.max(returned);
        }
    }

    /// Nothing was submitted before `at`, and nothing is under way that was entered before it.
    pub fn last(&mut self, at: u64) {
        self.until = self.until.max(at);
    }

    /// Something is being submitted since `entered`, by a call of thread `tid` that has returned now.
    pub fn end(&mut self, entered: u64, tid: u32) {
        if let Some(since) = self.since.take().filter(|since| *since < entered) {
            let until = entered;
            self.recent.push_back(Piece {
                gap: Gap { since, until, tid },
                memory_ns: self.memory_ns,
            });
        }
        self.cut(entered);
        if self.recent.len() > RECENT {
            self.settle_oldest();
        }
    }

    /// What was taken for idle after `entered` was not.
    fn cut(&mut self, entered: u64) {
        while let Some(mut piece) = self.recent.pop_back() {
            if piece.gap.since >= entered {
                continue;
            }
            piece.gap.until = piece.gap.until.min(entered);
            self.recent.push_back(piece);
            return;
        }
    }

    fn settle_oldest(&mut self) {
        if let Some(piece) = self.recent.pop_front() {
            let gap = piece.gap;
            self.add_older(gap.ns(), &piece.reasons());
            let asked = self.taken_until.is_some_and(|until| gap.since >= until);
            if asked && self.untaken.len() < UNTAKEN {
                self.untaken.push(gap);
            }
        }
    }

    /// It is not known any more that everything is done. What was known stays.
    pub fn doubt(&mut self) {
        let ns = self.lasting_ns();
        if ns > 0 {
            self.add_older(ns, &Reasons::of_piece(ns, self.memory_ns, Reason::Unknown));
        }
        self.since = None;
    }

    fn add_older(&mut self, ns: u64, reasons: &Reasons) {
        self.older_reasons.join(reasons);
        self.older_longest_ns = self.older_longest_ns.max(ns);
        self.older += 1;
    }

    /// Of the piece that nothing has ended yet, what is known.
    fn lasting_ns(&self) -> u64 {
        self.since.map_or(0, |since| self.until.saturating_sub(since))
    }

    /// Since when everything is done.
    #[must_use]
    pub fn since(&self) -> Option<u64> {
        self.since
    }

    /// Until when it is known that nothing was submitted after everything was done; `None`: something may be running.
    #[must_use]
    pub fn known_until(&self) -> Option<u64> {
        self.since.map(|since| since.max(self.until))
    }

    /// Idle time between submissions, and after the last one as far as that is known.
    #[must_use]
    pub(crate) fn total_ns(&self) -> u64 {
        self.reasons().total_ns()
    }

    /// The same by why.
    #[must_use]
    pub(crate) fn reasons(&self) -> Reasons {
        let mut reasons = self.older_reasons;
        self.recent.iter().for_each(|piece| reasons.join(&piece.reasons()));
        reasons.join(&Reasons::of_piece(self.lasting_ns(), self.memory_ns, Reason::HostBound));
        reasons
    }

    /// Pieces of it, and the longest.
    #[must_use]
    pub(crate) fn pieces(&self) -> (u64, u64) {
        let lasting = self.lasting_ns();
        let longest = self.gaps().max().unwrap_or(0).max(self.older_longest_ns).max(lasting);
        (self.older + self.recent.len() as u64 + u64::from(lasting > 0), longest)
    }

    /// Pieces that ended before `horizon` and were not taken before. One that is cut after this was taken too long.
    pub fn take(&mut self, horizon: u64) -> Vec<Gap> {
        let until = self.taken_until.unwrap_or(0);
        let mut gaps = std::mem::take(&mut self.untaken);
        let fresh = |gap: &&Gap| gap.since >= until && gap.until < horizon;
        gaps.extend(self.recent.iter().map(|piece| &piece.gap).filter(fresh));
        self.taken_until = Some(gaps.last().map_or(until, |gap| gap.until));
        gaps
    }

    /// Recent pieces.
    #[cfg(test)]
    pub fn recent(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.recent.iter().map(|piece| (piece.gap.since, piece.gap.until))
    }

    fn gaps(&self) -> impl Iterator<Item = u64> + '_ {
        self.recent.iter().map(|piece| piece.gap.ns())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_lasts_from_the_end_of_all_work_to_the_next_submission() {
        let mut idle = Idle::default();
        idle.end(100, 7); // never idle before
        idle.begin(200);
        idle.begin(250); // already was
        idle.end(300, 7);
        idle.begin(400);
        assert_eq!(idle.total_ns(), 100);
        assert_eq!(idle.pieces(), (1, 100));
        assert_eq!(idle.since(), Some(400));
    }

    #[test]
    fn idle_goes_on_while_it_is_known_that_nothing_is_submitted() {
        let mut idle = Idle::default();
        idle.last(100); // something may be running
        idle.begin(200);
        assert_eq!((idle.total_ns(), idle.known_until()), (0, Some(200)));
        idle.last(260);
        idle.last(250);
        assert_eq!(
            (idle.total_ns(), idle.pieces(), idle.known_until()),
            (60, (1, 60), Some(260))
        );
        idle.end(300, 7);
        assert_eq!(
            (idle.total_ns(), idle.pieces(), idle.known_until()),
            (100, (1, 100), None)
        );
    }

    #[test]
    fn what_was_known_before_a_loss_stays() {
        let mut idle = Idle::default();
        idle.begin(200);
        idle.last(260);
        idle.doubt();
        idle.last(400);
        assert_eq!((idle.total_ns(), idle.pieces()), (60, (1, 60)));
    }

    #[test]
    fn each_piece_is_taken_once_and_only_when_it_is_old() {
        let mut idle = Idle::default();
        for (begin, end) in [(100, 150), (200, 250)] {
            idle.begin(begin);
            idle.end(end, 7);
        }
        let gap = |since, until| Gap { since, until, tid: 7 };
        assert_eq!(idle.take(200), [gap(100, 150)]);
        assert_eq!(idle.take(300), [gap(200, 250)]);
        assert_eq!(idle.take(300), []);
    }

    #[test]
    fn once_asked_for_pieces_are_kept_however_many_come() {
        let mut idle = Idle::default();
        idle.take(0);
        for number in 1..=5000 {
            idle.begin(10 * number);
            idle.end(10 * number + 5, 7);
        }
        assert_eq!(idle.take(u64::MAX).len(), 5000);
        assert_eq!(idle.take(u64::MAX), []);
    }

    #[test]
    fn a_call_that_was_under_way_takes_back_what_seemed_idle() {
        let mut idle = Idle::default();
        for (begin, end) in [(100, 150), (200, 250), (300, 350)] {
            idle.begin(begin);
            idle.end(end, 7);
        }
        idle.begin(400);
        idle.end(220, 7); // entered then, and told of only now
        assert_eq!(idle.total_ns(), 50 + 20);
        assert_eq!(idle.pieces(), (2, 50));
    }

    #[test]
    fn calls_of_memory_explain_as_much_of_a_gap_as_they_took_however_many_threads_made_them() {
        let mut idle = Idle::default();
        idle.memory(50, 90); // not idle
        idle.begin(100);
        idle.memory(80, 120);
        idle.memory(110, 130);
        idle.memory(200, 210);
        idle.last(300);
        let of = |idle: &Idle| [Reason::Memory, Reason::HostBound].map(|reason| idle.reasons().get(reason));
        assert_eq!(of(&idle), [40, 160]);
        idle.end(400, 7);
        assert_eq!(of(&idle), [40, 260]);
        idle.end(125, 7); // entered then, and told of only now
        assert_eq!(of(&idle), [25, 0]);
    }

    #[test]
    fn what_ended_a_piece_is_not_known_after_a_loss() {
        let mut idle = Idle::default();
        idle.begin(100);
        idle.last(250);
        idle.doubt();
        assert_eq!((idle.reasons().get(Reason::Unknown), idle.total_ns()), (150, 150));
    }

    #[test]
    fn old_gaps_are_kept_as_a_sum() {
        let mut idle = Idle::default();
        for at in 0..2 * RECENT as u64 {
            idle.begin(at * 10 + 1);
            idle.end(at * 10 + 4, 7);
        }
        assert_eq!(idle.total_ns(), 2 * RECENT as u64 * 3);
        assert_eq!(idle.pieces(), (2 * RECENT as u64, 3));
        assert!(idle.recent.len() <= RECENT);
    }

    #[test]
    fn times_that_nobody_can_mean_add_up_to_the_longest() {
        let mut idle = Idle::default();
        for _ in 0..3 {
            idle.begin(1);
            idle.end(u64::MAX, 7);
        }
        idle.begin(1);
        idle.last(u64::MAX);
        assert_eq!(idle.total_ns(), u64::MAX);
        for _ in 0..3 {
            idle.add_older(u64::MAX, &Reasons::of_piece(u64::MAX, 0, Reason::HostBound));
        }
        assert_eq!(idle.total_ns(), u64::MAX);
    }
}
