//! The host prepares launches more slowly than the device does them: when it asks, everything is done already. Where the device has told
//! what it did, the time is known in which it had nothing to do, whether anybody asks or not.

use super::launch_storm::is_storm;
use crate::catalog::Class;
use crate::findings::cases::{Phased, Sum};
use crate::findings::evidence::{End, Evidence};
use crate::findings::load::{PROMPT_ITEM_NS, STEP_LAUNCHES, is_late, step_ns};
use crate::findings::part::{PROMPT_NS, Part};
use crate::findings::past::Fault;
use crate::findings::places::Samples;
use crate::findings::seen::Seen;
use crate::findings::table::is_percent;
use crate::findings::{Rule, Wants};
use crate::model::activity::Why;
use crate::model::finding::Finding;
use crate::model::outside::BETWEEN;
use crate::model::work::Certainty;
use crate::record::Kind;
use crate::text::quantity::{count, duration};

const AT_LEAST: u64 = 20;
/// Of a device that told what it did.
const LAUNCHES: u64 = 1_000;
/// Of the steps.
const LATE_PERCENT: u64 = 80;
/// Of the time: of what calls prove, which is all the time of a step, and of what devices told, which is time that was lost.
const PERCENT: u64 = 30;
const TOLD_PERCENT: u64 = 10;

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
pub(crate) struct LaunchBound {
    steps: Phased<Steps>,
    /// Gaps that devices told of between what they had been given without a wait.
    gaps: Phased,
    /// Where hosts were in these.
    samples: Samples,
}

impl LaunchBound {
    /// By steps that were done before the host asked.
    fn by_steps(&self, end: &End<'_>) -> Option<Finding> {
        let (evidence, steps) = self.steps.costliest(end)?;
        let mostly = is_percent(evidence.count, steps.all, LATE_PERCENT);
        // a step may have begun long before the time that shares are of
        let cost_ns = end.untraced(evidence.ns, steps.launches).min(end.run.steady_ns);
        if evidence.count < AT_LEAST || !mostly {
            return None;
        }
        Some(Finding {
            cost_ns,
            what: format!(
                "in {} of {} steps the device was done before the host asked: it had waited for launches, which came \
                 every {}{}; at most the time from first launch to wait is lost",
                count(evidence.count),
                count(steps.all),
                duration(cost_ns / steps.launches.max(1)),
                end.untraced_words()
            ),
            ..evidence.finding(self.name(), end)
        })
    }

    /// What gaps add up to that are long enough to be told one by one, without what tracing took.
    fn told_ns(&self, end: &End<'_>) -> u64 {
        let most = self.longest(end).map_or(0, |(_, gaps)| gaps.ns);
        most.saturating_sub(end.run.tracing_ns)
    }

    /// The gaps of the process in which they add up to most.
    fn longest(&self, end: &End<'_>) -> Option<(u32, Evidence)> {
        let gaps = self.gaps.steady(end).filter(|(_, gaps, ())| gaps.count > 0);
        let most = gaps.max_by_key(|(pid, gaps, ())| (gaps.ns, u32::MAX - pid));
        most.map(|(pid, gaps, ())| (pid, gaps))
    }

    /// By what the device has told.
    fn by_device(&self, end: &End<'_>, cost_ns: u64) -> Option<Finding> {
        let load = &end.load;
        if load.launches < LAUNCHES {
            return None;
        }
        let late = self.steps.costliest(end).filter(|(evidence, _)| evidence.count > 0);
        let asked = late.as_ref().map_or_else(String::new, |(evidence, steps)| {
            let (late, all) = (count(evidence.count), count(steps.all));
            format!("in {late} of {all} steps it was done before the host asked; ")
        });
        let gaps = self.longest(end);
        let sampled = gaps
            .as_ref()
            .map(|(pid, _)| self.samples.in_gaps(end, *pid))
            .unwrap_or_default();
        let evidence = gaps.map(|(_, gaps)| gaps).or(late.map(|(evidence, _)| evidence))?;
        let where_it_was = match sampled.places.is_empty() {
            true => String::new(),
            false => format!("; {}", sampled.words(cost_ns)),
        };
        let found = evidence.finding(self.name(), end);
        Some(Finding {
            cost_ns,
            what: format!(
                "{} launches came every {}{}, and what they gave the device took it {} (measured); {asked}it waited for the next of \
                 them for {} at most, without what other findings and waits are about{where_it_was}",
                count(load.launches),
                duration(load.busy_ns(end.run.tracing_ns) / load.launches),
                end.untraced_words(),
                duration(load.ran_ns),
                duration(cost_ns)
            ),
            site: self.samples.site(&sampled, cost_ns).or(found.site),
            places: sampled.places,
            ..found
        })
    }
}

impl Rule for LaunchBound {
    fn name(&self) -> &'static str {
        "launch-bound"
    }

    fn wants(&self, kind: Kind, class: Class) -> Wants {
        match (kind, class) {
            (Kind::Call, Class::Sync | Class::Copy) => Wants::Work,
            (Kind::Idle | Kind::Sample, _) => Wants::All,
            _ => Wants::Nothing,
        }
    }

    fn take(&mut self, seen: &Seen<'_>) {
        if let Some(gap) = &seen.gap {
            let is_hosts = Why::from_name(seen.event.name).is_some_and(Why::is_hosts);
            let is_between = gap.measured && is_hosts && gap.fault == Fault::Nobody;
            if let Some((gaps, ())) = self.gaps.of(seen).filter(|_| is_between) {
                gaps.note(seen, gap.ns);
                gaps.ns = gaps.ns.saturating_add(gap.ns);
                self.samples.gap(seen);
            }
            return;
        }
        if seen.event.kind == Kind::Sample {
            if seen.event.name == BETWEEN {
                self.samples.take(seen);
            }
            return;
        }
        let is_wait = matches!(seen.part, Part::Sync | Part::Item);
        if !is_wait || seen.process.step_launches < STEP_LAUNCHES {
            return;
        }
        let Some((evidence, steps)) = self.steps.of(seen) else {
            return;
        };
        steps.all += 1;
        if is_late(seen) {
            steps.launches += u64::from(seen.process.step_launches);
            evidence.add(seen, step_ns(seen));
        }
    }

    fn conclude(&self, end: &End<'_>) -> Option<Finding> {
        let (found, percent) = match end.unlaunched_ns() {
            Some(ns) => (self.by_device(end, ns.max(self.told_ns(end))), TOLD_PERCENT),
            None => (self.by_steps(end), PERCENT),
        };
        let found = found.filter(|found| end.is_share(found.cost_ns, percent) && !is_storm(end))?;
        Some(Finding {
            certainty: Certainty::Bound,
            title: "The host prepares launches more slowly than the device does them".to_owned(),
            cure:
                "give the device more for each launch: CUDA graphs or torch.compile, larger batches; take other work \
                   (logging, data) out of the thread that launches"
                    .to_owned(),
            thresholds: format!(
                "steps of at least {STEP_LAUNCHES} launches, of which none waited for room in the queue, whose wait returns \
                 within {} ({} for a value): at least {AT_LEAST}, {LATE_PERCENT} % of all, {PERCENT} % of the time; where devices told \
                 what they did, {} launches, and {TOLD_PERCENT} % of the time between them without anything to do instead",
                duration(PROMPT_NS),
                duration(PROMPT_ITEM_NS),
                count(LAUNCHES)
            ),
            weakened: end.weakness(&[Class::Sync, Class::Launch]),
            ..found
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::{Fixture, MS, US};
    use crate::model::activity::Why;

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

    /// A thousand steps of 20 launches, of which each keeps the device busy for so long, without anybody who waits.
    fn told(kernel_ns: u64) -> Vec<Finding> {
        let mut fixture = Fixture::of(LaunchBound::default());
        for _ in 0..1_000 {
            fixture.pass(200 * US - kernel_ns - 4 * US);
            let since = fixture.at.saturating_sub_unsigned(200 * US - kernel_ns);
            if kernel_ns < 180 * US {
                fixture.idle_because(since, Why::Launch);
            }
            fixture.launch();
            fixture.ran(kernel_ns);
            fixture.pass(kernel_ns);
        }
        fixture.findings()
    }

    #[test]
    fn what_the_device_has_told_says_how_long_it_waited_for_launches_though_nobody_asks() {
        let findings = told(50 * US);
        assert_eq!((findings.len(), findings[0].certainty), (1, Certainty::Bound));
        assert!(
            (145 * MS..=150 * MS).contains(&findings[0].cost_ns),
            "{}",
            findings[0].cost_ns
        );
        assert!(
            findings[0].what.contains("took it 50.0 ms (measured)"),
            "{}",
            findings[0].what
        );
        assert_eq!(told(190 * US), [], "it is busy nearly all of the time");
    }

    #[test]
    fn a_full_queue_by_calls_is_none_where_the_device_told_that_it_had_nothing_to_do() {
        let mut fixture = Fixture::of(LaunchBound::default());
        for number in 0..6_000 {
            let ns = if number % 3_000 < 1021 { 4 * US } else { 60 * US };
            let since = fixture.at;
            fixture.call(Class::Launch, ns, |event| event.stream = Some(1));
            fixture.pass(US);
            fixture.idle_because(since, Why::Launch);
            fixture.ran(2 * US);
        }
        assert_eq!(fixture.finding().rule, "launch-bound");
    }

    #[test]
    fn where_the_host_was_between_launches_is_named_by_looks_within_the_time_that_was_lost() {
        let stack = |line: &str| -> &'static str {
            let words = format!(r#"[{{"function":"step","file":"train.py","line":{line},"language":"python"}}]"#);
            Box::leak(words.into_boxed_str())
        };
        let (forward, backward, log) = (stack("10"), stack("20"), stack("30"));
        let mut fixture = Fixture::of(LaunchBound::default());
        for number in 0..2_000 {
            let since = fixture.at;
            fixture.pass(100 * US);
            match number % 40 {
                0 => fixture.look(100 * US, forward),
                10 | 20 => fixture.look(100 * US, backward),
                _ => {}
            }
            fixture.pass(50 * US);
            fixture.idle_because(since, Why::HostCode);
            fixture.launch();
            fixture.ran(40 * US);
            fixture.pass(20 * US);
            // the device works: what the host does then is no matter
            if number % 10 == 0 {
                fixture.look(10 * US, log);
            }
            fixture.pass(20 * US);
        }
        let finding = fixture.finding();
        assert!(
            finding
                .what
                .contains("where it was: 66 % in train.py:20 step, 33 % in train.py:10 step (of 150 samples)"),
            "{}",
            finding.what
        );
        assert_eq!(finding.site.as_deref(), Some(backward));
    }

    #[test]
    fn what_no_host_is_the_cause_of_is_no_slow_launching() {
        let told = |why: Why| {
            let mut fixture = Fixture::of(LaunchBound::default());
            for _ in 0..2_000 {
                let since = fixture.at;
                fixture.pass(50 * US);
                fixture.idle_because(since, why);
                fixture.launch();
                fixture.ran(150 * US);
                fixture.pass(150 * US);
            }
            fixture.findings().len()
        };
        assert_eq!(
            (told(Why::Launch), told(Why::Dependency), told(Why::HostFunction)),
            (1, 0, 0)
        );
    }
}
