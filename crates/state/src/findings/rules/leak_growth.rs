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

/// Of the run, what comes first may grow: models are loaded.
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

    /// How much more was held in the last part than in the first behind the warm-up, if it grew all the time; and since
    /// when.
    fn growth(&self) -> Option<(u64, i64)> {
        let skipped = self.least.len() / WARM_UP_PARTS;
        let length = (self.least.len() - skipped) / PARTS;
        if length == 0 {
            return None;
        }
        let parts = self.least[skipped..].chunks_exact(length).take(PARTS);
        let held: Vec<u64> = parts.map(|part| *part.iter().min().unwrap_or(&0)).collect();
        let flat = held.windows(2).filter(|pair| pair[1] == pair[0]).count();
        let falls = held.windows(2).any(|pair| pair[1] < pair[0]);
        let since = self.from?.saturating_add_unsigned(skipped as u64 * self.piece_ns);
        (!falls && flat <= FLAT_PARTS).then(|| (held[held.len() - 1] - held[0], since))
    }
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

    fn kept(&self, pid: u32, since: i64) -> Kept {
        let mut kept = Kept::default();
        let all = self.live.iter().map(|(_, live)| live);
        for live in all.filter(|live| live.past.pid == pid && live.past.start >= since) {
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
            .filter_map(|(pid, _, course)| Some((course.growth()?, pid, course)));
        let ((growth, since), pid, course) = growing.max_by_key(|((growth, _), pid, _)| (*growth, *pid))?;
        let kept = self.kept(pid, since);
        if growth < GROWTH_BYTES || kept.count < AT_LEAST || kept.bytes < growth / 2 {
            return None;
        }
        let site = kept
            .sites
            .iter()
            .max_by_key(|(_, bytes)| **bytes)
            .map(|(site, _)| *site);
        let ns = course.piece_ns * (course.least.len() as u64 * 3 / 4).max(1);
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
                "after the first of {WARM_UP_PARTS} parts of the run, the least held grows from each of {PARTS} parts of the \
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
    fn a_long_run_is_kept_in_as_many_pieces() {
        let mut course = Course::default();
        for second in 0..100_000u64 {
            course.hold((second * 1000 * MS) as i64, second * MIB);
        }
        assert!(course.least.len() <= PIECES && course.growth().unwrap().0 > 50_000 * MIB);
    }
}
