//! The host waits for the device, and then the device for the host: waits behind which it had nothing to do.

use crate::catalog::Class;
use crate::findings::cases::Phased;
use crate::findings::evidence::End;
use crate::findings::part::PROMPT_NS;
use crate::findings::past::{Fault, LONG_NS, SHORT_NS};
use crate::findings::seen::Seen;
use crate::findings::{Rule, Wants};
use crate::model::finding::Finding;
use crate::record::Kind;
use crate::text::quantity::{count, duration, plural};

const AT_LEAST: u64 = 10;
const PERCENT: u64 = 5;

/// Waits of each process behind which its device had nothing to do.
#[derive(Debug, Default)]
pub(crate) struct SyncStall(Phased<u64>);

impl Rule for SyncStall {
    fn name(&self) -> &'static str {
        "sync-stall"
    }

    fn wants(&self, kind: Kind, class: Class) -> Wants {
        match kind {
            Kind::Call if class == Class::Sync => Wants::Work,
            Kind::Idle => Wants::All,
            _ => Wants::Nothing,
        }
    }

    fn take(&mut self, seen: &Seen<'_>) {
        let Some((evidence, waits)) = self.0.of(seen) else {
            return;
        };
        match seen.gap {
            Some(gap) if gap.fault == Fault::Sync => evidence.add_gap(seen, gap.ns),
            Some(_) => {}
            None => *waits += 1,
        }
    }

    fn conclude(&self, end: &End<'_>) -> Option<Finding> {
        let (evidence, waits) = self.0.costliest(end)?;
        if evidence.count < AT_LEAST || !end.is_share(evidence.ns, PERCENT) {
            return None;
        }
        Some(Finding {
            certainty: evidence.idle_certainty(end),
            title: format!(
                "The device waits for its host behind {}",
                plural(evidence.count, "wait")
            ),
            what: format!(
                "behind {} of {} waits for the device it had nothing to do until the host launched again, for {} in all",
                count(evidence.count),
                count(waits.max(evidence.count)),
                duration(evidence.ns)
            ),
            cure:
                "launch the next work before waiting: wait for an event of the step before (cudaEventSynchronize), or \
                   let streams wait for each other (cudaStreamWaitEvent)"
                    .to_owned(),
            thresholds: format!(
                "at least {AT_LEAST} waits of more than {}, each with {} to {} of idle time behind it, {PERCENT} % of the \
                 time in all",
                duration(PROMPT_NS),
                duration(SHORT_NS),
                duration(LONG_NS)
            ),
            weakened: end.weakness(&[Class::Sync]),
            ..evidence.finding(self.name(), end)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::{Fixture, MS, US};
    use crate::model::activity::Why;
    use crate::model::work::Certainty;

    fn steps(wait_ns: u64, gap_ns: u64) -> Vec<Finding> {
        let mut fixture = Fixture::of(SyncStall::default());
        for _ in 0..100 {
            fixture.launch();
            fixture.sync(wait_ns);
            fixture.idle(gap_ns);
        }
        fixture.findings()
    }

    #[test]
    fn idle_time_behind_waits_is_what_they_cost() {
        let findings = steps(2 * MS, 300 * US);
        assert_eq!(
            (findings.len(), findings[0].count, findings[0].cost_ns),
            (1, 100, 100 * 300 * US)
        );
    }

    #[test]
    fn idle_time_that_the_device_tells_of_is_measured_from_when_it_was_done() {
        let mut fixture = Fixture::of(SyncStall::default());
        for _ in 0..100 {
            fixture.launch();
            fixture.sync(2 * MS);
            let done = fixture.at - 40_000;
            fixture.pass(300 * US);
            fixture.ran_dry(done, Why::HostCode);
        }
        let finding = fixture.finding();
        assert_eq!(
            (finding.cost_ns, finding.certainty),
            (100 * 340 * US, Certainty::Measured)
        );
        fixture.doubt_records();
        assert_eq!(fixture.finding().certainty, Certainty::Bound);
        fixture.sync(2 * MS);
        fixture.idle(300 * US);
        assert_eq!(fixture.finding().certainty, Certainty::Bound);
    }

    #[test]
    fn waits_that_end_at_once_or_with_more_to_do_are_none() {
        assert_eq!(steps(10 * US, 300 * US), []);
        assert_eq!(steps(2 * MS, 10 * US), []);
    }

    #[test]
    fn long_idle_time_is_not_the_fault_of_the_wait_before() {
        assert_eq!(steps(2 * MS, 3 * MS), []);
    }
}
