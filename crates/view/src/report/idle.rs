//! When nothing that a process had submitted was running, as its devices have told or as calls prove it, and what its host did
//! meanwhile.

mod exact;
#[cfg(test)]
mod tests;

use super::bins::Bins;
use super::functions::Functions;
use crate::model::activity::Why;
use crate::model::snapshot::Snapshot;
use crate::record::Record;
use crate::text::quantity::{duration, share_down};
use exact::{told, worked};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

/// Gaps told one by one.
const LONGEST: usize = 10;
/// Processes whose gaps are followed.
const PROCESSES: usize = 64;
/// Calls of a process that are remembered for gaps told of after them.
const REMEMBERED: usize = 1 << 14;
/// Rows may come out of order by as much.
const WINDOW_NS: i64 = 200_000_000;
/// A gap is told of so long after its end: `GAP_LATE_NS` of the tracer's measures.
const LATE_NS: i64 = 500_000_000;
/// Causes told for one process.
const CAUSES: usize = 10;

/// Idle time of one process: measured, or a lower bound.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Idle {
    pub pid: u32,
    /// What `total_ns` is part of: from the first work given to the device to the last that is known of it; without a
    /// summary the time that the recording covers.
    pub window_ns: u64,
    pub gaps: u64,
    pub total_ns: u64,
    pub(crate) longest_ns: u64,
    /// Its device has told what it did: of several the one that was idle for longest. Else it follows from calls.
    pub measured: bool,
    /// Not everything that gives devices work was seen: no bound.
    pub inferred: bool,
    /// Idle time if streams that were given nothing for a second are done: inferred. At least `total_ns`.
    pub(crate) likely_ns: u64,
    /// Of those told one by one, which last 20 µs and more. Longest first.
    pub longest: Vec<Gap>,
    /// What its threads did in the gaps; most time first. Outermost calls, all threads together: may be more than the
    /// gaps. An empty name: in no call.
    pub(crate) meanwhile: Vec<Meanwhile>,
    /// The time of these gaps, and for how much of it their calls were still remembered when they were told of: the rest is in
    /// no part of `meanwhile`.
    pub(crate) meanwhile_of_ns: u64,
    pub(crate) meanwhile_known_ns: u64,
    /// Length of a step of `idle_ns`.
    pub(crate) step_ns: u64,
    /// Where the first step begins.
    pub(crate) from_ns: i64,
    /// Idle time in each step.
    pub idle_ns: Vec<u64>,
}

/// One gap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Gap {
    pub(crate) at_ns: i64,
    pub ns: u64,
    /// In which function most of it was spent; `None`: in no call, or that is not known.
    pub(crate) mostly_in: Option<String>,
    /// The calls of most of it were still remembered when it was told of.
    pub(crate) host_known: bool,
    /// Why nothing ran, where that was measured.
    pub cause: Option<&'static str>,
}

impl Idle {
    /// `12.3 s of 40.0 s (30.7 %)`, rounded down: a share of at least so much.
    #[must_use]
    pub fn words(&self) -> String {
        share_words(self.total_ns, self.window_ns)
    }
}

/// `12.3 s of 40.0 s (30.7 %)`, rounded down.
pub(super) fn share_words(ns: u64, of_ns: u64) -> String {
    format!("{} of {} ({})", duration(ns), duration(of_ns), at_least(ns, of_ns))
}

/// `30.7 %`, rounded down.
#[must_use]
pub(crate) fn at_least(ns: u64, of_ns: u64) -> String {
    share_down(ns, of_ns.max(1)).unwrap_or_default()
}

/// Time in gaps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Meanwhile {
    pub name: String,
    pub ns: u64,
}

/// The time that rows cover.
#[derive(Debug, Clone, Copy)]
pub(super) struct Covered {
    pub from_ns: i64,
    pub to_ns: i64,
    /// They begin with the trace.
    pub whole: bool,
}

/// The last cumulative measures of a process.
#[derive(Debug, Clone, Copy, Default)]
struct Measured {
    at: i64,
    idle_ns: u64,
    busy_ns: u64,
}

/// An outermost call.
#[derive(Debug, Clone, Copy)]
struct Stay {
    at: i64,
    end: i64,
    function: usize,
    /// When it and all that were entered before it were over.
    reach: i64,
}

/// A gap as its row tells it.
#[derive(Debug, Clone, Copy)]
struct Told {
    at: i64,
    end: i64,
    why: Option<Why>,
}

impl Told {
    fn ns(&self) -> u64 {
        self.end.abs_diff(self.at)
    }
}

/// A gap, and what the host did in it.
#[derive(Debug, Clone, Copy)]
struct Explained {
    gap: Told,
    mostly: Option<usize>,
    host_known: bool,
}

#[derive(Debug, Clone, Default)]
struct Track {
    /// In the order of their entries.
    stays: VecDeque<Stay>,
    waiting: VecDeque<Told>,
    gaps: u64,
    total_ns: u64,
    longest: Vec<Explained>,
    meanwhile: HashMap<usize, u64>,
    outside_ns: u64,
    of_ns: u64,
    known_ns: u64,
    steps: Bins<u64>,
    /// When the last gap was over.
    known_until: i64,
    measured: Option<Measured>,
}

/// When nothing that a process had submitted was running.
#[derive(Debug, Clone, Default)]
pub(super) struct IdleTally {
    tracks: BTreeMap<u32, Track>,
}

impl IdleTally {
    /// An outermost call.
    pub(super) fn call(&mut self, event: &Record<'_>, function: usize) {
        if self.tracks.len() >= PROCESSES && !self.tracks.contains_key(&event.pid) {
            return;
        }
        let track = self.tracks.entry(event.pid).or_default();
        track.remember(event.at, event.end(), function);
        track.settle(event.at);
    }

    /// A gap.
    pub(super) fn gap(&mut self, event: &Record<'_>, origin: i64) {
        let Some(ns) = event.ns else { return };
        if self.tracks.len() >= PROCESSES && !self.tracks.contains_key(&event.pid) {
            return;
        }
        let track = self.tracks.entry(event.pid).or_default();
        if track.gaps == 0 {
            track.steps = Bins::from(origin);
        }
        track.gaps += 1;
        track.total_ns = track.total_ns.saturating_add(ns);
        track.known_until = track.known_until.max(event.end());
        track
            .steps
            .spread(event.at, event.end(), |step, part| *step = step.saturating_add(part));
        track.waiting.push_back(Told {
            at: event.at,
            end: event.end(),
            why: Why::from_name(event.name),
        });
    }

    /// A cumulative measure: idle time is 0, busy time 1.
    pub(super) fn measured(&mut self, event: &Record<'_>, ns: u64, which: usize) {
        let Some(track) = self.tracks.get_mut(&event.pid) else {
            return;
        };
        let measured = track.measured.get_or_insert_default();
        measured.at = measured.at.max(event.at);
        match which {
            0 => measured.idle_ns = ns,
            _ => measured.busy_ns = ns,
        }
    }

    /// Until when idle time is known of all processes: a gap is told of once no call can cut it any more.
    pub(super) fn known_until(&self) -> Option<i64> {
        self.tracks.values().filter_map(Track::known_until).min()
    }

    /// What `exact` says replaces what rows add up to.
    pub(super) fn list(&self, functions: &Functions, covered: &Covered, exact: Option<&Snapshot>) -> Vec<Idle> {
        let worked = exact.map(worked).unwrap_or_default();
        let pids: BTreeSet<u32> = self.tracks.keys().chain(worked.keys()).copied().collect();
        let idles = pids.into_iter().map(|pid| {
            let mut track = self.tracks.get(&pid).cloned().unwrap_or_default();
            track.settle(i64::MAX);
            let idle = track.report(pid, functions, covered);
            let idle = worked.get(&pid).map_or(idle.clone(), |gpu| idle.with_reported(gpu));
            told(exact, pid).map_or(idle.clone(), |device| idle.with_told(device))
        });
        let mut idle: Vec<Idle> = idles.filter(|idle| idle.total_ns > 0).collect();
        idle.sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then(a.pid.cmp(&b.pid)));
        idle
    }
}

impl Track {
    /// Nearly all come in the order of their entries.
    fn remember(&mut self, at: i64, end: i64, function: usize) {
        if self.stays.len() == REMEMBERED {
            self.stays.pop_front();
        }
        let before = self.stays.iter().rposition(|other| other.at <= at);
        let reach = before.map_or(end, |before| self.stays[before].reach.max(end));
        let place = before.map_or(0, |before| before + 1);
        let stay = Stay {
            at,
            end,
            function,
            reach,
        };
        self.stays.insert(place, stay);
        for later in self.stays.range_mut(place + 1..) {
            later.reach = later.reach.max(reach);
        }
    }

    /// Looks at gaps that no further row can tell of.
    fn settle(&mut self, now: i64) {
        while let Some(gap) = self.waiting.front().copied() {
            if gap.end.saturating_add(WINDOW_NS) > now {
                break;
            }
            self.waiting.pop_front();
            self.explain(gap);
        }
    }

    fn explain(&mut self, gap: Told) {
        let (at, end) = (gap.at, gap.end);
        let mut parts: Vec<(i64, i64, usize)> = Vec::new();
        let entered = self.stays.partition_point(|stay| stay.at < end);
        let within = self.stays.range(..entered).rev().take_while(|stay| stay.reach > at);
        for stay in within.filter(|stay| stay.end > at) {
            parts.push((stay.at.max(at), stay.end.min(end), stay.function));
        }
        let mut by: HashMap<usize, u64> = HashMap::new();
        for (from, to, function) in &parts {
            let sum = by.entry(*function).or_default();
            *sum = sum.saturating_add(to.abs_diff(*from));
        }
        // of what was before the first remembered call nothing is known
        let forgotten = self.stays.front().filter(|_| self.stays.len() == REMEMBERED);
        let known_from = forgotten.map_or(at, |first| first.at.clamp(at, end));
        let known = end.abs_diff(known_from);
        let outside = known.saturating_sub(covered(&mut parts));
        self.of_ns = self.of_ns.saturating_add(gap.ns());
        self.known_ns = self.known_ns.saturating_add(known);
        self.outside_ns = self.outside_ns.saturating_add(outside);
        for (function, ns) in &by {
            let sum = self.meanwhile.entry(*function).or_default();
            *sum = sum.saturating_add(*ns);
        }
        let most = by.into_iter().max_by_key(|(function, ns)| (*ns, *function));
        let place = self.longest.partition_point(|other| other.gap.ns() >= gap.ns());
        let explained = Explained {
            gap,
            mostly: most.filter(|(_, ns)| *ns >= outside).map(|(function, _)| function),
            host_known: known >= gap.ns() / 2,
        };
        self.longest.insert(place, explained);
        self.longest.truncate(LONGEST);
    }

    fn known_until(&self) -> Option<i64> {
        let measured = self.measured.map(|measured| measured.at.saturating_sub(LATE_NS));
        measured.map(|until| until.max(self.known_until))
    }

    /// Idle time and what it is part of, as far as that is known without a summary.
    fn part(&self, covered: &Covered) -> (u64, u64) {
        match self.measured.filter(|_| covered.whole) {
            // cumulative since the beginning, and of gaps of any length
            Some(measured) => {
                let idle_ns = measured.idle_ns.max(self.total_ns);
                (idle_ns, idle_ns.saturating_add(measured.busy_ns))
            }
            None => {
                let until = self.known_until().unwrap_or(covered.to_ns).min(covered.to_ns);
                (
                    self.total_ns,
                    until.saturating_sub(covered.from_ns).max(0).unsigned_abs(),
                )
            }
        }
    }

    fn report(&self, pid: u32, functions: &Functions, covered: &Covered) -> Idle {
        let (total_ns, window_ns) = self.part(covered);
        let longest: Vec<Gap> = self
            .longest
            .iter()
            .map(
                |Explained {
                     gap,
                     mostly,
                     host_known,
                 }| Gap {
                    at_ns: gap.at,
                    ns: gap.ns(),
                    cause: gap.why.map(Why::name),
                    mostly_in: mostly.map(|function| functions.name(function).to_owned()),
                    host_known: *host_known,
                },
            )
            .collect();
        let name = |function: &usize| functions.name(*function).to_owned();
        let mut meanwhile: Vec<Meanwhile> = self
            .meanwhile
            .iter()
            .map(|(function, ns)| Meanwhile {
                name: name(function),
                ns: *ns,
            })
            .collect();
        meanwhile.push(Meanwhile {
            name: String::new(),
            ns: self.outside_ns,
        });
        meanwhile.sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| a.name.cmp(&b.name)));
        meanwhile.truncate(CAUSES);
        let half = self.steps.width() as i64 / 2;
        Idle {
            pid,
            window_ns,
            measured: false,
            inferred: false,
            likely_ns: total_ns,
            gaps: self.gaps,
            total_ns,
            longest_ns: longest.first().map_or(0, |gap| gap.ns),
            longest,
            meanwhile,
            meanwhile_of_ns: self.of_ns,
            meanwhile_known_ns: self.known_ns,
            step_ns: self.steps.width(),
            from_ns: self.steps.iter().next().map_or(0, |(at, _)| at.saturating_sub(half)),
            idle_ns: self.steps.iter().map(|(_, ns)| *ns).collect(),
        }
    }
}

/// How long at least one of them lasted.
fn covered(parts: &mut [(i64, i64, usize)]) -> u64 {
    parts.sort_unstable();
    let (mut sum, mut until) = (0_u64, i64::MIN);
    for (from, to, _) in parts.iter() {
        let from = (*from).max(until);
        if *to > from {
            sum = sum.saturating_add(to.abs_diff(from));
        }
        until = until.max(*to);
    }
    sum
}
