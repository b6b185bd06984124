//! Device memory that a process holds grows and grows, by allocations that are never given back.

use crate::catalog::Class;
use crate::findings::cases::Cases;
use crate::findings::evidence::{End, Evidence};
use crate::findings::finding::Moments;
use crate::findings::interner::Id;
use crate::findings::part::Part;
use crate::findings::past::Past;
use crate::findings::seen::Seen;
use crate::findings::table::{Bounded, Grow, pair};
use crate::findings::{Rule, Wants};
use crate::model::finding::Finding;
use crate::model::work::Certainty;
use crate::record::Kind;
use crate::text::quantity::{bytes, count, duration};
use std::collections::BTreeMap;

/// Of the steady part, what comes first may grow: caches are filled.
const WARM_UP_PARTS: usize = 4;
/// What comes then is looked at in so many parts; in each more has to be held than in the one before, all but once.
const PARTS: usize = 8;
const FLAT_PARTS: usize = 1;
const GROWTH_BYTES: u64 = 16 << 20;
const AT_LEAST: u64 = 20;
/// Pieces of a run that are told apart, all equally long.
const PIECES: usize = 192;
const FIRST_PIECE_NS: u64 = 10_000_000;
/// Allocations that are remembered until they are given back.
const LIVE: usize = 1 << 16;

/// The least that was held in each piece of the run, so that what comes and goes does not count.
#[derive(Debug)]
struct Course {
    from: Option<i64>,
    piece_ns: u64,
    least: Vec<u64>,
    held: u64,
}

impl Default for Course {
    fn default() -> Course {
        Course {
            from: None,
            piece_ns: FIRST_PIECE_NS,
            least: Vec::new(),
            held: 0,
        }
    }
}

impl Course {
    /// So much is held from `at` on.
    fn hold(&mut self, at: i64, held: u64) {
        self.reach(at);
        self.held = held;
        if let Some(least) = self.least.last_mut() {
            *least = held.min(*least);
        }
    }

    /// Nothing has changed until `at`.
    fn reach(&mut self, at: i64) {
        let from = *self.from.get_or_insert(at);
        let since = u64::try_from(at.saturating_sub(from)).unwrap_or(0);
        while since / self.piece_ns >= PIECES as u64 {
            self.halve();
        }
        let pieces = (since / self.piece_ns) as usize + 1;
        if pieces > self.least.len() {
            self.least.resize(pieces, self.held);
        }
    }

    fn halve(&mut self) {
        self.piece_ns *= 2;
        self.least = self
            .least
            .chunks(2)
            .map(|pair| *pair.iter().min().unwrap_or(&0))
            .collect();
    }

    /// What is held of the time from one moment to the other, and when its first piece begins; of all if that is not said.
    fn of(&self, window: Option<(i64, i64)>) -> Option<(&[u64], i64)> {
        let from = self.from?;
        let piece = |at: i64| u64::try_from(at.saturating_sub(from)).unwrap_or(0) / self.piece_ns;
        let (first, last) = window.map_or((0, u64::MAX), |(since, until)| (piece(since), piece(until)));
        let last = self.least.len().min(usize::try_from(last).unwrap_or(usize::MAX));
        let pieces = self.least.get(usize::try_from(first).ok()?..last)?;
        Some((pieces, from.saturating_add_unsigned(first * self.piece_ns)))
    }

    /// How much more was held in the last part than in the first behind the warm-up, if it grew all the time.
    fn growth(&self, window: Option<(i64, i64)>) -> Option<Growth> {
        let (least, from) = self.of(window)?;
        let length = (least.len() - least.len() / WARM_UP_PARTS) / PARTS;
        if length == 0 {
            return None;
        }
        // the end is what counts: what cannot be divided is warm-up, too
        let skipped = least.len() - PARTS * length;
        let parts = least[skipped..].chunks_exact(length);
        let held: Vec<u64> = parts.map(|part| *part.iter().min().unwrap_or(&0)).collect();
        let flat = held.windows(2).filter(|pair| pair[1] == pair[0]).count();
        let falls = held.windows(2).any(|pair| pair[1] < pair[0]);
        (!falls && flat <= FLAT_PARTS).then(|| Growth {
            bytes: held[held.len() - 1] - held[0],
            since: from.saturating_add_unsigned(skipped as u64 * self.piece_ns),
            ns: (PARTS * length) as u64 * self.piece_ns,
        })
    }
}

/// How much more was held at the end of a time than when it began.
#[derive(Debug, Clone, Copy)]
struct Growth {
    bytes: u64,
    since: i64,
    ns: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Live {
    bytes: u64,
    past: Past,
}

/// Device memory that a process holds grows and grows.
#[derive(Debug)]
pub(crate) struct LeakGrowth {
    live: Bounded<Live>,
    cases: Cases<Course>,
}

impl Default for LeakGrowth {
    fn default() -> LeakGrowth {
        LeakGrowth {
            live: Bounded::new(LIVE),
            cases: Cases::default(),
        }
    }
}

/// What of a process's memory was taken since a moment and not given back.
#[derive(Default)]
struct Kept {
    count: u64,
    bytes: u64,
    moments: Moments,
    sites: BTreeMap<Id, u64>,
}

impl LeakGrowth {
    fn follow(&mut self, seen: &Seen<'_>) {
        let event = seen.event;
        let Some(address) = event.address else { return };
        let key = pair(event.pid, address);
        if seen.part == Part::Free {
            self.live.remove(key);
        } else if let Some(live) = self.live.entry(key) {
            let bytes = event.bytes.unwrap_or(0);
            *live = Live {
                bytes,
                past: Past::of(seen),
            };
        }
    }

    fn kept(&self, pid: u32, growth: &Growth) -> Kept {
        let mut kept = Kept::default();
        let all = self.live.iter().map(|(_, live)| live);
        let then = growth.since..growth.since.saturating_add_unsigned(growth.ns);
        for live in all.filter(|live| live.past.pid == pid && then.contains(&live.past.start)) {
            kept.count += 1;
            kept.bytes.grow(live.bytes);
            kept.moments.note_past(live.bytes, &live.past);
            kept.sites.entry(live.past.site).or_default().grow(live.bytes);
        }
        kept
    }
}

impl Rule for LeakGrowth {
    fn name(&self) -> &'static str {
        "leak-growth"
    }

    fn wants(&self, kind: Kind, class: Class) -> Wants {
        match kind {
            Kind::Call if matches!(class, Class::Alloc | Class::Free | Class::Memory) => Wants::Work,
            Kind::Sample => Wants::All,
            _ => Wants::Nothing,
        }
    }

    fn take(&mut self, seen: &Seen<'_>) {
        let event = seen.event;
        if event.failed {
            return;
        }
        let held = match event.kind {
            Kind::Sample if event.name == "memory.held" => event.bytes,
            Kind::Sample => None,
            _ => event.held,
        };
        if let (Some(held), Some((_, course))) = (held, self.cases.of(seen)) {
            course.hold(event.at, held);
        }
        if matches!(seen.part, Part::Alloc | Part::Free) {
            self.follow(seen);
        }
    }

    fn conclude(&self, end: &End<'_>) -> Option<Finding> {
        let growing = self
            .cases
            .iter()
            .filter_map(|(pid, _, course)| Some((course.growth(end.courses.steady_of(pid))?, pid)));
        let (growth, pid) = growing.max_by_key(|(growth, pid)| (growth.bytes, *pid))?;
        let kept = self.kept(pid, &growth);
        let Growth { bytes: growth, ns, .. } = growth;
        if growth < GROWTH_BYTES || kept.count < AT_LEAST || kept.bytes < growth / 2 {
            return None;
        }
        let site = kept
            .sites
            .iter()
            .max_by_key(|(_, bytes)| **bytes)
            .map(|(site, _)| *site);
        Some(Finding {
            grave: true,
            certainty: Certainty::Inferred,
            count: kept.count,
            moments: kept.moments.list(end.interner),
            site: end.interner.site(site.unwrap_or(0)).map(str::to_owned),
            title: format!(
                "Memory grows {} every {}",
                bytes(kept.bytes / kept.count),
                duration(ns / kept.count)
            ),
            what: format!(
                "process {pid} held {} more after {}, growing all the time ({}/h): {} allocations of then were not \
                 given back",
                bytes(growth),
                duration(ns),
                bytes((growth as f64 * 3.6e12 / ns as f64) as u64),
                count(kept.count)
            ),
            cure: "give it back, or drop the reference that keeps it (a list of losses or outputs, a cache without a \
                   bound); gpuscope leaks names every line"
                .to_owned(),
            thresholds: format!(
                "after the first of {WARM_UP_PARTS} parts of the steady part, the least held grows from each of {PARTS} parts of the \
                 rest to the next ({FLAT_PARTS} may be flat), by {} in all and at least {AT_LEAST} allocations",
                bytes(GROWTH_BYTES)
            ),
            weakened: end.weakness(&[Class::Alloc, Class::Free]),
            ..Evidence::default().finding(self.name(), end)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::{Fixture, MS, US};

    const MIB: u64 = 1 << 20;

    fn run(kept_per_step: u64, setup: u64) -> Vec<Finding> {
        let mut fixture = Fixture::of(LeakGrowth::default());
        let mut held = 0;
        for step in 0..100u64 {
            held += if step < setup { 64 * MIB } else { kept_per_step };
            let address = 0x1000 + step;
            fixture.call(Class::Alloc, 5 * US, |event| {
                (event.bytes, event.address, event.held) = (Some(kept_per_step), Some(address), Some(held));
            });
            fixture.call(Class::Alloc, 5 * US, |event| {
                (event.bytes, event.address, event.held) = (Some(64 * MIB), Some(1), Some(held + 64 * MIB));
            });
            fixture.healthy(1);
            fixture.call(Class::Free, 5 * US, |event| {
                (event.address, event.held) = (Some(1), Some(held));
            });
        }
        fixture.findings()
    }

    #[test]
    fn memory_that_grows_in_each_step_is_found_below_what_comes_and_goes() {
        let [finding] = <[Finding; 1]>::try_from(run(MIB, 0)).unwrap();
        assert!(finding.grave && finding.cost_ns == 0, "{finding:?}");
        assert!((60..=80).contains(&finding.count), "{finding:?}");
        assert_eq!(finding.moments.len(), 3);
    }

    #[test]
    fn what_grows_only_at_the_beginning_is_a_model_that_is_loaded() {
        assert_eq!(run(0, 20), []);
    }

    #[test]
    fn what_only_comes_and_goes_is_none() {
        assert_eq!(run(0, 0), []);
    }

    #[test]
    fn only_the_time_that_is_asked_for_is_looked_at() {
        let mut course = Course::default();
        let second = |number: i64| number * 1000 * MS as i64;
        course.hold(0, 0);
        for step in 0..100 {
            course.hold(second(10) + step * 20 * MS as i64, step.unsigned_abs() * MIB);
        }
        course.reach(second(20));
        assert!(course.growth(None).is_none(), "it is idle before and behind");
        let growth = course.growth(Some((second(10), second(12)))).unwrap();
        assert!(
            (50 * MIB..100 * MIB).contains(&growth.bytes) && growth.since > second(10),
            "{growth:?}"
        );
        assert!(course.growth(Some((second(30), second(40)))).is_none());
    }

    #[test]
    fn a_long_run_is_kept_in_as_many_pieces() {
        let mut course = Course::default();
        for second in 0..100_000u64 {
            course.hold((second * 1000 * MS) as i64, second * MIB);
        }
        assert!(course.least.len() <= PIECES && course.growth(None).unwrap().bytes > 50_000 * MIB);
    }
}
