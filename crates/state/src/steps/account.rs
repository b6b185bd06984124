//! How long the steps of a process took, and what was different in the slowest.

use super::anchor::Anchor;
use super::cutter::Cutter;
use super::detail::{By, Detail, Open, SAID_BY};
use super::dry::Dry;
use super::follower::{Follow, Followed};
use super::lost::LostTimes;
use super::piece::{Call, Piece, What};
use super::ranged::{Out, Ranged};
use super::sample::{Sample, median, percentile};
use crate::findings::interner::Interner;
use crate::findings::table::Grow;
use crate::model::step::{Origin, Slow, Step, Steps, Told, WarmUp};
use std::collections::VecDeque;

/// The first steps: what warms up is among them.
const EARLY: usize = 128;
/// Steps whose durations are kept, and those that are kept in detail: of more, some.
const DURATIONS: usize = 1 << 16;
const DETAILS: usize = 256;
/// Steps that are told one by one.
const SLOWEST: usize = 8;
/// Idle gaps that are told of before the step is over in which they are, by who says so.
const PENDING: [usize; SAID_BY] = [1 << 10, 1 << 16];
/// It is warm after so many steps in a row of at most so many tenths of the median.
const WARM: usize = 3;
const WARM_TENTHS: u64 = 15;

/// How long the steps of a process took.
#[derive(Debug)]
pub struct Account {
    cutter: Cutter,
    /// Where the program says what its steps are, that cuts.
    ranged: Option<Box<Ranged>>,
    open: Open,
    first_call: Option<i64>,
    early: Vec<Detail>,
    /// Of those behind them.
    slowest: Vec<Detail>,
    details: Sample<Detail>,
    /// Of all: numbers and durations of those that are usual.
    durations: Sample<(u64, u64)>,
    later: Later,
    unusual: Vec<Step>,
    pending: [VecDeque<(i64, i64)>; SAID_BY],
    devices: Devices,
    last_end: i64,
    count: u64,
}

/// What devices have told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Devices {
    Nothing,
    All,
    /// Some is missing here.
    Some,
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
    idle_ns: [u64; SAID_BY],
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

impl Follow for Account {
    fn of(anchor: &Anchor) -> Account {
        Account::new(anchor.clone())
    }

    fn take(&mut self, piece: &Piece) {
        match &piece.what {
            _ if piece.pid != self.pid() => {}
            _ if self.ranged.is_some() => self.cut_at_ranges(|ranged, out| ranged.take(piece, out)),
            What::Call(call) => self.call(piece, call),
            What::Idle => self.gap(By::Rows, piece.at, piece.end),
            What::Range(_) => {}
        }
    }

    fn dried(&mut self, dry: Dry) {
        if dry.pid != self.pid() {
            return;
        }
        if self.devices == Devices::Nothing {
            self.devices = Devices::All;
        }
        self.gap(By::Devices, dry.at, dry.end);
    }

    fn misses_dry(&mut self) {
        self.devices = Devices::Some;
    }
}

impl Account {
    /// Of steps that are cut there.
    fn new(anchor: Anchor) -> Account {
        let is_range = matches!(anchor.told.origin, Origin::Range { .. });
        Account {
            ranged: is_range.then(|| Box::new(Ranged::new(anchor.clone()))),
            cutter: Cutter::new(anchor),
            open: Open::default(),
            first_call: None,
            early: Vec::new(),
            slowest: Vec::new(),
            details: Sample::new(DETAILS),
            durations: Sample::new(DURATIONS),
            later: Later::default(),
            unusual: Vec::new(),
            pending: Default::default(),
            devices: Devices::Nothing,
            last_end: i64::MIN,
            count: 0,
        }
    }

    fn pid(&self) -> u32 {
        self.cutter.pid()
    }

    fn call(&mut self, piece: &Piece, call: &Call) {
        let over = self.cutter.take(piece);
        self.first_call.get_or_insert(piece.at);
        // a call within which a step ends belongs to that step
        let ends_behind = over.is_some_and(|step| step.end > piece.at);
        if let Some(step) = over.filter(|_| !ends_behind) {
            self.close(step);
        }
        if call.outermost {
            self.open.outermost(piece);
        }
        if call.counts {
            self.open.call(call, piece.ns());
        }
        if let Some(step) = over.filter(|_| ends_behind) {
            self.close(step);
        }
    }

    fn cut_at_ranges(&mut self, cut: impl FnOnce(&mut Ranged, &mut dyn FnMut(Out<'_>))) {
        let Some(mut ranged) = self.ranged.take() else { return };
        cut(&mut ranged, &mut |out| self.take_out(&out));
        self.ranged = Some(ranged);
    }

    fn take_out(&mut self, out: &Out<'_>) {
        match out {
            Out::Step(step) => self.close(*step),
            Out::Row { piece, within } => match &piece.what {
                What::Call(call) => {
                    self.first_call.get_or_insert(piece.at);
                    if *within && call.outermost {
                        self.open.outermost(piece);
                    }
                    if *within && call.counts {
                        self.open.call(call, piece.ns());
                    }
                }
                What::Idle => self.gap(By::Rows, piece.at, piece.end),
                What::Range(_) => {}
            },
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

    fn gap(&mut self, by: By, at: i64, end: i64) {
        let place = by as usize;
        self.pending[place].push_back((at, end));
        while let Some((at, end)) = self.pending[place].front().copied() {
            let is_early = end > self.last_end;
            if is_early && self.pending[place].len() < PENDING[place] {
                break;
            }
            if is_early && by == By::Devices {
                self.devices = Devices::Some;
            }
            self.pending[place].pop_front();
            self.idles(by, at, end);
        }
    }

    fn idles(&mut self, by: By, at: i64, end: i64) {
        let later_from = self.early.last().map_or(i64::MAX, |last| last.step.end);
        let (from, to) = (at.max(later_from), end.min(self.last_end));
        self.later.idle_ns[by as usize].grow(u64::try_from(to.saturating_sub(from)).unwrap_or(0));
        for details in [&mut self.early, &mut self.details.kept] {
            let first = details.partition_point(|detail| detail.step.end <= at);
            let within = details[first..].iter_mut().take_while(|detail| detail.step.at < end);
            within.for_each(|detail| detail.idles(by, at, end));
        }
        self.slowest.iter_mut().for_each(|detail| detail.idles(by, at, end));
    }

    /// Who says when devices had nothing to do. `measured`: what devices did was told of, all of it.
    fn by(&self, measured: bool) -> By {
        match measured && self.devices == Devices::All {
            true => By::Devices,
            false => By::Rows,
        }
    }

    /// After the last row; `None`: there was no step. `since`: from when on there were rows, if not from the first. `measured`: see
    /// [`Self::by`].
    pub(super) fn steps(
        mut self,
        names: &Interner,
        anchor: Anchor,
        since: Option<i64>,
        measured: bool,
    ) -> Option<Steps> {
        if let Some(step) = self.cutter.finish() {
            self.close(step);
        }
        self.cut_at_ranges(Ranged::finish);
        let by = self.by(measured && since.is_none());
        for (at, end) in std::mem::take(&mut self.pending[by as usize]) {
            self.idles(by, at, end);
        }
        let first = self.early.first()?.step.at;
        let cold = if since.is_some() { 0 } else { self.cold() };
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
        let (sums, slowest) = (self.sums(cold), self.slowest(cold, typical.as_ref(), names, by));
        let unusual = self.unusual.iter().filter(|step| step.number > cold as u64);
        Some(Steps {
            count: self.count,
            since_ns: since,
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
            outside_ns: typical.as_ref().map(Detail::outside_ns),
            unusual: sums.unusual,
            unusual_ns: sums.unusual_ns,
            longest_unusual: unusual.copied().collect(),
            idle_ns: sums.idle_ns[by as usize],
            idle_measured: by == By::Devices,
            lost_ns: 0,
            anchor: match &self.ranged {
                Some(ranged) => ranged.told(),
                None => anchor.told,
            },
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
            let idle = sums.idle_ns.iter_mut().zip(detail.idle_ns);
            idle.for_each(|(sum, ns)| sum.grow(ns));
        }
        sums
    }

    fn warm(&self, cold: usize) -> impl Iterator<Item = &Detail> {
        self.early[cold..].iter().filter(|detail| detail.step.usual)
    }

    fn typical(&self, cold: usize) -> Option<Detail> {
        // as many of the early ones as of those behind them
        let early = self.warm(cold).step_by(self.details.every as usize);
        let sample: Vec<&Detail> = early.chain(&self.details.kept).collect();
        Detail::median_of(&sample)
    }

    fn slowest(&self, cold: usize, typical: Option<&Detail>, names: &Interner, by: By) -> Vec<Slow> {
        let idle_ns = |detail: &Detail| detail.idle_ns[by as usize];
        let mut slowest: Vec<&Detail> = self.warm(cold).chain(&self.slowest).collect();
        slowest.sort_by_key(|detail| (std::cmp::Reverse(detail.step.ns()), detail.step.number));
        slowest.truncate(SLOWEST);
        let slow = |detail: &Detail| Slow {
            step: detail.step,
            differences: typical.map_or_else(Vec::new, |typical| detail.differences(typical, names)),
            more_allocated_bytes: typical.map_or(0, |one| detail.allocated_bytes.saturating_sub(one.allocated_bytes)),
            more_idle_ns: typical.map_or(0, |one| idle_ns(detail).saturating_sub(idle_ns(one))),
            lost: false,
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

impl Followed<Account> {
    /// What there is to tell of the steps of each process. `measured`: where devices told of what they did, that is all of it.
    #[must_use]
    pub fn told(self, measured: bool) -> Told {
        let Followed {
            cuts,
            names,
            why_none,
            lost,
            ..
        } = self;
        let found = cuts
            .into_iter()
            .filter_map(|cut| cut.to.steps(&names, cut.anchor, cut.since, measured))
            .map(|steps| doubted(steps, &lost));
        Told {
            found: found.collect(),
            why_none,
        }
    }
}

/// With what lost calls put in doubt.
fn doubted(mut steps: Steps, lost: &LostTimes) -> Steps {
    steps.lost_ns = lost.ns_between(steps.from_ns, steps.to_ns);
    for slow in &mut steps.slowest {
        slow.lost = lost.touch(slow.step.at, slow.step.end);
    }
    steps
}
