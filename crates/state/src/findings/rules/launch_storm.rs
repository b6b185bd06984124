//! Kernels that are done sooner than the next one can be launched: the device spends its time waiting for launches.
//!
//! The pace is then the host's. What one launch for many saves is the host's time in all, but for what the kernels
//! take by themselves; that is not seen, only that a kernel takes some microseconds at least.
//!
//! Where the device is behind its host, by long waits or a full queue, the pace is the device's: then it is no storm. Where it has told
//! what it did, that says whose pace it is.

use crate::catalog::Class;
use crate::findings::cases::Phased;
use crate::findings::evidence::End;
use crate::findings::load::LEAST_NS;
use crate::findings::seen::Seen;
use crate::findings::table::is_percent;
use crate::findings::{Rule, Wants};
use crate::model::finding::Finding;
use crate::model::work::Certainty;
use crate::record::Kind;
use crate::text::quantity::{count, duration};

const RATE: f64 = 10_000.0;
const AT_LEAST: u64 = 5_000;
/// Time a launch in which something may have been running.
const BUSY_NS: u64 = 20_000;
/// Waits for the device: it is not far behind its host.
const WAITED_PERCENT: u64 = 20;
/// Of a device that told what it did: it waits for launches so much of the time.
const WAITING_PERCENT: u64 = 50;

/// Kernels that are done sooner than the next one can be launched.
#[derive(Debug, Default)]
pub(crate) struct LaunchStorm(Phased);

/// Whether launches come so.
pub(crate) fn is_storm(end: &End<'_>) -> bool {
    let load = &end.load;
    let ahead = load.waited_ns.saturating_mul(100) <= load.window_ns().saturating_mul(WAITED_PERCENT);
    let rapid = load.launches >= AT_LEAST && load.rate() >= RATE && busy_ns(end) / load.launches < BUSY_NS;
    let hosts = match end.unlaunched_ns() {
        Some(ns) => is_percent(ns, load.window_ns(), WAITING_PERCENT),
        None => load.is_hosts,
    };
    rapid && ahead && hosts
}

fn busy_ns(end: &End<'_>) -> u64 {
    end.load.busy_ns(end.run.tracing_ns)
}

/// The host's time, without waits and what kernels take at least.
fn cost_ns(end: &End<'_>) -> u64 {
    if let Some(ns) = end.unlaunched_ns() {
        return ns;
    }
    let least_ns = end.load.launches.saturating_mul(LEAST_NS);
    busy_ns(end).saturating_sub(end.load.waited_ns.saturating_add(least_ns))
}

/// What is no loss.
fn kept(end: &End<'_>) -> String {
    match end.unlaunched_ns() {
        Some(_) => format!(
            "{} that the device took for what it was given (measured)",
            duration(end.load.ran_ns)
        ),
        None => format!("{} a kernel", duration(LEAST_NS)),
    }
}

impl Rule for LaunchStorm {
    fn name(&self) -> &'static str {
        "launch-storm"
    }

    fn wants(&self, kind: Kind, class: Class) -> Wants {
        match (kind, class) {
            (Kind::Call, Class::Launch) => Wants::All,
            _ => Wants::Nothing,
        }
    }

    fn take(&mut self, seen: &Seen<'_>) {
        // the program spends the time of the outermost call
        if seen.event.failed || seen.event.depth > 0 {
            return;
        }
        if let Some((evidence, ())) = self.0.of(seen) {
            evidence.add(seen, seen.ns());
        }
    }

    fn conclude(&self, end: &End<'_>) -> Option<Finding> {
        let (evidence, ()) = self.0.worst(end, |evidence, ()| evidence.count)?;
        if !is_storm(end) {
            return None;
        }
        let load = &end.load;
        Some(Finding {
            cost_ns: cost_ns(end),
            certainty: Certainty::Bound,
            title: format!(
                "{} kernels a second, done sooner than the next is launched",
                count(load.rate() as u64)
            ),
            what: format!(
                "{} launches, {} a second: one comes every {}{}, of which its call takes {}; a kernel takes less, and \
                 the device waits for the next one. At most that time is lost, but for {}",
                count(load.launches),
                count(load.rate() as u64),
                duration(busy_ns(end) / load.launches),
                end.untraced_words(),
                duration(evidence.ns / evidence.count.max(1)),
                kept(end)
            ),
            cure:
                "launch them together: CUDA graphs (torch.compile(mode=\"reduce-overhead\"), cudaStreamBeginCapture), \
                   fused kernels (torch.compile), or larger batches"
                    .to_owned(),
            thresholds: format!(
                "at least {} launches, {}/s, less than {} of possibly busy time each, at most \
                 {WAITED_PERCENT} % of the time in waits; half of them done when the host asked, and no full queue; where devices \
                 told what they did, {WAITING_PERCENT} % of the time without anything to do instead",
                count(AT_LEAST),
                count(RATE as u64),
                duration(BUSY_NS)
            ),
            weakened: end.weakness(&[Class::Launch]),
            ..evidence.finding(self.name(), end)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::{Fixture, MS, US};

    fn run(between_ns: u64, wait_ns: u64) -> Vec<Finding> {
        let mut fixture = Fixture::of(LaunchStorm::default());
        for _ in 0..100 {
            for _ in 0..100 {
                fixture.launch();
                fixture.pass(between_ns);
            }
            fixture.sync(wait_ns);
        }
        fixture.findings()
    }

    #[test]
    fn launches_back_to_back_with_a_device_that_keeps_up_are_a_storm() {
        let findings = run(3 * US, 5 * US);
        assert_eq!(
            (findings.len(), findings[0].count, findings[0].cost_ns),
            (1, 10_000, 9_999 * 7 * US + 99 * 5 * US - 10_000 * 2 * US)
        );
        assert_eq!(findings[0].certainty, Certainty::Bound);
    }

    #[test]
    fn what_tracing_takes_is_not_what_a_kernel_takes() {
        let mut fixture = Fixture::of(LaunchStorm::default());
        for _ in 0..10_000 {
            fixture.launch();
            fixture.pass(26 * US);
        }
        fixture.sync(5 * US);
        assert_eq!(fixture.findings(), []);
        fixture.tracing_took(10_000 * 15 * US);
        assert_eq!(fixture.finding().cost_ns, 9_999 * 30 * US - 10_000 * (15 + 2) * US);
    }

    #[test]
    fn a_device_that_is_behind_has_larger_kernels() {
        assert_eq!(run(3 * US, MS), []);
    }

    /// A hundred thousand kernels of 20 µs: launches wait for room, the device has no pause.
    fn full_queue(wait_ns: Option<u64>) -> Vec<Finding> {
        let mut fixture = Fixture::of(LaunchStorm::default());
        for number in 0..100_000 {
            let ns = if number < 1021 { 4 * US } else { 18 * US };
            fixture.call(Class::Launch, ns, |event| event.stream = Some(1));
            fixture.pass(US);
        }
        wait_ns.into_iter().for_each(|ns| fixture.sync(ns));
        fixture.findings()
    }

    #[test]
    fn a_full_queue_says_that_the_pace_is_the_devices() {
        // waited for at once, long after, and not at all
        for wait_ns in [Some(20 * MS), Some(5 * US), None] {
            assert_eq!(full_queue(wait_ns), [], "{wait_ns:?}");
        }
    }

    #[test]
    fn where_nobody_waits_nothing_says_whose_pace_it_is() {
        let mut fixture = Fixture::of(LaunchStorm::default());
        (0..10_000).for_each(|_| fixture.launch());
        assert_eq!(fixture.findings(), []);
    }

    #[test]
    fn launches_far_apart_are_none() {
        assert_eq!(run(200 * US, 5 * US), []);
    }
}
