//! Why devices waited: the gaps between what they have done, of each device the sum of each cause, and of each process the longer ones.
//!
//! Owns when a gap is known, and whether calls or records of the GPU tell of a process. Causes are [`super::causes`]' business.

#[cfg(test)]
mod tests;

use super::along::Along;
use super::causes::{Asked, Why, why};
use super::gaps::{Gap, Ran, Track};
use super::overheads::{Overhead, Overheads};
use super::sums::{self, CauseTotal, Sums};
use super::threads::{Called, Place, Stay, Threads};
use super::total::Total;
use super::windows::{Turn, Windows};
use super::{Activity, Cause};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// Places of one cause that are told apart.
const PLACES: usize = 256;
/// Of a part of the time that is asked for, as much must be known.
const LEAST_PERCENT: u64 = 80;
/// Gaps that are told one by one and have not been taken.
const UNTAKEN: usize = 1 << 16;
/// Bounds by calls that wait until it is known whether they are needed.
const BOUNDS: usize = 1 << 16;
/// Of processes whose records are not seen, calls are kept for so long.
const KEPT_NS: u64 = 12_000_000_000;

/// Which devices of a process had nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// Those that it uses, whichever they are: it follows from calls.
    Any,
    /// The only one that it had used by then.
    Only(u32),
    /// All of so many that it had used by then, at the same time.
    All(u32),
    /// This one of several.
    One(u32),
}

/// A process had nothing running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Idle {
    pub since: u64,
    pub until: u64,
    pub devices: Waited,
    /// The thread whose call ended it; 0: not known.
    pub tid: u32,
    /// `None`: it follows from calls, and is a bound.
    pub why: Option<Why>,
}

/// A process whose records are seen.
#[derive(Debug, Default)]
struct Process {
    /// Of all its devices together.
    whole: Track,
    /// The only one, as far as is known: then its track is that of the whole.
    device: u32,
    /// `None`: there is one.
    tracks: Option<BTreeMap<u32, Track>>,
    sorted: BTreeMap<u32, Sorted>,
    overheads: Overheads,
    /// When its first activity began; `None`: none has come.
    first: Option<u64>,
    /// Records are missing: gaps are told of no further, but by calls.
    broken_at: Option<u64>,
    /// When it was recorded what devices did.
    windows: Windows,
    /// By the number of each window, when its first activity began: from then on it is known. The last ones may come when it is closed.
    known: BTreeMap<usize, u64>,
    bounds: Vec<Idle>,
}

/// Why devices waited.
#[derive(Debug, Default)]
pub struct Waiting {
    threads: Threads,
    processes: HashMap<u32, Process>,
    told: Vec<(u32, Idle)>,
}

/// Why a device waited in a part of the time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartIdle {
    /// CLOCK_MONOTONIC ns.
    pub from: u64,
    pub until: u64,
    pub idle_ns: u64,
    /// Most time first; they add up to it.
    pub causes: Vec<CauseTotal>,
}

impl Waiting {
    /// Records of this process are expected.
    pub fn expect(&mut self, pid: u32) {
        self.processes.entry(pid).or_default();
    }

    /// Records of a process are missing: they prove no idle time any more.
    pub fn lose(&mut self, pid: u32) {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.broken_at.get_or_insert(process.whole.settled());
        }
    }

    /// From `since` on not all is recorded that devices do for a process: as if records were missing.
    pub fn lose_since(&mut self, pid: u32, since: u64) {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.broken_at = Some(process.broken_at.map_or(since, |broken| broken.min(since)));
        }
    }

    /// Recording of a process begins, or ends for a while.
    pub fn turn(&mut self, pid: u32, turn: Turn) {
        self.processes.entry(pid).or_default().turn(turn);
    }

    /// A device has done something, for a call that was looked for.
    pub fn run(&mut self, activity: &Activity) {
        if activity.is_of_device() {
            self.processes.entry(activity.pid).or_default().run(activity);
        }
    }

    /// CUPTI or the driver took time for itself.
    pub fn overhead(&mut self, overhead: &Overhead) {
        self.processes.entry(overhead.pid).or_default().overheads.add(overhead);
    }

    /// What threads did meanwhile.
    pub fn call(&mut self, thread: (u32, u32), called: Called) {
        self.threads.call(thread, called);
    }

    /// The same outside CUDA.
    pub fn stay(&mut self, thread: (u32, u32), stay: Stay) {
        self.threads.stay(thread, stay);
    }

    /// A look at a thread between calls that come soon after each other.
    pub fn look(&mut self, thread: (u32, u32), at: u64, stack: &Rc<str>) {
        self.threads.look(thread, at, stack);
    }

    /// The kernel's account of a thread.
    pub fn account(&mut self, thread: (u32, u32), at: u64, ran_ns: Option<u64>, unscheduled_ns: Option<u64>) {
        self.threads.account(thread, at, ran_ns, unscheduled_ns);
    }

    /// A bound by calls; given back at once where no records of the process are expected.
    pub fn bound(&mut self, pid: u32, idle: Idle) {
        match self.processes.get_mut(&pid) {
            Some(process) if process.bounds.len() < BOUNDS => process.bounds.push(idle),
            Some(process) if process.first.is_some() => {}
            _ => self.told.push((pid, idle)),
        }
    }

    /// Makes out gaps that end before the horizon of their process, which `horizon` says.
    pub fn settle(&mut self, now: u64, horizon: impl Fn(u32) -> u64) {
        for (pid, process) in &mut self.processes {
            process.settle(horizon(*pid), &mut self.threads, &mut |idle| {
                if self.told.len() < UNTAKEN {
                    self.told.push((*pid, idle));
                }
            });
            if process.first.is_some() {
                self.threads.forget(*pid, process.whole.settled());
            }
        }
        self.threads.forget_all(now.saturating_sub(KEPT_NS));
    }

    /// Gaps that were made out since this was last asked, as a process sees them.
    pub fn take(&mut self) -> Vec<(u32, Idle)> {
        std::mem::take(&mut self.told)
    }

    /// Sums of causes of a device, most time first; they add up to `idle_ns`: what was not made out has no known cause.
    #[must_use]
    pub fn causes(&self, pid: u32, device: u32, idle_ns: u64) -> Vec<CauseTotal> {
        let sorted = self.processes.get(&pid).and_then(|process| process.sorted.get(&device));
        let mut all = sorted.map_or_else(Vec::new, |sorted| sums::report(&sorted.sums));
        sums::complete(&mut all, idle_ns);
        all
    }

    /// The same of a part of the time, as far as that is known: of nearly all of it, and exactly. `None`: it is not known.
    #[must_use]
    pub fn part(&self, pid: u32, device: u32, from: u64, until: u64) -> Option<PartIdle> {
        let process = self.processes.get(&pid)?;
        if !process.windows.is_empty() || process.broken_at.is_some() || process.is_late() {
            return None;
        }
        let part = process.sorted.get(&device)?.along.part(from, until)?;
        let mut causes = sums::report(&part.sums);
        let idle_ns = causes.iter().map(|one| one.total.ns).sum();
        sums::complete(&mut causes, idle_ns);
        let covers = (part.until - part.from) * 100 >= (until - from) * LEAST_PERCENT;
        covers.then_some(PartIdle {
            from: part.from,
            until: part.until,
            idle_ns,
            causes,
        })
    }

    /// Whether work came after gaps that it fills were told.
    #[must_use]
    pub fn is_late(&self, pid: u32) -> bool {
        self.processes.get(&pid).is_some_and(Process::is_late)
    }
}

impl Process {
    fn run(&mut self, activity: &Activity) {
        if self.first.is_none() {
            self.device = activity.device;
        }
        if activity.device != self.device && self.tracks.is_none() {
            self.tracks = Some(BTreeMap::from([(self.device, self.whole.clone())]));
        }
        let (call, device) = (activity.call, activity.device);
        for (begin, end) in self.windows.parts(activity.begin, activity.end) {
            self.first = Some(self.first.map_or(begin, |first| first.min(begin)));
            let known = self.known.entry(self.windows.number(begin)).or_insert(begin);
            *known = begin.min(*known);
            if let Some(tracks) = &mut self.tracks {
                tracks.entry(device).or_default().add(Ran { begin, end, call });
            }
            self.whole.add(Ran { begin, end, call });
        }
    }

    fn turn(&mut self, turn: Turn) {
        self.windows.turn(turn);
        let Turn::Closed(at) = turn else { return };
        self.whole.close(at);
        self.tracks.iter_mut().flatten().for_each(|(_, track)| track.close(at));
    }

    fn settle(&mut self, horizon: u64, threads: &mut Threads, tell: &mut impl FnMut(Idle)) {
        let (sorted, device, broken_at) = (&mut self.sorted, self.device, self.broken_at);
        self.overheads.sort();
        let overheads = &self.overheads;
        let several = self.tracks.as_ref().map(BTreeMap::len);
        let waited = several.map_or(Waited::Only(device), |number| Waited::All(number as u32));
        let is_told = |gap: &Gap| broken_at.is_none_or(|broken| gap.since < broken);
        self.whole.settle(horizon, |gap| {
            let (why, place) = judged(gap, threads, overheads);
            if is_told(gap) {
                tell(idle(gap, waited, why));
            }
            if several.is_none() {
                sorted.entry(device).or_default().add(gap, why, &place);
            }
        });
        for (device, track) in self.tracks.iter_mut().flatten() {
            track.settle(horizon, |gap| {
                let (why, place) = judged(gap, threads, overheads);
                if is_told(gap) {
                    tell(idle(gap, Waited::One(*device), why));
                }
                sorted.entry(*device).or_default().add(gap, why, &place);
            });
        }
        let tracks = self.tracks.iter().flatten().map(|(_, track)| track.settled());
        let settled = tracks.min().unwrap_or(self.whole.settled());
        self.overheads.forget(settled);
        self.release_bounds(horizon, tell);
    }

    /// Bounds between the times of which records tell.
    fn release_between(&mut self, horizon: u64, tell: &mut impl FnMut(Idle)) {
        let known = self.known.iter();
        let known: Vec<(u64, u64)> = known
            .map(|(number, since)| (*since, self.windows.closes(*number)))
            .collect();
        self.bounds.retain(|bound| {
            if bound.until >= horizon {
                return true;
            }
            let mut since = bound.since;
            let within = known.iter().filter(|span| span.1 > bound.since && span.0 < bound.until);
            for (from, to) in within.copied().chain([(bound.until, u64::MAX)]) {
                if since < from {
                    tell(Idle {
                        since,
                        until: from,
                        ..*bound
                    });
                }
                since = since.max(to);
            }
            false
        });
    }

    /// Bounds where no records tell: before the first of them, behind the last, and where some are missing.
    fn release_bounds(&mut self, horizon: u64, tell: &mut impl FnMut(Idle)) {
        if !self.windows.is_empty() {
            return self.release_between(horizon, tell);
        }
        let from = self.first.unwrap_or(u64::MAX);
        let until = match (self.broken_at, self.first) {
            (Some(broken), _) => broken,
            (None, None) if horizon == u64::MAX => 0,
            (None, _) if horizon == u64::MAX => self.whole.settled(),
            _ => u64::MAX,
        };
        let known = if self.first.is_none() && horizon < u64::MAX {
            0
        } else {
            horizon
        };
        self.bounds.retain(|bound| {
            if bound.until >= known {
                return true;
            }
            let before = Idle {
                until: bound.until.min(from),
                ..*bound
            };
            let behind = Idle {
                since: bound.since.max(until.max(from)),
                ..*bound
            };
            [before, behind]
                .into_iter()
                .filter(|one| one.since < one.until)
                .for_each(&mut *tell);
            false
        });
    }

    fn is_late(&self) -> bool {
        let tracks = self.tracks.iter().flatten().map(|(_, track)| track);
        std::iter::once(&self.whole)
            .chain(tracks)
            .any(|track| track.late_ns() > 0)
    }
}

fn judged(gap: &Gap, threads: &mut Threads, overheads: &Overheads) -> (Why, Place) {
    let (asked, place) = match &gap.call {
        None => (Asked::Unknown, Place::default()),
        // whatever its stream waited for was over when the call's first part began
        Some(_) if gap.within_call => (Asked::Before { waits: None }, Place::default()),
        Some(call) => threads.asked(call, gap.since, gap.until),
    };
    let overlap = overheads.overlap(gap.since, gap.until);
    let why = why(gap.until - gap.since, &asked, overlap);
    // looks are of a host that runs outside CUDA
    let looks = if why == Why::HostCode { place.looks } else { Vec::new() };
    (why, Place { looks, ..place })
}

fn idle(gap: &Gap, devices: Waited, why: Why) -> Idle {
    Idle {
        since: gap.since,
        until: gap.until,
        devices,
        tid: gap.call.map_or(0, |call: Cause| call.tid),
        why: Some(why),
    }
}

/// Idle time of one device.
#[derive(Debug, Default)]
struct Sorted {
    sums: Sums,
    along: Along,
}

impl Sorted {
    fn add(&mut self, gap: &Gap, why: Why, place: &Place) {
        let mut total = Total::default();
        total.add(gap.until - gap.since);
        let sum = self.sums.entry(why).or_default();
        sum.add(&total, place, PLACES);
        sum.look(place, PLACES);
        self.along.add(gap.since, gap.until, why, place);
    }
}
