//! What a rule has counted so far, and the finding that it becomes.

use super::finding::Moments;
use super::interner::{Id, Interner};
use super::past::Past;
use super::seen::Seen;
use super::table::{Grow, is_percent};
use crate::catalog::Class;
use crate::model::finding::{Finding, Run};
use crate::model::work::Certainty;

/// Call sites that one rule tells apart.
const SITES: usize = 64;

/// Weights of call sites; of many the heaviest are kept.
#[derive(Debug, Clone, Default)]
struct Sites(Vec<(Id, u64)>);

impl Sites {
    fn add(&mut self, site: Id, weight: u64) {
        if site == 0 {
            return;
        }
        if let Some(known) = self.0.iter_mut().find(|(id, _)| *id == site) {
            known.1.grow(weight);
        } else if self.0.len() < SITES {
            self.0.push((site, weight));
        } else if let Some(least) = self.0.iter_mut().min_by_key(|(_, weight)| *weight) {
            *least = (site, least.1.saturating_add(weight));
        }
    }

    fn heaviest(&self) -> Id {
        self.0.iter().max_by_key(|(_, weight)| *weight).map_or(0, |(id, _)| *id)
    }
}

/// What a rule has counted so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Evidence {
    pub count: u64,
    /// Wall time that it costs.
    pub ns: u64,
    moments: Moments,
    sites: Sites,
    /// Some of it is idle time that follows from calls.
    bounds: bool,
}

impl Evidence {
    /// A call that costs `ns`.
    pub(crate) fn add(&mut self, seen: &Seen<'_>, ns: u64) {
        // a row can stand for any number of calls
        self.count.grow(1);
        self.ns = self.ns.saturating_add(ns);
        self.moments.note(ns, seen.event);
        self.sites.add(seen.site, ns.max(1));
    }

    /// The gap behind `seen`, a row that tells of one, costs `ns` more; it is the fault of the call that it follows.
    pub(crate) fn add_gap(&mut self, seen: &Seen<'_>, ns: u64) {
        self.count += 1;
        self.add_time(seen, ns);
    }

    /// As [`Self::add_gap`]; where devices have told of the gap it is what is worst, and not the call that it follows.
    pub(crate) fn add_own_gap(&mut self, seen: &Seen<'_>, ns: u64) {
        let Some(gap) = seen.gap.as_ref().filter(|gap| gap.measured) else {
            return self.add_gap(seen, ns);
        };
        self.count += 1;
        self.take_time(seen, ns);
        self.moments.note(ns, seen.event);
        gap.behind.iter().for_each(|past| self.sites.add(past.site, ns.max(1)));
    }

    fn take_time(&mut self, seen: &Seen<'_>, ns: u64) {
        self.ns = self.ns.saturating_add(ns);
        self.bounds |= seen.gap.is_some_and(|gap| !gap.measured);
    }

    /// As [`Self::add_gap`], of a call that was counted before.
    pub(crate) fn add_time(&mut self, seen: &Seen<'_>, ns: u64) {
        self.take_time(seen, ns);
        let behind = seen.gap.as_ref().and_then(|gap| gap.behind);
        match behind {
            Some(past) => {
                self.moments.note_past(ns, &past);
                self.sites.add(past.site, ns.max(1));
            }
            None => self.moments.note(ns, seen.event),
        }
    }

    /// An earlier call, of that weight.
    pub(crate) fn add_past(&mut self, past: &Past, weight: u64) {
        self.count += 1;
        self.moments.note_past(weight, past);
        self.sites.add(past.site, weight.max(1));
    }

    /// The host was outside CUDA before a call.
    pub(crate) fn add_outside(&mut self, seen: &Seen<'_>) {
        self.count.grow(1);
        self.ns.grow(seen.outside_ns);
        self.moments.note_outside(seen.outside_ns, seen.event);
    }

    /// A row of that weight, which costs what is added up elsewhere.
    pub(crate) fn note(&mut self, seen: &Seen<'_>, weight: u64) {
        self.count.grow(1);
        self.moments.note(weight, seen.event);
    }

    /// Only its place in the program.
    pub(crate) fn add_site(&mut self, site: Id, weight: u64) {
        self.sites.add(site, weight.max(1));
    }

    /// Of another one, too.
    pub(crate) fn merge(&mut self, other: &Evidence) {
        self.count.grow(other.count);
        self.ns = self.ns.saturating_add(other.ns);
        self.bounds |= other.bounds;
        self.moments.merge(&other.moments);
        for (site, weight) in &other.sites.0 {
            self.sites.add(*site, *weight);
        }
    }

    /// Of what follows from the idle time in it.
    #[must_use]
    pub(crate) fn idle_certainty(&self, end: &End<'_>) -> Certainty {
        match self.bounds {
            true if end.run.blind => Certainty::Inferred,
            false if !end.run.records_missing => Certainty::Measured,
            _ => Certainty::Bound,
        }
    }

    /// As a finding that costs what was added up.
    #[must_use]
    pub(crate) fn finding(&self, rule: &'static str, end: &End<'_>) -> Finding {
        Finding {
            rule,
            title: String::new(),
            what: String::new(),
            cost_ns: self.ns,
            grave: false,
            certainty: Certainty::Measured,
            count: self.count,
            moments: self.moments.list(end.interner),
            site: end.interner.site(self.sites.heaviest()).map(str::to_owned),
            cure: String::new(),
            thresholds: String::new(),
            weakened: None,
            places: Vec::new(),
        }
    }
}

/// What rules conclude from, besides what they have taken.
pub struct End<'a> {
    pub run: &'a Run,
    pub interner: &'a Interner,
    /// Bytes per ns that a copy of pinned memory reaches.
    pub pinned: Bandwidth,
    /// Launches of whoever launches most, in its steady part.
    pub load: super::load::Load,
    /// The lives of processes.
    pub courses: &'a super::course::Courses,
}

/// Of copies between host and device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bandwidth {
    pub(crate) bytes_per_ns: f64,
    /// By copies of this trace; else it is what PCIe 4.0 x16 gives.
    pub measured: bool,
}

impl Bandwidth {
    /// How long such a copy takes.
    #[must_use]
    pub fn ns(&self, bytes: u64) -> u64 {
        (bytes as f64 / self.bytes_per_ns) as u64
    }

    /// In words, with where it comes from.
    #[must_use]
    pub fn words(&self) -> String {
        let how = if self.measured {
            "measured here"
        } else {
            "assumed: none was measured here"
        };
        format!("{:.1} GB/s, {how}", self.bytes_per_ns)
    }

    /// Of a time that was read off a clock and compared with it.
    #[must_use]
    pub fn certainty(&self) -> Certainty {
        match self.measured {
            true => Certainty::Measured,
            false => Certainty::Inferred,
        }
    }
}

impl End<'_> {
    /// Whether `ns` are at least so many per cent of the steady part of the run.
    #[must_use]
    pub(crate) fn is_share(&self, ns: u64, percent: u64) -> bool {
        ns > 0 && is_percent(ns, self.run.steady_ns, percent)
    }

    /// `ns` of a process that made so many launches meanwhile, without what tracing took of them.
    #[must_use]
    pub(crate) fn untraced(&self, ns: u64, launches: u64) -> u64 {
        let share = u128::from(launches.min(self.load.launches));
        let tracing = u128::from(self.run.tracing_ns) * share / u128::from(self.load.launches.max(1));
        ns.saturating_sub(u64::try_from(tracing).unwrap_or(u64::MAX))
    }

    /// Says so where it was done.
    #[must_use]
    pub(crate) fn untraced_words(&self) -> &'static str {
        if self.run.tracing_ns > 0 {
            " (what tracing takes left out)"
        } else {
            ""
        }
    }

    /// Of the heaviest load: time in which its device waited for launches, where devices told of all that they did.
    #[must_use]
    pub(crate) fn unlaunched_ns(&self) -> Option<u64> {
        let measured = self.load.is_measured && !self.run.records_missing;
        measured.then(|| self.load.unlaunched_ns(self.run.tracing_ns))
    }

    /// How often a second.
    #[must_use]
    pub fn rate(&self, count: u64) -> f64 {
        count as f64 * 1e9 / self.run.steady_ns.max(1) as f64
    }

    /// Why the sums of a rule that rests on calls of these classes may be too small.
    #[must_use]
    pub fn weakness(&self, classes: &[Class]) -> Option<String> {
        self.run.weakness(|class| classes.contains(&class))
    }
}
