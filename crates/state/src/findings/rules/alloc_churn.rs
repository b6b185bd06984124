//! Memory is given back and taken again, over and over. Giving it back waits for the device, and taking it asks the
//! kernel driver: both are time in which nothing new is launched.
//!
//! A wait for work that has to be done anyhow is no cost: of giving back, only so much counts as taking it has cost.
//! Nor is taking memory while the device has work to do, as far as the host waits for that work later.
//!
//! Memory given back could have served an allocation of its size, or of down to half of it: that is how allocators of
//! frameworks use it again. What is taken beside it, and kept, is no churn.

use crate::catalog::Class;
use crate::findings::cases::{Phased, Sum};
use crate::findings::evidence::End;
use crate::findings::part::{PROMPT_NS, Part};
use crate::findings::past::Fault;
use crate::findings::seen::Seen;
use crate::findings::table::{Bounded, Grow, pair};
use crate::findings::{Rule, Wants};
use crate::model::finding::Finding;
use crate::model::work::Certainty;
use crate::record::Kind;
use crate::text::quantity::{bytes, count, duration, plural};
use std::collections::BTreeMap;

/// Allocations that memory given back before could have served.
const AT_LEAST: u64 = 10;
const PERCENT: u64 = 1;
/// An allocation and a free that are as quick as this, together, come out of a pool.
const POOLED_NS: u64 = 20_000;
/// A block serves allocations of its size, and of down to one part of so many.
const LARGER_TIMES: u64 = 2;
/// Sizes of blocks that are told apart.
const SIZES: usize = 1024;
/// Allocations whose size is remembered.
const LIVE: usize = 1 << 16;

/// Giving back takes at most so many times as long as taking, where nothing was given to the device since a wait.
const DRAINED_TIMES: u64 = 2;

/// Memory that is taken.
#[derive(Debug, Clone, Copy, Default)]
struct Live {
    bytes: u64,
    ns: u64,
}

/// Blocks of one size that were given back and not taken again.
#[derive(Debug, Default)]
struct Blocks {
    count: u64,
    /// What giving them back has cost, and what of that is inferred.
    ns: u64,
    inferred_ns: u64,
}

/// Memory that was given back, by size.
#[derive(Debug, Default)]
struct Pool {
    blocks: BTreeMap<u64, Blocks>,
    /// Of memory taken again: bytes, and what of its cost is inferred.
    churned: u64,
    churned_inferred_ns: u64,
    /// Giving back has taken longer than it is taken to cost.
    waited_ns: u64,
    /// Memory was taken for so long while the device had work to do: since the last wait, and what it did not delay.
    beside_ns: u64,
    hidden_ns: u64,
}

impl Sum for Pool {
    fn join(&mut self, other: &Pool) {
        self.churned.grow(other.churned);
        self.churned_inferred_ns.grow(other.churned_inferred_ns);
        self.waited_ns.grow(other.waited_ns);
        self.beside_ns.grow(other.beside_ns);
        self.hidden_ns.grow(other.hidden_ns);
    }
}

/// Memory is given back and taken again, over and over.
#[derive(Debug)]
pub(crate) struct AllocChurn {
    live: Bounded<Live>,
    cases: Phased<Pool>,
}

impl Default for AllocChurn {
    fn default() -> AllocChurn {
        AllocChurn {
            live: Bounded::new(LIVE),
            cases: Phased::default(),
        }
    }
}

impl AllocChurn {
    fn alloc(&mut self, seen: &Seen<'_>) {
        let size = seen.event.bytes.unwrap_or(0);
        let live = seen.event.address.map(|address| key(seen, address));
        if let Some(live) = live.and_then(|key| self.live.entry(key)) {
            (live.bytes, live.ns) = (size, seen.ns());
        }
        let Some((evidence, pool)) = self.cases.of(seen) else {
            return;
        };
        if size == 0 || seen.process.short_of.is_some() {
            return;
        }
        if let Some(given_ns) = pool.take(size) {
            let (idle_ns, beside_ns) = if seen.process.pending {
                (0, seen.ns())
            } else {
                (seen.ns(), 0)
            };
            pool.beside_ns.grow(beside_ns);
            evidence.add(seen, idle_ns.saturating_add(given_ns));
        }
    }

    fn free(&mut self, seen: &Seen<'_>) {
        let live = seen.event.address.map(|address| key(seen, address));
        let Some(live) = live.and_then(|key| self.live.remove(key)) else {
            return;
        };
        // what is given back because memory is short is another finding's
        if let (None, Some((evidence, pool))) = (seen.process.short_of, self.cases.of(seen)) {
            let waited_ns = pool.give(live, seen);
            evidence.ns.grow(pool.delay(waited_ns));
        }
    }

    fn wait(&mut self, seen: &Seen<'_>) {
        if let Some((evidence, pool)) = self.cases.of(seen) {
            evidence.ns.grow(pool.delay(seen.waited_ns().saturating_sub(PROMPT_NS)));
        }
    }
}

impl Pool {
    /// Says how long giving back has waited for work.
    fn give(&mut self, live: Live, seen: &Seen<'_>) -> u64 {
        let times = if seen.process.pending { 1 } else { DRAINED_TIMES };
        let ns = seen.ns().min(live.ns.saturating_mul(times).saturating_add(POOLED_NS));
        self.waited_ns.grow(seen.ns() - ns);
        if self.blocks.len() < SIZES || self.blocks.contains_key(&live.bytes) {
            let blocks = self.blocks.entry(live.bytes).or_default();
            blocks.count += 1;
            blocks.ns.grow(ns);
            blocks.inferred_ns.grow(if ns < seen.ns() { ns } else { 0 });
        }
        seen.ns() - ns
    }

    /// By how much taking memory has made the time longer, as the device was behind by `waited_ns` after it.
    fn delay(&mut self, waited_ns: u64) -> u64 {
        let beside_ns = std::mem::take(&mut self.beside_ns);
        self.hidden_ns.grow(beside_ns.min(waited_ns));
        beside_ns.saturating_sub(waited_ns)
    }

    /// What giving back the smallest block has cost that could serve so much; `None`: there is none.
    fn take(&mut self, size: u64) -> Option<u64> {
        let largest = size.saturating_mul(LARGER_TIMES);
        let (block, blocks) = self.blocks.range_mut(size..=largest).next()?;
        let (ns, inferred_ns) = (blocks.ns / blocks.count, blocks.inferred_ns / blocks.count);
        blocks.count -= 1;
        blocks.ns -= ns;
        blocks.inferred_ns -= inferred_ns;
        let spent = (blocks.count == 0).then_some(*block);
        spent.and_then(|size| self.blocks.remove(&size));
        self.churned.grow(size);
        self.churned_inferred_ns.grow(inferred_ns);
        Some(ns)
    }
}

fn key(seen: &Seen<'_>, address: u64) -> u64 {
    pair(seen.event.pid, address)
}

impl Rule for AllocChurn {
    fn name(&self) -> &'static str {
        "alloc-churn"
    }

    fn wants(&self, kind: Kind, class: Class) -> Wants {
        match kind {
            Kind::Call if matches!(class, Class::Alloc | Class::Free | Class::Sync | Class::Copy) => Wants::Work,
            Kind::Idle => Wants::All,
            _ => Wants::Nothing,
        }
    }

    fn take(&mut self, seen: &Seen<'_>) {
        if let Some(gap) = seen.gap {
            if let (Fault::Memory, Some((evidence, _))) = (gap.fault, self.cases.of(seen)) {
                evidence.add_time(seen, gap.ns.saturating_sub(gap.memory_ns));
            }
            return;
        }
        match seen.part {
            _ if seen.event.failed => {}
            Part::Alloc => self.alloc(seen),
            Part::Free => self.free(seen),
            Part::Sync | Part::Item => self.wait(seen),
            _ => {}
        }
    }

    fn conclude(&self, end: &End<'_>) -> Option<Finding> {
        let (evidence, pool) = self.cases.costliest(end)?;
        // a wait costs nothing by itself, but as long as it lasts the host does not get ahead of the device
        let cost_ns = evidence.ns.saturating_add(pool.beside_ns);
        let enough = evidence.count >= AT_LEAST && cost_ns / evidence.count > POOLED_NS;
        if !enough || !end.is_share(cost_ns, PERCENT) {
            return None;
        }
        Some(Finding {
            title: format!(
                "Memory is given back and taken again {}",
                plural(evidence.count, "time")
            ),
            what: what(evidence.count, cost_ns, &pool),
            cost_ns,
            certainty: match pool.churned_inferred_ns.saturating_add(pool.hidden_ns) > cost_ns / 10 {
                true => Certainty::Inferred,
                false => Certainty::Measured,
            },
            cure: "keep the memory and use it again, as framework allocators do, or allocate with cudaMallocAsync \
                   from a pool with a release threshold"
                .to_owned(),
            thresholds: format!(
                "at least {AT_LEAST} allocations that memory given back before could have served (blocks of their size, or \
                 up to {LARGER_TIMES} times as large), {PERCENT} % of the time, more than {} each",
                duration(POOLED_NS)
            ),
            weakened: end.weakness(&[Class::Alloc, Class::Free]),
            ..evidence.finding(self.name(), end)
        })
    }
}

fn what(times: u64, cost_ns: u64, pool: &Pool) -> String {
    let more = |ns: u64, what: &str| match ns {
        0 => String::new(),
        ns => format!("; {} more {what}", duration(ns)),
    };
    let waited = "in frees were waits for work, which has to be done anyhow, but not with the host held up";
    format!(
        "memory was given back and taken again {} times, {} each: {} a time{}{}",
        count(times),
        bytes(pool.churned / times.max(1)),
        duration(cost_ns / times.max(1)),
        more(pool.hidden_ns, "in allocations passed while the device was at work"),
        more(pool.waited_ns, waited)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::{Fixture, MS, US};

    fn batches(fixture: &mut Fixture, number: u64, alloc_ns: u64, free_ns: u64) {
        for _ in 0..number {
            fixture.alloc(1 << 30, 0x7000, alloc_ns);
            fixture.launch();
            fixture.sync(8 * MS);
            fixture.free(0x7000, free_ns);
        }
    }

    #[test]
    fn a_gigabyte_for_each_batch_costs_the_time_in_its_calls() {
        let mut fixture = Fixture::of(AllocChurn::default());
        batches(&mut fixture, 51, MS, 2 * MS);
        let finding = fixture.finding();
        assert_eq!((finding.rule, finding.count), ("alloc-churn", 50));
        assert_eq!(finding.cost_ns, 50 * 3 * MS, "{finding:?}");
        assert_eq!(finding.certainty, Certainty::Measured);
        assert!(finding.what.contains("50 times, 1.0 GiB each"), "{}", finding.what);
        assert_eq!(finding.moments.len(), 3);
    }

    #[test]
    fn idle_time_that_follows_costs_too_but_not_twice() {
        let mut fixture = Fixture::of(AllocChurn::default());
        for _ in 0..20 {
            let since = fixture.at;
            fixture.pass(200 * US);
            fixture.alloc(1 << 30, 0x7000, MS);
            fixture.idle_since(since);
            fixture.launch();
            fixture.sync(8 * MS);
            fixture.free(0x7000, MS);
        }
        let finding = fixture.finding();
        assert_eq!(finding.certainty, Certainty::Measured);
        assert_eq!(finding.cost_ns, 19 * 2 * MS + 20 * 200 * US);
    }

    #[test]
    fn a_free_that_waits_for_work_costs_no_more_than_the_allocation() {
        let mut fixture = Fixture::of(AllocChurn::default());
        for _ in 0..51 {
            fixture.alloc(1 << 30, 0x7000, MS);
            fixture.launch();
            fixture.free(0x7000, 9 * MS);
        }
        let finding = fixture.finding();
        assert_eq!(
            (finding.cost_ns, finding.certainty),
            (50 * (2 * MS + POOLED_NS), Certainty::Inferred)
        );
        assert!(
            finding.what.contains("407.0 ms more in frees were waits"),
            "{}",
            finding.what
        );
    }

    #[test]
    fn memory_taken_while_the_device_works_costs_what_the_device_does_not_make_up_for() {
        for (free_ns, delay_ns) in [(9 * MS, 0), (MS + 20 * US, MS), (MS + 420 * US, 600 * US)] {
            let mut fixture = Fixture::of(AllocChurn::default());
            for _ in 0..51 {
                fixture.launch();
                fixture.alloc(1 << 30, 0x7000, MS);
                fixture.free(0x7000, free_ns);
            }
            // the last step has a free, and no allocation after it
            let cost_ns = fixture.finding().cost_ns;
            assert_eq!(cost_ns, 50 * (MS + POOLED_NS + delay_ns), "{free_ns}");
        }
    }

    #[test]
    fn frees_that_only_wait_cost_too_little_to_be_said() {
        let mut fixture = Fixture::of(AllocChurn::default());
        for _ in 0..51 {
            fixture.alloc(1 << 30, 0x7000, 2 * US);
            fixture.launch();
            fixture.free(0x7000, 9 * MS);
        }
        // 24 µs of 9 ms
        assert_eq!(fixture.findings(), []);
    }

    #[test]
    fn what_is_taken_beside_and_kept_is_no_churn() {
        let mut fixture = Fixture::of(AllocChurn::default());
        for number in 0..100 {
            fixture.alloc(64 << 20, 0x7000, MS);
            if number % 2 == 1 {
                fixture.alloc(1 << 20, 0x10_0000 + number, MS);
            }
            fixture.launch();
            fixture.sync(2 * MS);
            fixture.free(0x7000, MS);
        }
        let finding = fixture.finding();
        assert_eq!(finding.count, 99);
        assert!(finding.what.contains("99 times, 64.0 MiB each"), "{}", finding.what);
    }

    #[test]
    fn a_block_serves_what_is_at_least_half_as_large() {
        for (kept, said) in [
            (64, "50 times, 64.0 MiB each"),
            (33, "50 times, 33.0 MiB each"),
            // then it is the next one of its own size that it serves
            (31, "49 times, 64.0 MiB each"),
            (65, "49 times, 64.0 MiB each"),
        ] {
            let mut fixture = Fixture::of(AllocChurn::default());
            for number in 0..50 {
                fixture.alloc(64 << 20, 0x7000, MS);
                fixture.free(0x7000, MS);
                fixture.alloc(kept << 20, 0x8000 + number, MS);
                fixture.launch();
                fixture.sync(MS);
            }
            let what = fixture.finding().what;
            assert!(what.contains(said), "{kept} MiB: {what}");
        }
    }

    #[test]
    fn memory_taken_once_and_given_back_in_the_end_is_none() {
        let mut fixture = Fixture::of(AllocChurn::default());
        (0..100).for_each(|address| fixture.alloc(1 << 20, address, MS));
        fixture.healthy(10);
        (0..100).for_each(|address| fixture.free(address, MS));
        assert_eq!(fixture.findings(), []);
    }

    #[test]
    fn what_comes_out_of_a_pool_at_once_is_none() {
        let mut fixture = Fixture::of(AllocChurn::default());
        for _ in 0..1000 {
            fixture.alloc(1 << 20, 0x7000, 2 * US);
            fixture.free(0x7000, US);
        }
        assert_eq!(fixture.findings(), []);
    }
}
