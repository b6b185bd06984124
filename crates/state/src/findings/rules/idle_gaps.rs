//! The device has nothing to do for long, because its host does something else.

use crate::catalog::Class;
use crate::findings::cases::{Longest, Phased, Sum};
use crate::findings::evidence::End;
use crate::findings::part::Part;
use crate::findings::past::{Fault, LONG_NS, Past};
use crate::findings::places::Samples;
use crate::findings::seen::Seen;
use crate::findings::table::{Bounded, Grow, percent_of};
use crate::findings::{Rule, Wants};
use crate::model::finding::Finding;
use crate::model::outside::SAMPLE;
use crate::record::Kind;
use crate::text::quantity::{duration, plural};

const PERCENT: u64 = 10;
/// Threads whose time on processors is known.
const THREADS: usize = 4096;

#[derive(Debug, Default)]
struct Gaps {
    /// And the thread that ended it.
    longest: Longest<u32>,
    in_calls_ns: u64,
    /// Of these in calls that are no waits, copies, nor about memory or code.
    other_ns: u64,
    /// The call of these in which most of one gap passed.
    longest_other: Longest<Past>,
}

impl Gaps {
    /// Whether most of the time passed in calls of other kinds.
    fn is_in_others(&self, all_ns: u64) -> bool {
        self.other_ns >= all_ns.div_ceil(2)
    }
}

impl Sum for Gaps {
    fn join(&mut self, other: &Gaps) {
        self.in_calls_ns.grow(other.in_calls_ns);
        self.longest.join(&other.longest);
        self.other_ns.grow(other.other_ns);
        self.longest_other.join(&other.longest_other);
    }
}

/// What a thread used of a processor, by the first sample and the last.
#[derive(Debug, Default)]
struct Cpu {
    from: Option<(i64, u64)>,
    to: (i64, u64),
}

/// The device has nothing to do for long, because its host does something else.
#[derive(Debug)]
pub(crate) struct IdleGaps {
    cases: Phased<Gaps>,
    cpu: Bounded<Cpu>,
    samples: Samples,
}

impl Default for IdleGaps {
    fn default() -> IdleGaps {
        IdleGaps {
            cases: Phased::default(),
            cpu: Bounded::new(THREADS),
            samples: Samples::default(),
        }
    }
}

impl IdleGaps {
    fn sample(&mut self, seen: &Seen<'_>) {
        if seen.event.name == SAMPLE {
            return self.samples.take(seen);
        }
        let (event, value) = (seen.event, seen.event.bytes.unwrap_or(0));
        if let ("thread.cpu_ns", Some(cpu)) = (event.name, self.cpu.entry(u64::from(event.tid))) {
            cpu.from.get_or_insert((event.at, value));
            cpu.to = (event.at, value);
        }
    }

    /// What the thread did that ended the gaps, as far as it is known.
    fn meanwhile(&self, gaps: &Gaps, all_ns: u64, end: &End<'_>) -> String {
        if gaps.longest.whose == 0 {
            return "which thread gave it work again is not known".to_owned();
        }
        let calls = percent_of(gaps.in_calls_ns, all_ns);
        let outside = 100 - calls.min(100);
        let cpu = self.cpu.get(u64::from(gaps.longest.whose)).and_then(Cpu::percent);
        let cpu = match cpu {
            Some(percent) => format!("; over the whole run it was on a processor {percent} % of the time"),
            None => String::new(),
        };
        let others = percent_of(gaps.other_ns, all_ns).min(100);
        let within = match others >= PERCENT {
            true => format!(
                ", and in calls such as {} for {others} %",
                end.interner.name(gaps.longest_other.whose.name)
            ),
            false => String::new(),
        };
        format!(
            "thread {} was outside CUDA for {outside} % of it{within}{cpu}",
            gaps.longest.whose
        )
    }
}

fn cure(gaps: &Gaps, all_ns: u64) -> &'static str {
    match (gaps.is_in_others(all_ns), gaps.longest_other.whose.part) {
        (true, Part::Launch) => {
            "have code loaded before the work begins: CUDA_MODULE_LOADING=EAGER, or launch each kernel once"
        }
        (true, _) => {
            "make such calls before the work begins, and keep what they make or set up: devices, contexts, streams"
        }
        (false, _) => {
            "do the host's work (loading, decoding, logging, saving) in other threads or processes, a step ahead (in PyTorch: \
             num_workers, prefetch_factor and persistent_workers of a DataLoader)"
        }
    }
}

impl Cpu {
    fn percent(&self) -> Option<u64> {
        let (from, used) = self.from?;
        let ns = self.to.0.saturating_sub(from).unsigned_abs();
        (ns > 0).then(|| percent_of(self.to.1.saturating_sub(used), ns))
    }
}

impl Rule for IdleGaps {
    fn name(&self) -> &'static str {
        "idle-gaps"
    }

    fn wants(&self, kind: Kind, _: Class) -> Wants {
        match kind {
            Kind::Idle | Kind::Sample => Wants::All,
            _ => Wants::Nothing,
        }
    }

    fn take(&mut self, seen: &Seen<'_>) {
        let Some(gap) = seen.gap else {
            return self.sample(seen);
        };
        // a program that starts has given its device nothing to do so far
        if gap.at_start {
            return;
        }
        if let (Fault::Host, Some((evidence, gaps))) = (gap.fault, self.cases.of(seen)) {
            evidence.add_own_gap(seen, gap.ns);
            [gap.memory_ns, gap.code_ns, gap.wait_ns, gap.other_ns]
                .into_iter()
                .for_each(|ns| gaps.in_calls_ns.grow(ns));
            gaps.other_ns.grow(gap.other_ns);
            if let Some((ns, call)) = gap.longest_other {
                gaps.longest_other.join(&Longest { ns, whose: call });
            }
            gaps.longest.join(&Longest {
                ns: gap.ns,
                whose: seen.event.tid,
            });
            self.samples.gap(seen);
        }
    }

    fn conclude(&self, end: &End<'_>) -> Option<Finding> {
        let steady = self.cases.steady(end);
        let (pid, evidence, gaps) = steady.max_by_key(|(pid, evidence, _)| (evidence.ns, u32::MAX - pid))?;
        if !end.is_share(evidence.ns, PERCENT) {
            return None;
        }
        let sampled = self.samples.in_gaps(end, pid);
        let finding = evidence.finding(self.name(), end);
        let of_call = || end.interner.site(gaps.longest_other.whose.site).map(str::to_owned);
        let site = match gaps.is_in_others(evidence.ns) {
            true => of_call().or(finding.site),
            false => self.samples.site(&sampled, evidence.ns).or(finding.site),
        };
        let sampled_words = match sampled.places.is_empty() {
            true => String::new(),
            false => format!("; {}", sampled.words(evidence.ns)),
        };
        Some(Finding {
            certainty: evidence.idle_certainty(end),
            title: format!(
                "The device has nothing to do for long, {}",
                plural(evidence.count, "time")
            ),
            what: format!(
                "the device had nothing to do for {} in all, in {} of {} or more, the longest {}: {}{sampled_words}",
                duration(evidence.ns),
                plural(evidence.count, "gap"),
                duration(LONG_NS),
                duration(gaps.longest.ns),
                self.meanwhile(&gaps, evidence.ns, end)
            ),
            cure: cure(&gaps, evidence.ns).to_owned(),
            thresholds: format!(
                "gaps of {} or more in the steady part, {PERCENT} % of it in all",
                duration(LONG_NS)
            ),
            weakened: None,
            site,
            places: sampled.places,
            ..finding
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::CopyKind;
    use crate::findings::fixture::{Fixture, MS, US};
    use crate::model::activity::Why;
    use crate::model::work::Certainty;

    /// Something was launched and waited for; when that was over.
    fn waited(fixture: &mut Fixture) -> i64 {
        fixture.launch();
        fixture.sync(9 * MS);
        fixture.at
    }

    fn steps(fixture: &mut Fixture, gap_ns: u64) {
        for _ in 0..20 {
            waited(fixture);
            fixture.idle(gap_ns);
        }
    }

    #[test]
    fn long_gaps_cost_what_they_last() {
        let mut fixture = Fixture::of(IdleGaps::default());
        fixture.sample("thread.cpu_ns", 0);
        steps(&mut fixture, 3 * MS);
        fixture.sample("thread.cpu_ns", 60 * MS);
        let finding = fixture.finding();
        assert_eq!((finding.count, finding.cost_ns), (20, 60 * MS));
        assert_eq!(finding.certainty, Certainty::Bound);
        assert!(
            finding.what.contains("outside CUDA for 100 % of it"),
            "{}",
            finding.what
        );
        assert!(finding.what.contains("on a processor 24 %"), "{}", finding.what);
    }

    #[test]
    fn what_the_host_did_in_them_is_said_as_far_as_it_was_sampled() {
        const LOADS: &str = r#"[{"function":"load_batch","file":"/x/train.py","line":10,"language":"python"}]"#;
        const LOGS: &str = r#"[{"function":"log","file":"/x/train.py","line":20,"language":"python"}]"#;
        let mut fixture = Fixture::of(IdleGaps::default());
        for _ in 0..20 {
            let since = waited(&mut fixture);
            fixture.outside(3 * MS, LOADS);
            fixture.launch();
            fixture.idle_since(since);
            // and what it did while the device was at work
            fixture.outside(3 * MS, LOGS);
        }
        let finding = fixture.finding();
        let said = "where it was: 100 % in train.py:10 load_batch (of 20 samples)";
        assert!(finding.what.contains(said), "{}", finding.what);
        assert_eq!(finding.site.as_deref(), Some(LOADS));
    }

    #[test]
    fn who_is_in_a_call_of_another_kind_is_not_outside_cuda() {
        let mut fixture = Fixture::of(IdleGaps::default());
        for _ in 0..20 {
            let since = waited(&mut fixture);
            fixture.call(Class::Context, 2 * MS, |call| call.name = "cudaDeviceReset");
            fixture.pass(MS);
            fixture.launch();
            fixture.idle_since(since);
        }
        let finding = fixture.finding();
        let said = "was outside CUDA for 34 % of it, and in calls such as cudaDeviceReset for 66 %";
        assert!(finding.what.contains(said), "{}", finding.what);
        assert!(finding.cure.contains("before the work begins"), "{}", finding.cure);
    }

    #[test]
    fn of_a_thread_that_is_not_known_nothing_is_said() {
        let mut fixture = Fixture::of(IdleGaps::default());
        for _ in 0..20 {
            let since = waited(&mut fixture);
            fixture.pass(3 * MS);
            fixture.launch();
            let thread = std::mem::take(&mut fixture.tid);
            fixture.ran_dry(since, Why::Other);
            fixture.tid = thread;
        }
        let finding = fixture.finding();
        assert!(
            finding.what.contains("which thread gave it work again is not known"),
            "{}",
            finding.what
        );
    }

    #[test]
    fn before_the_first_launch_nothing_is_idle() {
        let mut fixture = Fixture::of(IdleGaps::default());
        fixture.copy(CopyKind::HtoD, 4 << 20, 1);
        fixture.sync(MS);
        let since = fixture.at;
        fixture.pass(4000 * MS);
        fixture.launch();
        fixture.idle_since(since);
        fixture.healthy(10);
        assert_eq!(fixture.findings(), []);
    }

    #[test]
    fn gaps_count_that_are_told_when_the_process_is_gone() {
        let mut fixture = Fixture::of(IdleGaps::default());
        let since = waited(&mut fixture);
        fixture.pass(5 * MS);
        fixture.launch();
        fixture.exit();
        fixture.idle_since(since);
        assert_eq!(fixture.finding().count, 1);
    }

    #[test]
    fn one_gap_is_told_as_one() {
        let mut fixture = Fixture::of(IdleGaps::default());
        waited(&mut fixture);
        fixture.idle(3 * MS);
        let what = fixture.finding().what;
        assert!(what.contains("in 1 gap of 1.0 ms or more"), "{what}");
    }

    #[test]
    fn the_worst_moments_are_gaps_where_devices_told_of_them() {
        let worst = |why: Option<Why>| {
            let mut fixture = Fixture::of(IdleGaps::default());
            for _ in 0..20 {
                let since = waited(&mut fixture);
                fixture.pass(3 * MS);
                fixture.launch();
                match why {
                    Some(why) => fixture.ran_dry(since, why),
                    None => fixture.idle_since(since),
                }
            }
            fixture.finding().moments[0].name.clone()
        };
        assert_eq!(worst(Some(Why::Blocked)), Why::Blocked.name());
        assert_eq!(worst(None), "sync");
    }

    #[test]
    fn few_or_short_gaps_are_none() {
        for gap_ns in [900 * US, 300 * US] {
            let mut fixture = Fixture::of(IdleGaps::default());
            steps(&mut fixture, gap_ns);
            assert_eq!(fixture.findings(), []);
        }
        let mut fixture = Fixture::of(IdleGaps::default());
        fixture.healthy(100);
        fixture.idle(5 * MS);
        fixture.launch();
        assert_eq!(fixture.findings(), []);
    }
}
