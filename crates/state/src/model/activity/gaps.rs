//! When a device had nothing to do between what it has done, once nothing can come any more that fills it.
//!
//! Owns what of its work has come and may still be followed by earlier work. Who ended a gap, and why it was, is not its business.

use super::Cause;

/// Work that waits for what may come before it; beyond, the oldest half waits no longer.
const MOST: usize = 1 << 18;

/// Something that a device has done, CLOCK_MONOTONIC ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ran {
    pub begin: u64,
    pub end: u64,
    pub call: Option<Cause>,
}

/// Nothing ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    pub since: u64,
    pub until: u64,
    /// Of what ended it; `None`: it was not found.
    pub call: Option<Cause>,
    /// What came before it is of the same call.
    pub(crate) within_call: bool,
}

/// When a device had nothing to do between what it has done, once nothing can come any more that fills it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Track {
    waiting: Vec<Ran>,
    /// What ended last, of what nothing can come before.
    last: Option<Ran>,
    /// Up to there all gaps have been told.
    told: u64,
    /// From there on it was not recorded whether anything ran. Ascending.
    ends: Vec<u64>,
    /// Work that came later than that: at most so much of the gaps was none.
    late_ns: u64,
}

impl Track {
    /// Something ran.
    pub(crate) fn add(&mut self, ran: Ran) {
        self.waiting.push(ran);
    }

    /// Nothing that begins from `at` on is recorded, for a while.
    pub(crate) fn close(&mut self, at: u64) {
        self.ends.push(at);
        self.add(Ran {
            begin: at,
            end: at,
            call: None,
        });
    }

    /// When the last of what is settled began: up to then gaps are known.
    #[must_use]
    pub(crate) fn settled(&self) -> u64 {
        self.told
    }

    /// See the field.
    #[must_use]
    pub(crate) fn late_ns(&self) -> u64 {
        self.late_ns
    }

    /// Tells gaps that end before `horizon`: whatever began before it has come.
    pub(crate) fn settle(&mut self, horizon: u64, mut tell: impl FnMut(&Gap)) {
        self.waiting.sort_unstable_by_key(|ran| (ran.begin, ran.end));
        let known = self.waiting.partition_point(|ran| ran.begin < horizon);
        let forced = if self.waiting.len() > MOST { MOST / 2 } else { 0 };
        for ran in self.waiting.drain(..known.max(forced)) {
            match self.last {
                Some(last) if ran.begin > last.end && self.ends.binary_search(&last.end).is_ok() => {}
                Some(last) if ran.begin > last.end => tell(&Gap {
                    since: last.end,
                    until: ran.begin,
                    call: ran.call,
                    within_call: ran.call.is_some() && ran.call == last.call,
                }),
                Some(_) if ran.begin < self.told => self.late_ns += ran.end.min(self.told) - ran.begin,
                _ => {}
            }
            self.told = self.told.max(ran.begin);
            self.last = self.last.filter(|last| last.end >= ran.end).or(Some(ran));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn ran(begin: u64, end: u64) -> Ran {
        Ran { begin, end, call: None }
    }

    fn told(track: &mut Track, horizon: u64) -> Vec<(u64, u64)> {
        let mut gaps = Vec::new();
        track.settle(horizon, |gap| gaps.push((gap.since, gap.until)));
        gaps
    }

    #[test]
    fn a_gap_is_told_once_nothing_can_come_that_fills_it() {
        let mut track = Track::default();
        track.add(ran(10, 20));
        track.add(ran(50, 60));
        assert_eq!(told(&mut track, 50), []);
        track.add(ran(30, 35));
        assert_eq!(told(&mut track, 51), [(20, 30), (35, 50)]);
        assert_eq!((told(&mut track, 1000), track.late_ns()), (vec![], 0));
    }

    #[test]
    fn work_that_comes_later_than_its_gap_was_told_is_counted() {
        let mut track = Track::default();
        track.add(ran(10, 20));
        track.add(ran(50, 60));
        assert_eq!(told(&mut track, 100), [(20, 50)]);
        track.add(ran(30, 70));
        assert_eq!((told(&mut track, 100), track.late_ns()), (vec![], 20));
        track.add(ran(90, 95));
        assert_eq!(told(&mut track, 100), [(70, 90)]);
    }

    #[test]
    fn parts_of_one_launch_have_gaps_within_it() {
        let call = Cause {
            tid: 7,
            entered: 1,
            site: None,
            waits: None,
        };
        let mut track = Track::default();
        track.add(Ran {
            call: Some(call),
            ..ran(10, 20)
        });
        track.add(Ran {
            call: Some(call),
            ..ran(30, 40)
        });
        track.add(Ran {
            call: Some(Cause { entered: 2, ..call }),
            ..ran(50, 60)
        });
        let mut within = Vec::new();
        track.settle(u64::MAX, |gap| within.push(gap.within_call));
        assert_eq!(within, [true, false]);
    }

    proptest! {
        #[test]
        fn gaps_are_what_nothing_runs_in_whenever_they_are_asked_for(
            intervals in vec((0..500u64, 1..40u64), 1..60),
            horizons in vec(0..500u64, 0..6),
        ) {
            let mut intervals: Vec<(u64, u64)> = intervals.into_iter().map(|(begin, ns)| (begin, begin + ns)).collect();
            intervals.sort_unstable();
            let mut horizons = horizons;
            horizons.sort_unstable();
            let (mut track, mut gaps, mut rest) = (Track::default(), Vec::new(), intervals.as_slice());
            for horizon in horizons.into_iter().chain([u64::MAX]) {
                // what began before the horizon has come, and some more
                let come = rest.partition_point(|one| one.0 < horizon.saturating_add(30));
                rest[..come].iter().rev().for_each(|one| track.add(ran(one.0, one.1)));
                rest = &rest[come..];
                gaps.extend(told(&mut track, horizon));
            }
            let (first, last) = (intervals[0].0, intervals.iter().map(|one| one.1).max().unwrap_or(0));
            let is_busy = |at: u64| intervals.iter().any(|one| one.0 <= at && at < one.1);
            let idle = (first..last).filter(|at| !is_busy(*at)).count() as u64;
            prop_assert_eq!(gaps.iter().map(|(since, until)| until - since).sum::<u64>(), idle);
            prop_assert!(gaps.iter().all(|(since, until)| (*since..*until).all(|at| !is_busy(at))));
            prop_assert_eq!(track.late_ns(), 0);
        }
    }
}
