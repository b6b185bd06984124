//! The time within ranges of a name (NVTX): which rows of a trace lie there.
//!
//! A row lies there whose beginning does, by the ranges of its process on any of its threads: what a thread of autograd does
//! during a step is of that step. Gaps are cut. What stands for a time as a whole, such as totals, has no place there.

use crate::catalog::glob_matches;
use crate::record::{Kind, Meta, Record, Taker};
use crate::text::quantity::{duration, plural};
use std::collections::BTreeMap;

/// Ranges that are taken in.
const MOST: usize = 1 << 20;

/// From when to when, ns since the start of the trace, both included; in order, and none touches the next.
type Spans = Vec<(i64, i64)>;

/// When ranges of a name were open, by process. It is a trace's first reader.
#[derive(Debug, Clone, Default)]
pub struct Within {
    glob: String,
    of: BTreeMap<u32, Spans>,
    taken: usize,
    left_out: u64,
}

impl Within {
    /// Of ranges whose name matches `glob`.
    #[must_use]
    pub fn of(glob: &str) -> Within {
        Within {
            glob: glob.to_owned(),
            ..Within::default()
        }
    }

    /// What is known once all rows have been taken; `None`: there is no such range.
    #[must_use]
    pub fn whole(mut self) -> Option<Within> {
        self.of.values_mut().for_each(merge);
        (self.taken > 0).then_some(self)
    }

    /// What was looked at, as a sentence.
    #[must_use]
    pub fn words(&self) -> String {
        let all = self.of.values().flatten().map(|(from, to)| to.abs_diff(*from));
        let time = duration(all.fold(0, u64::saturating_add));
        let left_out = match self.left_out {
            0 => String::new(),
            more => format!("; {} were too many to be taken in", plural(more, "later range")),
        };
        format!(
            "only what began within {} named {}, {time} in all{left_out}: what was counted without a row is missing",
            plural(self.taken as u64, "range"),
            self.glob
        )
    }

    /// The span that holds `at`; a row of no process lies in that of any.
    fn holds(&self, pid: u32, at: i64) -> bool {
        let holds = |spans: &Spans| {
            let next = spans.partition_point(|(from, _)| *from <= at);
            next.checked_sub(1).is_some_and(|before| spans[before].1 >= at)
        };
        match pid {
            0 => self.of.values().any(holds),
            pid => self.of.get(&pid).is_some_and(holds),
        }
    }

    /// What of a gap lies within.
    fn parts(&self, pid: u32, at: i64, end: i64) -> impl Iterator<Item = (i64, i64)> {
        let spans = self.of.get(&pid).map_or(&[][..], |spans| spans.as_slice());
        let first = spans.partition_point(|(_, to)| *to <= at);
        let within = spans[first..].iter().take_while(move |(from, _)| *from < end);
        within.map(move |(from, to)| (at.max(*from), end.min(*to)))
    }

    /// Hands what lies within to `taker`.
    pub fn only<'a>(&'a self, taker: &'a mut dyn Taker) -> Only<'a> {
        Only {
            within: self,
            taker,
            rows: 0,
        }
    }
}

fn merge(spans: &mut Spans) {
    spans.sort_unstable();
    let mut merged: Spans = Vec::with_capacity(spans.len());
    for (from, to) in spans.drain(..) {
        match merged.last_mut().filter(|(_, end)| *end >= from) {
            Some((_, end)) => *end = to.max(*end),
            None => merged.push((from, to)),
        }
    }
    *spans = merged;
}

impl Taker for Within {
    fn take(&mut self, record: &Record<'_>) {
        if record.kind != Kind::Range || !glob_matches(&self.glob, record.name) {
            return;
        }
        if self.taken == MOST {
            self.left_out += 1;
            return;
        }
        self.taken += 1;
        let spans = self.of.entry(record.pid).or_default();
        spans.push((record.at, record.end()));
    }
}

/// The second reader. See [`Within::only`].
pub struct Only<'a> {
    within: &'a Within,
    taker: &'a mut dyn Taker,
    /// That were handed on.
    pub rows: u64,
}

impl Only<'_> {
    fn hand(&mut self, record: &Record<'_>) {
        self.rows += 1;
        self.taker.take(record);
    }
}

impl Taker for Only<'_> {
    fn start(&mut self, meta: &Meta) {
        self.taker.start(meta);
    }

    fn take(&mut self, record: &Record<'_>) {
        match record.kind {
            // who lives is worth knowing at any time
            Kind::Process | Kind::ThreadName => self.hand(record),
            Kind::Count | Kind::Snapshot | Kind::Summary => {}
            Kind::Idle | Kind::DeviceIdle => {
                for (at, end) in self.within.parts(record.pid, record.at, record.end()) {
                    let ns = Some(end.abs_diff(at));
                    self.hand(&Record { at, ns, ..*record });
                }
            }
            _ if self.within.holds(record.pid, record.at) => self.hand(record),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Default)]
    struct Rows(Vec<(Kind, i64, i64)>);

    impl Taker for Rows {
        fn take(&mut self, record: &Record<'_>) {
            self.0.push((record.kind, record.at, record.end()));
        }
    }

    fn row(kind: Kind, pid: u32, at: i64, ns: u64, name: &'static str) -> Record<'static> {
        Record {
            ns: Some(ns),
            name,
            ..Record::new(kind, at, pid)
        }
    }

    fn within(rows: &[Record<'_>], glob: &str) -> Vec<(Kind, i64, i64)> {
        let mut within = Within::of(glob);
        rows.iter().for_each(|row| within.take(row));
        let (within, mut left) = (within.whole().expect("a range"), Rows::default());
        let mut only = within.only(&mut left);
        rows.iter().for_each(|row| only.take(row));
        assert_eq!(only.rows as usize, left.0.len());
        left.0
    }

    #[test]
    fn what_begins_in_a_range_of_its_process_is_left() {
        let rows = [
            row(Kind::Range, 7, 10, 10, "step 1"),
            row(Kind::Range, 7, 50, 10, "step 2"),
            row(Kind::Range, 7, 70, 10, "other"),
            row(Kind::Call, 7, 5, 10, "before"),
            row(Kind::Call, 7, 15, 90, "in"),
            row(Kind::Call, 8, 15, 1, "of another process"),
            row(Kind::Gpu, 7, 60, 1, "at its end"),
            row(Kind::Xid, 0, 55, 0, "of no process"),
            row(Kind::Count, 7, 55, 0, "of a whole second"),
        ];
        let left = [
            (Kind::Range, 10, 20),
            (Kind::Range, 50, 60),
            (Kind::Call, 15, 105),
            (Kind::Gpu, 60, 61),
            (Kind::Xid, 55, 55),
        ];
        assert_eq!(within(&rows, "step *"), left);
    }

    #[test]
    fn gaps_are_cut() {
        let rows = [
            row(Kind::Range, 7, 10, 10, "step"),
            row(Kind::Range, 7, 15, 15, "step"),
            row(Kind::Range, 7, 50, 10, "step"),
            row(Kind::Idle, 7, 0, 55, ""),
        ];
        let left = within(&rows, "step");
        assert_eq!(left[3..], [(Kind::Idle, 10, 30), (Kind::Idle, 50, 55)]);
    }

    #[test]
    fn a_name_that_no_range_has_is_said() {
        assert!(Within::of("step").whole().is_none());
    }

    proptest! {
        #[test]
        fn a_row_is_left_exactly_where_a_range_holds_its_beginning(
            ranges in proptest::collection::vec((0i64..100, 0u64..20), 1..10), at in 0i64..130,
        ) {
            let mut rows: Vec<Record<'_>> = ranges.iter().map(|(at, ns)| row(Kind::Range, 7, *at, *ns, "x")).collect();
            rows.push(row(Kind::Call, 7, at, 5, "call"));
            let is_within = ranges.iter().any(|(from, ns)| (*from..=*from + *ns as i64).contains(&at));
            let left = within(&rows, "x").into_iter().any(|(kind, ..)| kind == Kind::Call);
            prop_assert_eq!(left, is_within);
        }
    }
}
