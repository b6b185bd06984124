//! How long the steps of a process took, and what was different in the slowest.

use super::anchor::Anchor;
use super::cutter::{Cutter, Step};
use super::detail::{Detail, Difference, Open};
use super::sample::{Sample, median, percentile};
use crate::findings::interner::Interner;
use crate::findings::table::Grow;
use crate::record::{Kind, Record, Taker};
use std::collections::VecDeque;

/// The first steps: what warms up is among them.
const EARLY: usize = 128;
/// Steps whose durations are kept, and those that are kept in detail: of more, some.
const DURATIONS: usize = 1 << 16;
const DETAILS: usize = 256;
/// Steps that are told one by one.
const SLOWEST: usize = 8;
/// Idle gaps that are told of before the step is over in which they are.
const PENDING: usize = 1024;
/// It is warm after so many steps in a row of at most so many tenths of the median.
const WARM: usize = 3;
const WARM_TENTHS: u64 = 15;

/// The first steps, which others are not like.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WarmUp {
    pub steps: u64,
    pub ns: u64,
}

/// A step that took long.
#[derive(Debug, Clone)]
pub struct Slow {
    pub step: Step,
    pub differences: Vec<Difference>,
    /// Allocated, and idle at least, beyond what is usual.
    pub more_allocated_bytes: u64,
    pub more_idle_ns: u64,
}

/// What there is to tell of the steps of a process.
#[derive(Debug, Clone)]
pub struct Steps {
    pub anchor: Anchor,
    /// All of them.
    pub count: u64,
    /// From the first call of the process to the first step, ns.
    pub before_ns: u64,
    pub warm_up: WarmUp,
    /// Where the first step behind the warm-up begins, and where the last one ends. What follows is of these.
    pub from_ns: i64,
    pub to_ns: i64,
    /// That do about the work of the others: durations are theirs.
    pub usual: u64,
    pub usual_ns: u64,
    pub median_ns: u64,
    pub p99_ns: u64,
    pub min_ns: u64,
    pub max_ns: u64,
    /// Median and 99th percentile are of one of so many steps.
    pub one_of: u64,
    /// Each number by itself the median; `None`: there is no such step.
    pub typical: Option<Detail>,
    /// Slowest first.
    pub slowest: Vec<Slow>,
    /// Those that do something else, or more: how long all of them, and the longest.
    pub unusual: u64,
    pub unusual_ns: u64,
    pub longest_unusual: Vec<Step>,
    /// Nothing that the process had submitted can have been running, in all these steps.
    pub idle_ns: u64,
}

impl Steps {
    /// From the first step behind the warm-up to the end of the last.
    #[must_use]
    pub fn span_ns(&self) -> u64 {
        u64::try_from(self.to_ns.saturating_sub(self.from_ns)).unwrap_or(0)
    }
}

/// How long the steps of a process took.
#[derive(Debug)]
pub struct Account {
    cutter: Cutter,
    open: Open,
    interner: Interner,
    first_call: Option<i64>,
    early: Vec<Detail>,
    /// Of those behind them.
    slowest: Vec<Detail>,
    details: Sample<Detail>,
    /// Of all: numbers and durations of those that are usual.
    durations: Sample<(u64, u64)>,
    later: Later,
    unusual: Vec<Step>,
    pending: VecDeque<(i64, i64)>,
    last_end: i64,
    count: u64,
}

/// Sums of steps behind the early ones.
#[derive(Debug, Clone, Copy, Default)]
struct Later {
    usual: u64,
    usual_ns: u64,
    min_ns: Option<u64>,
    unusual: u64,
    unusual_ns: u64,
    /// Of all, usual or not.
    idle_ns: u64,
}

impl Later {
    fn take(&mut self, step: &Step) {
        let ns = step.ns();
        if step.usual {
            self.usual += 1;
            self.usual_ns.grow(ns);
            self.min_ns = Some(self.min_ns.map_or(ns, |least| least.min(ns)));
        } else {
            self.unusual += 1;
            self.unusual_ns.grow(ns);
        }
    }
}

impl Taker for Account {
    fn take(&mut self, event: &Record<'_>) {
        match event.kind {
            Kind::Call => self.call(event),
            Kind::Idle if event.pid == self.pid() => self.gap(event.at, event.end()),
            _ => {}
        }
    }
}

impl Account {
    /// Of steps that are cut there.
    #[must_use]
    pub fn new(anchor: Anchor) -> Account {
        Account {
            cutter: Cutter::new(anchor),
            open: Open::default(),
            interner: Interner::default(),
            first_call: None,
            early: Vec::new(),
            slowest: Vec::new(),
            details: Sample::new(DETAILS),
            durations: Sample::new(DURATIONS),
            later: Later::default(),
            unusual: Vec::new(),
            pending: VecDeque::new(),
            last_end: i64::MIN,
            count: 0,
        }
    }

    fn pid(&self) -> u32 {
        self.cutter.anchor().pid
    }

    fn call(&mut self, event: &Record<'_>) {
        let cut = self.cutter.take(event);
        if event.pid != self.pid() {
            return;
        }
        self.first_call.get_or_insert(event.at);
        // a call within which a step ends belongs to that step
        let ends_behind = cut.step.is_some_and(|step| step.end > event.at);
        if let Some(step) = cut.step.filter(|_| !ends_behind) {
            self.close(step);
        }
        if event.depth == 0 {
            self.open.outermost(event);
        }
        if cut.counts {
            self.open.call(event, &mut self.interner);
        }
        if let Some(step) = cut.step.filter(|_| ends_behind) {
            self.close(step);
        }
    }

    fn close(&mut self, step: Step) {
        let detail = self.open.close(step);
        self.count += 1;
        self.last_end = step.end;
        if step.usual {
            self.durations.push(|| (step.number, step.ns()));
        } else {
            keep_longest(&mut self.unusual, step, Step::ns);
        }
        if self.early.len() < EARLY {
            self.early.push(detail);
            return;
        }
        self.later.take(&step);
        if step.usual {
            self.details.push(|| detail.clone());
            keep_longest(&mut self.slowest, detail, |detail| detail.step.ns());
        }
    }

    fn gap(&mut self, at: i64, end: i64) {
        self.pending.push_back((at, end));
        while let Some((at, end)) = self.pending.front().copied() {
            if end > self.last_end && self.pending.len() < PENDING {
                break;
            }
            self.pending.pop_front();
            self.idles(at, end);
        }
    }

    fn idles(&mut self, at: i64, end: i64) {
        let later_from = self.early.last().map_or(i64::MAX, |last| last.step.end);
        let (from, to) = (at.max(later_from), end.min(self.last_end));
        self.later
            .idle_ns
            .grow(u64::try_from(to.saturating_sub(from)).unwrap_or(0));
        for details in [&mut self.early, &mut self.details.kept] {
            let first = details.partition_point(|detail| detail.step.end <= at);
            let within = details[first..].iter_mut().take_while(|detail| detail.step.at < end);
            within.for_each(|detail| detail.idles(at, end));
        }
        self.slowest.iter_mut().for_each(|detail| detail.idles(at, end));
    }

    /// After the last row; `None`: there was no step.
    #[must_use]
    pub fn steps(mut self) -> Option<Steps> {
        if let Some(step) = self.cutter.finish() {
            self.close(step);
        }
        for (at, end) in std::mem::take(&mut self.pending) {
            self.idles(at, end);
        }
        let first = self.early.first()?.step.at;
        let cold = self.cold();
        let warm_up = WarmUp {
            steps: cold as u64,
            ns: self.early[..cold]
                .iter()
                .fold(0, |sum: u64, detail| sum.saturating_add(detail.step.ns())),
        };
        let mut durations: Vec<u64> = self
            .durations
            .kept
            .iter()
            .filter(|(number, _)| *number > cold as u64)
            .map(|(_, ns)| *ns)
            .collect();
        durations.sort_unstable();
        let typical = self.typical(cold);
        let (sums, slowest) = (self.sums(cold), self.slowest(cold, typical.as_ref()));
        let unusual = self.unusual.iter().filter(|step| step.number > cold as u64);
        Some(Steps {
            count: self.count,
            before_ns: self
                .first_call
                .map_or(0, |at| u64::try_from(first.saturating_sub(at)).unwrap_or(0)),
            warm_up,
            from_ns: self.early.get(cold).map_or(first, |detail| detail.step.at),
            to_ns: self.last_end,
            usual: sums.usual,
            usual_ns: sums.usual_ns,
            median_ns: percentile(&durations, 50),
            p99_ns: percentile(&durations, 99),
            min_ns: sums.min_ns.unwrap_or(0),
            max_ns: slowest.first().map_or(0, |slow| slow.step.ns()),
            one_of: self.durations.every,
            slowest,
            typical,
            unusual: sums.unusual,
            unusual_ns: sums.unusual_ns,
            longest_unusual: unusual.copied().collect(),
            idle_ns: sums.idle_ns,
            anchor: self.cutter.anchor().clone(),
        })
    }

    /// How many of the first steps others are not like.
    fn cold(&self) -> usize {
        let usual_ns = median(self.durations.kept.iter().map(|(_, ns)| *ns).collect());
        let limit_ns = usual_ns.saturating_mul(WARM_TENTHS) / 10;
        let warm = |detail: &Detail| detail.step.usual && detail.step.ns() <= limit_ns;
        let first = self.early.windows(WARM).position(|steps| steps.iter().all(warm));
        first.unwrap_or(0)
    }

    fn sums(&self, cold: usize) -> Later {
        let mut sums = self.later;
        for detail in &self.early[cold..] {
            sums.take(&detail.step);
            sums.idle_ns.grow(detail.idle_ns);
        }
        sums
    }

    fn warm(&self, cold: usize) -> impl Iterator<Item = &Detail> {
        self.early[cold..].iter().filter(|detail| detail.step.usual)
    }

    fn typical(&self, cold: usize) -> Option<Detail> {
        let sample: Vec<&Detail> = self.warm(cold).chain(&self.details.kept).collect();
        Detail::median_of(&sample)
    }

    fn slowest(&self, cold: usize, typical: Option<&Detail>) -> Vec<Slow> {
        let mut slowest: Vec<&Detail> = self.warm(cold).chain(&self.slowest).collect();
        slowest.sort_by_key(|detail| (std::cmp::Reverse(detail.step.ns()), detail.step.number));
        slowest.truncate(SLOWEST);
        let slow = |detail: &Detail| Slow {
            step: detail.step,
            differences: typical.map_or_else(Vec::new, |typical| detail.differences(typical, &self.interner)),
            more_allocated_bytes: typical.map_or(0, |one| detail.allocated_bytes.saturating_sub(one.allocated_bytes)),
            more_idle_ns: typical.map_or(0, |one| detail.idle_ns.saturating_sub(one.idle_ns)),
        };
        slowest.into_iter().map(slow).collect()
    }
}

/// Keeps the longest few, longest first; of those as long the first.
fn keep_longest<T>(longest: &mut Vec<T>, one: T, ns: impl Fn(&T) -> u64) {
    let place = longest.partition_point(|known| ns(known) >= ns(&one));
    if place < SLOWEST {
        longest.insert(place, one);
        longest.truncate(SLOWEST);
    }
}
