//! What one process has given devices to do, in sums that only grow: for those who ask often.

use super::process::Process;
use super::report::{Certainty, CopyReport, GpuReport, GraphReport, HiddenWait, ProcessReport, WaitReport};
use crate::model::fleet::{Copied, Sums, Used, WaitOf, Waited};
use crate::model::kind::CopyClass;
use crate::model::reason::Reasons;

/// Idle time of a process by why, since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IdleTime {
    pub reasons: Reasons,
    /// It is no bound.
    pub inferred: bool,
}

/// Time that threads waited in calls of one function, or one kind, from one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitAt {
    pub of: WaitOf,
    /// Names the stack.
    pub site: u64,
    pub ns: u64,
}

impl Process {
    /// What was done until `now`, CLOCK_MONOTONIC ns, without what may still be taken back: no sum of it ever falls.
    pub(crate) fn so_far(&self, pid: u32, now: u64) -> ProcessReport {
        ProcessReport {
            hidden: self.hidden.decided(),
            ..self.report(pid, None, now)
        }
    }
}

impl ProcessReport {
    /// When devices had nothing to do.
    #[must_use]
    pub fn idle_time(&self) -> IdleTime {
        IdleTime {
            reasons: self.gpu.idle_reasons,
            inferred: self.gpu.inferred,
        }
    }

    /// How long it waited in which calls of which place, without those whose stack was not taken.
    pub fn waits_at(&self) -> Vec<WaitAt> {
        let asked = self.waits.iter().map(|wait| WaitAt {
            of: WaitOf::Asked(wait.row),
            site: wait.site,
            ns: wait.total_ns,
        });
        let hidden = self.hidden.iter().map(|wait| WaitAt {
            of: WaitOf::Hidden(wait.kind),
            site: wait.site,
            ns: wait.total_ns,
        });
        let mut all: Vec<WaitAt> = asked.chain(hidden).filter(|wait| wait.site != 0).collect();
        all.sort_by_key(|wait| std::cmp::Reverse(wait.ns));
        all
    }

    /// Adds what was done.
    pub fn add_to(&self, sums: &mut Sums) {
        self.copies.iter().for_each(|copies| add_copies(copies, sums));
        self.waits.iter().for_each(|wait| add_wait(wait, sums));
        self.hidden.iter().for_each(|wait| add_hidden(wait, sums));
        add_graphs(&self.graphs, sums);
        add_use(&self.gpu, sums);
    }
}

fn add_copies(copies: &CopyReport, sums: &mut Sums) {
    let class = CopyClass {
        direction: copies.direction,
        host: copies.host,
        blocking: copies.blocking,
    };
    let (timed_bytes, timed_ns) = copies.bandwidth.map_or((0, 0), |timed| (timed.bytes, timed.ns));
    sums.copies.entry(class).or_default().add(&Copied {
        count: copies.count,
        bytes: copies.bytes,
        call_ns: copies.call_ns,
        timed_bytes,
        timed_ns,
    });
}

fn add_wait(wait: &WaitReport, sums: &mut Sums) {
    let (count, ns) = (wait.count, wait.total_ns);
    sums.waits.entry(wait.row).or_default().add(Waited { count, ns });
}

fn add_hidden(wait: &HiddenWait, sums: &mut Sums) {
    let (count, ns) = (wait.count, wait.total_ns);
    sums.hidden.entry(wait.kind).or_default().add(Waited { count, ns });
}

fn add_graphs(graphs: &GraphReport, sums: &mut Sums) {
    sums.graph_launches += graphs.launches;
    sums.graph_kernels += graphs.kernels;
}

fn add_use(gpu: &GpuReport, sums: &mut Sums) {
    sums.used = Used {
        idle_at_least_ns: sums.used.idle_at_least_ns + gpu.idle_at_least_ns,
        busy_at_most_ns: sums.used.busy_at_most_ns + gpu.busy_at_most_ns,
    };
}

impl CopyClass {
    /// What the time of such copies is.
    #[must_use]
    pub fn certainty(self) -> Certainty {
        match self.blocking {
            true => Certainty::Measured,
            false => Certainty::Bound,
        }
    }
}
