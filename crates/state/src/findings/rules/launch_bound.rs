//! The host prepares launches more slowly than the device does them: when it asks, everything is done already.

use super::launch_storm::is_storm;
use crate::catalog::Class;
use crate::findings::cases::{Phased, Sum};
use crate::findings::evidence::End;
use crate::findings::load::{PROMPT_ITEM_NS, STEP_LAUNCHES, is_late, step_ns};
use crate::findings::scene::{PROMPT_NS, Part, Seen};
use crate::findings::table::is_percent;
use crate::findings::{Rule, Wants};
use crate::model::finding::Finding;
use crate::model::work::Certainty;
use crate::record::Kind;
use crate::text::quantity::{count, duration};

const AT_LEAST: u64 = 20;
/// Of the steps.
const LATE_PERCENT: u64 = 80;
/// Of the time.
const PERCENT: u64 = 30;

/// Steps, and launches of those that were late.
#[derive(Debug, Default)]
struct Steps {
    all: u64,
    launches: u64,
}

impl Sum for Steps {
    fn join(&mut self, other: &Steps) {
        self.all += other.all;
        self.launches += other.launches;
    }
}

/// The host prepares launches more slowly than the device does them.
#[derive(Debug, Default)]
pub(crate) struct LaunchBound(Phased<Steps>);

impl Rule for LaunchBound {
    fn name(&self) -> &'static str {
        "launch-bound"
    }

    fn wants(&self, kind: Kind, class: Class) -> Wants {
        match (kind, class) {
            (Kind::Call, Class::Sync | Class::Copy) => Wants::Work,
            _ => Wants::Nothing,
        }
    }

    fn take(&mut self, seen: &Seen<'_>) {
        let is_wait = matches!(seen.part, Part::Sync | Part::Item);
        if !is_wait || seen.process.step_launches < STEP_LAUNCHES {
            return;
        }
        let Some((evidence, steps)) = self.0.of(seen) else {
            return;
        };
        steps.all += 1;
        if is_late(seen) {
            steps.launches += u64::from(seen.process.step_launches);
            evidence.add(seen, step_ns(seen));
        }
    }

    fn conclude(&self, end: &End<'_>) -> Option<Finding> {
        let (evidence, steps) = self.0.costliest(end)?;
        let mostly = is_percent(evidence.count, steps.all, LATE_PERCENT);
        // a step may have begun long before the time that shares are of
        let cost_ns = end.untraced(evidence.ns, steps.launches).min(end.run.steady_ns);
        if evidence.count < AT_LEAST || !mostly || !end.is_share(cost_ns, PERCENT) || is_storm(end) {
            return None;
        }
        Some(Finding {
            cost_ns,
            certainty: Certainty::Bound,
            title: "The host prepares launches more slowly than the device does them".to_owned(),
            what: format!(
                "in {} of {} steps the device was done before the host asked: it had waited for launches, which came \
                 every {}{}; at most the time from first launch to wait is lost",
                count(evidence.count),
                count(steps.all),
                duration(cost_ns / steps.launches.max(1)),
                end.untraced_words()
            ),
            cure:
                "give the device more for each launch: CUDA graphs or torch.compile, larger batches; take other work \
                   (logging, data) out of the thread that launches"
                    .to_owned(),
            thresholds: format!(
                "steps of at least {STEP_LAUNCHES} launches, of which none waited for room in the queue, whose wait returns \
                 within {} ({} for a value): at least {AT_LEAST}, {LATE_PERCENT} % of all, {PERCENT} % of the time",
                duration(PROMPT_NS),
                duration(PROMPT_ITEM_NS)
            ),
            weakened: end.weakness(&[Class::Sync, Class::Launch]),
            ..evidence.finding(self.name(), end)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::{Fixture, MS, US};

    fn run(between_ns: u64, wait_ns: u64) -> Vec<Finding> {
        let mut fixture = Fixture::of(LaunchBound::default());
        for _ in 0..50 {
            for _ in 0..20 {
                fixture.launch();
                fixture.pass(between_ns);
            }
            fixture.sync(wait_ns);
        }
        fixture.findings()
    }

    #[test]
    fn steps_that_are_done_before_the_host_asks_cost_at_most_their_length() {
        let findings = run(200 * US, 5 * US);
        assert_eq!((findings.len(), findings[0].count), (1, 50));
        assert_eq!(
            (findings[0].cost_ns, findings[0].certainty),
            (50 * 20 * 204 * US, Certainty::Bound)
        );
    }

    #[test]
    fn no_more_is_lost_than_there_was_time() {
        let mut fixture = Fixture::of(LaunchBound::default());
        fixture.launch();
        fixture.pass(3_000 * MS);
        for _ in 0..50 {
            for _ in 0..20 {
                fixture.launch();
                fixture.pass(200 * US);
            }
            fixture.sync(5 * US);
        }
        let findings = fixture.findings();
        assert_eq!((findings.len(), findings[0].count), (1, 50));
        assert!(
            findings[0].cost_ns < 500 * MS,
            "the pause is start-up: {}",
            findings[0].cost_ns
        );
    }

    #[test]
    fn a_host_that_waits_is_ahead() {
        assert_eq!(run(200 * US, MS), []);
    }

    #[test]
    fn a_storm_of_launches_is_another_finding() {
        let mut fixture = Fixture::of(LaunchBound::default());
        for _ in 0..500 {
            (0..20).for_each(|_| fixture.launch());
            fixture.sync(5 * US);
        }
        assert_eq!(fixture.findings(), []);
    }
}
