//! When something ran: the union of intervals, exact in whatever order they come.

/// Intervals that are kept apart; beyond these the oldest become a sum.
const MOST: usize = 1 << 21;
/// Those that wait to be sorted in.
const WAITING: usize = 1 << 12;

/// When something ran.
#[derive(Debug, Clone, Default)]
pub struct Busy {
    /// Disjoint, ascending.
    kept: Vec<(u64, u64)>,
    waiting: Vec<(u64, u64)>,
    folded: Folded,
    first: Option<u64>,
    /// From there on it was not recorded whether anything ran, until something did that was. Ascending.
    ends: Vec<u64>,
}

/// What the oldest were.
#[derive(Debug, Clone, Copy, Default)]
struct Folded {
    any: bool,
    busy_ns: u64,
    gaps: u64,
    longest_gap_ns: u64,
    unmeasured_ns: u64,
    /// Where the last of them ended.
    until: u64,
    /// Work that came when its time had been folded already: some of it may be missing.
    late_ns: u64,
}

/// What the intervals add up to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span {
    pub first: u64,
    pub last: u64,
    pub busy_ns: u64,
    pub gaps: u64,
    pub longest_gap_ns: u64,
    /// It was not recorded whether anything ran.
    pub unmeasured_ns: u64,
    /// More than that may have been busy.
    pub late_ns: u64,
}

/// Per cent of a span: less than so much beside a part is not worth telling the part apart.
const EDGES_PERCENT: u64 = 5;

impl Span {
    /// What of the part from `from` until `until` lies within; `None`: nothing, or all but a little.
    #[must_use]
    pub fn edged(&self, (from, until): (u64, u64)) -> Option<(u64, u64)> {
        let (from, until) = (from.max(self.first), until.min(self.last));
        let part = until.checked_sub(from).filter(|part| *part > 0)?;
        let all = self.last - self.first;
        let is_less = (all - part).saturating_mul(100) >= all.saturating_mul(EDGES_PERCENT);
        is_less.then_some((from, until))
    }

    /// From the first begin to the last end, as far as that was recorded.
    #[must_use]
    pub fn measured_ns(&self) -> u64 {
        (self.last - self.first).saturating_sub(self.unmeasured_ns)
    }

    /// Of that, nothing ran so long.
    #[must_use]
    pub fn idle_ns(&self) -> u64 {
        self.measured_ns().saturating_sub(self.busy_ns)
    }
}

impl Busy {
    /// Something ran from `begin` to `end`.
    pub fn add(&mut self, begin: u64, end: u64) {
        self.first = Some(self.first.map_or(begin, |first| first.min(begin)));
        match self.kept.last_mut() {
            // mostly they come in order
            Some(last) if self.waiting.is_empty() && begin >= last.0 && begin <= last.1 => last.1 = last.1.max(end),
            _ => self.waiting.push((begin, end)),
        }
        if self.waiting.len() >= WAITING {
            self.sort_in(MOST);
        }
    }

    /// Nothing that begins from `at` on is recorded, for a while.
    pub(super) fn close(&mut self, at: u64) {
        if self.first.is_some() {
            self.ends.push(at);
            self.add(at, at);
        }
    }

    fn sort_in(&mut self, most: usize) {
        self.waiting.sort_unstable();
        let first = self.waiting.first().map_or(u64::MAX, |interval| interval.0);
        // what ends before the first of the new ones stays as it is
        let stays = self.kept.partition_point(|interval| interval.1 < first);
        let mut moved = self.kept.split_off(stays);
        moved.append(&mut self.waiting);
        moved.sort_unstable();
        for (begin, end) in moved {
            match self.kept.last_mut() {
                Some(last) if begin <= last.1 => last.1 = last.1.max(end),
                _ => self.kept.push((begin, end)),
            }
        }
        if self.kept.len() > most {
            self.fold(self.kept.len() - most / 2);
        }
    }

    fn fold(&mut self, count: usize) {
        let (folded, ends) = (&mut self.folded, &self.ends);
        let is_end = |at: u64| ends.binary_search(&at).is_ok();
        for (begin, end) in self.kept.drain(..count) {
            let new = begin.max(folded.until);
            folded.late_ns += new.min(end) - begin;
            if folded.any && end <= folded.until {
                continue;
            }
            if folded.any && new > folded.until && is_end(folded.until) {
                folded.unmeasured_ns += new - folded.until;
            } else if folded.any && new > folded.until {
                folded.gaps += 1;
                folded.longest_gap_ns = folded.longest_gap_ns.max(new - folded.until);
            }
            folded.any = true;
            folded.busy_ns += end.saturating_sub(new);
            folded.until = folded.until.max(end);
        }
    }

    /// What they add up to; `None`: nothing ran.
    #[must_use]
    pub fn span(&self) -> Option<Span> {
        let first = self.first?;
        let mut all = self.clone();
        all.sort_in(0);
        let last = all.folded.until;
        Some(Span {
            first: first.min(last),
            last,
            busy_ns: all.folded.busy_ns,
            gaps: all.folded.gaps,
            longest_gap_ns: all.folded.longest_gap_ns,
            unmeasured_ns: all.folded.unmeasured_ns,
            late_ns: all.folded.late_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_told_apart_where_more_than_a_little_lies_beside_it() {
        let span = Span {
            first: 1000,
            last: 2000,
            ..Span::default()
        };
        assert_eq!(span.edged((1040, 1990)), Some((1040, 1990)));
        assert_eq!(span.edged((1040, 3000)), None, "all but 4 %");
        assert_eq!(span.edged((0, 1500)), Some((1000, 1500)));
        assert_eq!(span.edged((2000, 3000)), None);
        assert_eq!(span.edged((1500, 1400)), None);
    }
}
