//! Phases as the program calls them (NVTX): how often and how long, and what devices did for calls that were made in them.
//!
//! An activity belongs to the innermost range that was open on the thread of its call when that was entered. Ranges come when they
//! end, activities later than their calls: both are kept until the end, up to a number.

use super::Map;
use super::histogram::Histogram;
use super::texts::{OTHERS, Texts};
use crate::record::{Kind, Record, json};
use serde::Serialize;

/// Names that are told apart; others are one.
const MOST_NAMES: usize = 4096;
/// Ranges, and calls that gave devices work, that are kept to be matched.
const MOST_KEPT: usize = 1 << 20;

/// Ranges of one name in one domain. Times are the host's, from begin to end.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Range {
    /// Empty: the one without a name.
    pub domain: String,
    pub name: String,
    pub count: u64,
    /// Of these, the ones that had not ended when they were last seen.
    pub open: u64,
    pub total_ns: u64,
    pub p50_ns: Option<u64>,
    pub max_ns: u64,
    /// What devices took for calls of which it was the innermost; `None`: no activity was recorded.
    pub(crate) gpu_ns: Option<u64>,
}

/// Moments that the program has marked with one name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Mark {
    pub domain: String,
    pub name: String,
    pub count: u64,
}

/// All of a trace.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Ranges {
    /// Most time first.
    pub ranges: Vec<Range>,
    pub(crate) marks: Vec<Mark>,
    /// What devices took for calls outside all ranges, or whose call was not found.
    pub(crate) gpu_outside_ns: Option<u64>,
    /// There were more than could be matched: times of devices are at least what is said.
    pub(crate) gpu_at_least: bool,
}

/// Domain and name, by number.
type Key = (u32, u32);

#[derive(Debug, Clone, Default)]
struct Tally {
    count: u64,
    open: u64,
    total_ns: u64,
    max_ns: u64,
    times: Histogram,
}

/// A range of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Span {
    tid: u32,
    from: i64,
    /// Of those that begin together, the longest is around the others.
    before_to: std::cmp::Reverse<i64>,
    key: Key,
}

/// What devices took for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Worked {
    tid: u32,
    at: i64,
    ns: u64,
}

/// Phases as the program calls them (NVTX).
#[derive(Debug, Clone, Default)]
pub(super) struct RangeTally {
    texts: Texts,
    of: Map<Key, Tally>,
    marks: Map<Key, u64>,
    spans: Vec<Span>,
    worked: Vec<Worked>,
    /// Of activities without a call.
    uncalled_ns: u64,
    has_activities: bool,
    is_cut: bool,
}

impl RangeTally {
    /// A range or a mark.
    pub(super) fn take(&mut self, event: &Record<'_>) {
        let domain = event.args.and_then(json::domain_of_range).unwrap_or_default();
        let key = (self.texts.number(&domain), self.texts.number(event.name));
        if event.kind == Kind::Mark {
            let key = self.bounded(key, self.marks.len(), self.marks.contains_key(&key));
            let count = self.marks.entry(key).or_default();
            *count = count.saturating_add(1);
            return;
        }
        let key = self.bounded(key, self.of.len(), self.of.contains_key(&key));
        self.add(key, event);
        if !json::is_of_range(event.args, "started") {
            self.keep(event, key);
        }
    }

    fn bounded(&mut self, key: Key, known: usize, is_known: bool) -> Key {
        match is_known || known < MOST_NAMES {
            true => key,
            false => (self.texts.number(""), self.texts.number(OTHERS)),
        }
    }

    fn add(&mut self, key: Key, event: &Record<'_>) {
        let ns = event.ns.unwrap_or(0);
        let tally = self.of.entry(key).or_default();
        tally.count = tally.count.saturating_add(1);
        tally.open += u64::from(json::is_of_range(event.args, "open"));
        tally.total_ns = tally.total_ns.saturating_add(ns);
        tally.max_ns = tally.max_ns.max(ns);
        tally.times.add(ns);
    }

    fn keep(&mut self, event: &Record<'_>, key: Key) {
        if self.spans.len() >= MOST_KEPT {
            self.is_cut = true;
            return;
        }
        self.spans.push(Span {
            tid: event.tid,
            from: event.at,
            before_to: std::cmp::Reverse(event.end()),
            key,
        });
    }

    /// A device has done something.
    pub(super) fn executed(&mut self, event: &Record<'_>) {
        self.has_activities = true;
        let ns = event.ns.unwrap_or(0);
        let Some((tid, at)) = event.args.and_then(json::call_of_activity) else {
            self.uncalled_ns = self.uncalled_ns.saturating_add(ns);
            return;
        };
        let is_full = self.worked.len() >= MOST_KEPT;
        match self.worked.last_mut() {
            Some(last) if (last.tid, last.at) == (tid, at) => last.ns = last.ns.saturating_add(ns),
            _ if is_full => self.is_cut = true,
            _ => self.worked.push(Worked { tid, at, ns }),
        }
    }

    /// What devices took, by the innermost range around each call; and outside of all.
    fn devices(&self) -> (Map<Key, u64>, u64) {
        let (mut spans, mut worked) = (self.spans.clone(), self.worked.clone());
        spans.sort_unstable();
        worked.sort_unstable();
        let (mut sums, mut outside) = (Map::default(), self.uncalled_ns);
        let (mut next, mut open): (_, Vec<Span>) = (spans.into_iter().peekable(), Vec::new());
        for call in worked {
            while let Some(span) = next.next_if(|span| (span.tid, span.from) <= (call.tid, call.at)) {
                open.push(span);
            }
            let is_over = |span: &mut Span| span.tid != call.tid || span.before_to.0 < call.at;
            while open.pop_if(is_over).is_some() {}
            let sum = open
                .last()
                .map_or(&mut outside, |span| sums.entry(span.key).or_insert(0));
            *sum = sum.saturating_add(call.ns);
        }
        (sums, outside)
    }

    pub(super) fn report(&self) -> Ranges {
        let (devices, outside) = match self.of.is_empty() {
            true => (Map::default(), 0),
            false => self.devices(),
        };
        let known = |ns: u64| self.has_activities.then_some(ns);
        let text = |number: u32| self.texts.text(number).to_owned();
        let ranges = self.of.iter().map(|(key, tally)| Range {
            domain: text(key.0),
            name: text(key.1),
            count: tally.count,
            open: tally.open,
            total_ns: tally.total_ns,
            p50_ns: tally.times.quantile(0.5, tally.max_ns),
            max_ns: tally.max_ns,
            gpu_ns: known(devices.get(key).copied().unwrap_or(0)),
        });
        let marks = self.marks.iter().map(|(key, count)| Mark {
            domain: text(key.0),
            name: text(key.1),
            count: *count,
        });
        let (mut ranges, mut marks): (Vec<Range>, Vec<Mark>) = (ranges.collect(), marks.collect());
        ranges.sort_by(|one, two| {
            let by_name = || (&one.domain, &one.name).cmp(&(&two.domain, &two.name));
            two.total_ns.cmp(&one.total_ns).then_with(by_name)
        });
        marks.sort_by(|one, two| {
            let by_name = || (&one.domain, &one.name).cmp(&(&two.domain, &two.name));
            two.count.cmp(&one.count).then_with(by_name)
        });
        Ranges {
            ranges,
            marks,
            gpu_outside_ns: known(outside).filter(|_| !self.of.is_empty()),
            gpu_at_least: self.is_cut && self.has_activities,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(at: i64, ns: u64, name: &'static str, args: &'static str) -> Record<'static> {
        Record {
            ns: Some(ns),
            tid: 8,
            name,
            args: Some(args),
            ..Record::new(Kind::Range, at, 7)
        }
    }

    fn ran(ns: u64, args: &'static str) -> Record<'static> {
        Record {
            ns: Some(ns),
            args: Some(args),
            ..Record::new(Kind::Gpu, 500, 7)
        }
    }

    const NONE: &str = r#"{"domain":""}"#;

    #[test]
    fn times_are_added_up_by_domain_and_name() {
        let mut tally = RangeTally::default();
        for ns in [10, 20, 60] {
            tally.take(&range(0, ns, "step", r#"{"domain":"train"}"#));
        }
        tally.take(&range(0, 5, "step", r#"{"domain":"","open":true}"#));
        tally.take(&Record {
            kind: Kind::Mark,
            ns: None,
            ..range(3, 0, "nan", NONE)
        });
        let report = tally.report();
        let seen: Vec<_> = report
            .ranges
            .iter()
            .map(|one| (&*one.domain, one.count, one.open, one.total_ns))
            .collect();
        assert_eq!(seen, [("train", 3, 0, 90), ("", 1, 1, 5)]);
        // a median is at most a quarter too high
        assert_eq!((report.ranges[0].p50_ns, report.ranges[0].max_ns), (Some(24), 60));
        assert_eq!((report.marks[0].count, report.ranges[0].gpu_ns), (1, None));
    }

    #[test]
    fn what_a_device_does_belongs_to_the_innermost_range_around_its_call() {
        let mut tally = RangeTally::default();
        tally.executed(&ran(1, r#"{"call_tid":8,"call_ts_ns":5}"#));
        tally.executed(&ran(2, r#"{"call_tid":8,"call_ts_ns":15}"#));
        tally.executed(&ran(4, r#"{"call_tid":8,"call_ts_ns":25}"#));
        tally.executed(&ran(8, r#"{"call_tid":9,"call_ts_ns":15}"#));
        tally.executed(&ran(16, r#"{"match":"none"}"#));
        tally.take(&range(10, 10, "inner", NONE));
        tally.take(&range(0, 30, "outer", NONE));
        let report = tally.report();
        let seen: Vec<_> = report.ranges.iter().map(|one| (&*one.name, one.gpu_ns)).collect();
        assert_eq!(seen, [("outer", Some(5)), ("inner", Some(2))]);
        assert_eq!(report.gpu_outside_ns, Some(24), "of another thread, and of no call");
    }

    #[test]
    fn those_of_several_domains_need_not_be_nested() {
        let mut tally = RangeTally::default();
        tally.take(&range(0, 20, "a", r#"{"domain":"a"}"#));
        tally.take(&range(10, 30, "b", r#"{"domain":"b"}"#));
        tally.executed(&ran(1, r#"{"call_tid":8,"call_ts_ns":5}"#));
        tally.executed(&ran(2, r#"{"call_tid":8,"call_ts_ns":15}"#));
        tally.executed(&ran(4, r#"{"call_tid":8,"call_ts_ns":30}"#));
        let gpu: Vec<_> = tally.report().ranges.iter().map(|one| one.gpu_ns).collect();
        assert_eq!(gpu, [Some(6), Some(1)]);
    }

    #[test]
    fn a_name_for_each_step_does_not_fill_the_memory() {
        let mut tally = RangeTally::default();
        for step in 0..2 * MOST_NAMES {
            let name = format!("step {step}");
            tally.take(&Record {
                name: &name,
                ..range(0, 1, "", NONE)
            });
        }
        let report = tally.report();
        assert!(report.ranges.len() <= MOST_NAMES + 1);
        assert_eq!(report.ranges[0].name, OTHERS);
        assert_eq!(
            super::super::sum(report.ranges.iter().map(|one| one.count)),
            2 * MOST_NAMES as u64
        );
    }
}
