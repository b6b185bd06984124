//! Copies that return only when they are done: `cudaMemcpy` without a stream.

use crate::catalog::Class;
use crate::findings::cases::{Phased, Sum as Sums};
use crate::findings::evidence::{End, Evidence};
use crate::findings::held::{Awaited, Held};
use crate::findings::past::Fault;
use crate::findings::seen::Seen;
use crate::findings::table::Grow;
use crate::findings::{Rule, Wants};
use crate::model::finding::Finding;
use crate::record::Kind;
use crate::text::quantity::{bytes, count, duration};

const AT_LEAST: u64 = 10;
const PERCENT: u64 = 1;

#[derive(Debug, Default)]
struct Sum {
    held: Held,
    /// Behind them the device had nothing to do.
    idle_ns: u64,
}

impl Sums for Sum {
    fn join(&mut self, other: &Sum) {
        self.held.join(&other.held);
        self.idle_ns.grow(other.idle_ns);
    }
}

/// Copies that return only when they are done.
#[derive(Debug, Default)]
pub(crate) struct SyncCopy {
    copies: Phased<Sum>,
    awaited: Awaited,
}

fn cost_ns(evidence: &Evidence, sum: &Sum, end: &End<'_>) -> u64 {
    sum.held.cost_ns(evidence.ns, end).saturating_add(sum.idle_ns)
}

impl Rule for SyncCopy {
    fn name(&self) -> &'static str {
        "sync-copy"
    }

    fn wants(&self, kind: Kind, class: Class) -> Wants {
        match kind {
            Kind::Call if class == Class::Copy => Wants::Work,
            Kind::Gpu | Kind::Idle => Wants::All,
            _ => Wants::Nothing,
        }
    }

    fn take(&mut self, seen: &Seen<'_>) {
        let event = seen.event;
        if let Some(gap) = seen.gap {
            if let (Fault::Copy, Some((_, sum))) = (gap.fault, self.copies.of(seen)) {
                // until the copy had returned it is among its time
                sum.idle_ns.grow(gap.ns.saturating_sub(gap.behind_ns));
            }
            return;
        }
        if event.kind == Kind::Gpu {
            if self.awaited.may_be(event)
                && let Some((_, sum)) = self.copies.of(seen)
            {
                self.awaited.began(seen, &mut sum.held);
            }
            return;
        }
        // before its first launch a program loads what it works on
        if !seen.is_transfer() || !event.blocking || seen.process.launches == 0 {
            return;
        }
        if let Some((evidence, sum)) = self.copies.of(seen) {
            evidence.add(seen, seen.ns());
            self.awaited.call(seen, &mut sum.held);
        }
    }

    fn conclude(&self, end: &End<'_>) -> Option<Finding> {
        let (evidence, sum) = self.copies.worst(end, |evidence, sum| cost_ns(evidence, sum, end))?;
        let cost_ns = cost_ns(&evidence, &sum, end);
        if evidence.count < AT_LEAST || !end.is_share(cost_ns, PERCENT) {
            return None;
        }
        Some(Finding {
            cost_ns,
            certainty: sum.held.certainty(end),
            title: "Copies without a stream are waited for".to_owned(),
            what: format!(
                "{} copies without a stream ({}) held their thread for {}{}, where moving the bytes takes {} ({}); the \
                 device had nothing to do for {} behind them",
                count(evidence.count),
                bytes(sum.held.bytes),
                duration(evidence.ns),
                sum.held.words(evidence.ns),
                duration(end.pinned.ns(sum.held.bytes)),
                end.pinned.words(),
                duration(sum.idle_ns)
            ),
            cure: "cudaMemcpyAsync in a stream of its own, from pinned memory, and an event where the data is needed"
                .to_owned(),
            thresholds: format!(
                "at least {AT_LEAST} copies between host and device after the first launch, {PERCENT} % of the time beyond \
                 moving the bytes"
            ),
            weakened: end.weakness(&[Class::Copy]),
            ..evidence.finding(self.name(), end)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{CopyKind, HostMemory};
    use crate::findings::fixture::{Fixture, MS, US};

    fn copies(fixture: &mut Fixture, blocking: bool, ns: u64, gap_ns: u64) {
        for _ in 0..20 {
            fixture.launch();
            fixture.call(Class::Copy, ns, |event| {
                (event.direction, event.bytes) = (Some(CopyKind::DtoH), Some(25_000_000));
                (event.host, event.blocking) = (Some(HostMemory::Pageable), blocking);
            });
            fixture.idle(gap_ns);
        }
    }

    #[test]
    fn they_cost_what_they_wait_and_the_idle_time_behind() {
        let mut fixture = Fixture::of(SyncCopy::default());
        copies(&mut fixture, true, 4 * MS, 200 * US);
        let finding = fixture.finding();
        assert_eq!((finding.count, finding.cost_ns), (20, 20 * (3 * MS + 200 * US)));
    }

    #[test]
    fn copies_in_streams_and_quick_ones_are_none() {
        for (blocking, ns) in [(false, 4 * MS), (true, MS)] {
            let mut fixture = Fixture::of(SyncCopy::default());
            copies(&mut fixture, blocking, ns, 0);
            assert_eq!(fixture.findings(), []);
        }
    }

    #[test]
    fn a_model_that_is_loaded_before_it_works_is_none() {
        let mut fixture = Fixture::of(SyncCopy::default());
        for _ in 0..50 {
            fixture.call(Class::Copy, 4 * MS, |event| {
                (event.direction, event.bytes, event.blocking) = (Some(CopyKind::HtoD), Some(1 << 20), true);
            });
        }
        fixture.healthy(10);
        assert_eq!(fixture.findings(), []);
    }
}
