//! A thread that calls CUDA could run and does not: others have its processor.

use crate::catalog::Class;
use crate::findings::evidence::{End, Evidence};
use crate::findings::seen::Seen;
use crate::findings::table::{Bounded, is_percent, percent_of};
use crate::findings::{Rule, Wants};
use crate::model::finding::Finding;
use crate::record::Kind;
use crate::text::quantity::duration;

/// Of the time of a thread.
const PERCENT: u64 = 5;
const AT_LEAST_NS: u64 = 500_000_000;
const THREADS: usize = 4096;

/// By its samples, the first and the last.
#[derive(Debug, Default)]
struct Thread {
    pid: u32,
    tid: u32,
    from: Option<i64>,
    last: (i64, u64),
    waited: Evidence,
}

impl Thread {
    fn ns(&self) -> u64 {
        self.from
            .map_or(0, |from| self.last.0.saturating_sub(from).unsigned_abs())
    }
}

/// A thread that calls CUDA could run and does not.
#[derive(Debug)]
pub(crate) struct HostContention(Bounded<Thread>);

impl Default for HostContention {
    fn default() -> HostContention {
        HostContention(Bounded::new(THREADS))
    }
}

impl Rule for HostContention {
    fn name(&self) -> &'static str {
        "host-contention"
    }

    fn wants(&self, kind: Kind, _: Class) -> Wants {
        match kind {
            Kind::Sample => Wants::All,
            _ => Wants::Nothing,
        }
    }

    fn take(&mut self, seen: &Seen<'_>) {
        let (event, value) = (seen.event, seen.event.bytes.unwrap_or(0));
        if event.name != "thread.runnable_ns" {
            return;
        }
        let Some(thread) = self.0.entry(u64::from(event.tid)) else {
            return;
        };
        if thread.from.is_some() {
            thread.waited.add(seen, value.saturating_sub(thread.last.1));
        }
        thread.from.get_or_insert(event.at);
        (thread.pid, thread.tid, thread.last) = (event.pid, event.tid, (event.at, value));
    }

    fn conclude(&self, end: &End<'_>) -> Option<Finding> {
        let long = self
            .0
            .iter()
            .map(|(_, thread)| thread)
            .filter(|thread| thread.ns() >= AT_LEAST_NS);
        let thread = long.max_by_key(|thread| (thread.waited.ns, thread.tid))?;
        if !is_percent(thread.waited.ns, thread.ns(), PERCENT) {
            return None;
        }
        let finding = thread.waited.finding(self.name(), end);
        Some(Finding {
            title: format!("Thread {} waits for a processor", thread.tid),
            what: format!(
                "thread {} of process {} could run and waited for a processor for {} of {} ({} %)",
                thread.tid,
                thread.pid,
                duration(thread.waited.ns),
                duration(thread.ns()),
                percent_of(thread.waited.ns, thread.ns())
            ),
            cure: "give it more processors: fewer workers, threads of libraries (OMP_NUM_THREADS) or other jobs beside it, \
                   a higher CPU quota, or processors of its own (taskset, cpuset)"
                .to_owned(),
            thresholds: format!(
                "a thread that calls CUDA, watched for {} or longer: runnable and not running for at least {PERCENT} % \
                 of it",
                duration(AT_LEAST_NS)
            ),
            weakened: None,
            ..finding
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::{Fixture, MS};

    fn seconds(waited_ns: u64) -> Vec<Finding> {
        let mut fixture = Fixture::of(HostContention::default());
        for tenth in 0..20 {
            fixture.sample("thread.cpu_ns", tenth * 50 * MS);
            fixture.sample("thread.runnable_ns", 77 * MS + tenth * waited_ns);
            fixture.launch();
            fixture.pass(100 * MS);
        }
        fixture.findings()
    }

    #[test]
    fn a_thread_that_waits_for_processors_costs_that_time() {
        let findings = seconds(20 * MS);
        assert_eq!((findings.len(), findings[0].cost_ns), (1, 19 * 20 * MS));
        assert_eq!(findings[0].moments[0].name, "thread.runnable_ns");
    }

    #[test]
    fn what_it_waits_now_and_then_is_none() {
        assert_eq!(seconds(4 * MS), []);
    }
}
