//! When calls were lost: what steps are cut at, and what they did, may be among these.

use crate::findings::table::Grow;
use crate::record::Record;

/// Times that are told apart; of more, the last one goes on.
const MOST: usize = 1 << 10;

/// Times in which calls were lost, in order, apart from each other; ns since the start of the trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LostTimes(Vec<(i64, i64)>);

impl LostTimes {
    /// Calls have no rows, at some time between.
    pub(super) fn take(&mut self, event: &Record<'_>) {
        let (mut at, mut end) = (event.at, event.end());
        // rows come in order, mostly: those that it touches are the last ones
        let first = self.0.partition_point(|(_, until)| *until < at);
        let touched = self.0[first..].iter().take_while(|(from, _)| *from <= end).count();
        for (from, until) in self.0.drain(first..first + touched) {
            (at, end) = (at.min(from), end.max(until));
        }
        self.0.insert(first, (at, end));
        if self.0.len() > MOST
            && let (Some((_, last)), Some((_, until))) = (self.0.pop(), self.0.last_mut())
        {
            *until = last;
        }
    }

    /// Whether any lie there, or may.
    #[must_use]
    pub(super) fn touch(&self, at: i64, end: i64) -> bool {
        self.within(at, end).next().is_some()
    }

    /// How much of that time they may lie in, ns.
    #[must_use]
    pub(super) fn ns_between(&self, at: i64, end: i64) -> u64 {
        let parts = self.within(at, end);
        parts.fold(0, |mut sum: u64, (from, until)| {
            sum.grow(until.min(end).saturating_sub(from.max(at)).max(0).unsigned_abs());
            sum
        })
    }

    fn within(&self, at: i64, end: i64) -> impl Iterator<Item = (i64, i64)> {
        let first = self.0.partition_point(|(_, until)| *until < at);
        self.0[first..]
            .iter()
            .copied()
            .take_while(move |(from, _)| *from <= end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(times: &[(i64, i64)]) -> LostTimes {
        let mut lost = LostTimes::default();
        times
            .iter()
            .for_each(|(from, to)| lost.take(&Record::lost("f", 1, *from, *to)));
        lost
    }

    #[test]
    fn times_that_touch_are_one() {
        let lost = of(&[(10, 20), (40, 50), (20, 30), (10, 20), (45, 60), (0, 5)]);
        assert_eq!(lost.0, [(0, 5), (10, 30), (40, 60)]);
        assert!(lost.touch(29, 31) && lost.touch(35, 45) && !lost.touch(31, 39) && !lost.touch(61, 99));
        assert_eq!((lost.ns_between(25, 50), lost.ns_between(61, 99)), (15, 0));
    }

    #[test]
    fn of_too_many_the_last_goes_on() {
        let many: Vec<(i64, i64)> = (0..2 * MOST as i64)
            .map(|number| (number * 10, number * 10 + 1))
            .collect();
        let lost = of(&many);
        assert_eq!(lost.0.len(), MOST);
        assert!(lost.touch(many[2 * MOST - 1].0, many[2 * MOST - 1].1));
        assert!(!lost.touch(2, 9));
    }
}
