//! What devices are given to do, and when it is known to be done.
//!
//! Pure: it is fed with the records of the ring of work, with memory calls and with the ends of processes, in the
//! order of their returns, and can be asked at any time. Only the driver layer counts.

mod call;
mod capture;
mod classify;
mod content;
mod copies;
mod events;
mod graphs;
mod hidden;
mod idle;
mod name;
mod past;
mod plans;
mod process;
mod ranges;
mod report;
#[cfg(test)]
mod sample;
mod stream;
mod streams;
mod tally;
#[cfg(test)]
mod tests;
mod waits;

pub use super::kind::{CopyClass, HiddenKind};
pub use super::reason::{Gain, Reason};
pub use call::Call;
pub use idle::Gap;
pub use name::StreamName;
pub(crate) use ranges::Ranges;
pub use report::{
    Bandwidth, Certainty, CopyReport, Created, GpuReport, GraphReport, HiddenWait, ProcessReport, SIZE_BUCKETS,
    StreamReport, WaitReport,
};
pub use tally::WaitAt;

use crate::catalog::MemoryKind;
use crate::model::memory::{self, Origin};
use crate::wire::WorkLoss;
pub(crate) use process::GraphKernel;
use process::Process;
use std::collections::HashMap;

/// Reports of ended processes that are kept.
const KEPT_REPORTS: usize = 1024;

/// What devices are given to do.
#[derive(Debug, Default)]
pub struct Work {
    processes: HashMap<u32, Process>,
    ended: Vec<ProcessReport>,
    graph_kernels: Vec<GraphKernel>,
    /// Calls of all processes are left unseen.
    blind: bool,
    /// Ended processes whose reports were dropped for want of room.
    pub forgotten: u64,
}

impl Work {
    /// Whether `tgid` is known and lives.
    #[must_use]
    pub fn knows(&self, tgid: u32) -> bool {
        self.processes.contains_key(&tgid)
    }

    /// Whether what ends at `at` is what is known as `tgid`: the program that a process was before may end later, by hearsay, than
    /// the one that it has become begins to call.
    #[must_use]
    pub fn is_end_of(&self, tgid: u32, at: u64) -> bool {
        self.processes.get(&tgid).is_some_and(|process| process.first_at <= at)
    }

    /// From now on calls of `tgid` are followed.
    pub fn introduce(&mut self, tgid: u32, origin: Origin, at: u64) {
        let blind = self.blind;
        self.processes.entry(tgid).or_insert_with(|| {
            let mut process = Process::new(origin, at);
            if blind {
                process.set_blind(true, at);
            }
            process
        });
    }

    /// From `at` on what is put into streams, and waits for it, is left unseen, or is seen again; of processes that are known,
    /// and of those that come.
    pub fn set_blind(&mut self, blind: bool, at: u64) {
        self.blind = blind;
        self.processes
            .values_mut()
            .for_each(|process| process.set_blind(blind, at));
    }

    /// Calls of `tgid` may be missing.
    pub fn doubt(&mut self, tgid: u32) {
        if let Some(process) = self.processes.get_mut(&tgid) {
            process.doubt();
        }
    }

    /// The name of a process is known, or has changed.
    pub fn name(&mut self, tgid: u32, comm: &str) {
        if let Some(process) = self.processes.get_mut(&tgid).filter(|process| process.comm != comm) {
            process.comm = comm.to_owned();
        }
    }

    /// Does what `call` did. Its process has been introduced. What it was, if it was a copy.
    pub fn apply(&mut self, call: &Call<'_>) -> Option<CopyClass> {
        self.processes.get_mut(&call.raw.tgid)?.apply(call)
    }

    /// When the devices of processes were surely idle, as far as that was not taken before and ended before `horizon`.
    pub fn take_gaps(&mut self, horizon: u64) -> Vec<(u32, Gap)> {
        let processes = self.processes.iter_mut();
        processes
            .flat_map(|(pid, process)| process.take_gaps(horizon).into_iter().map(|gap| (*pid, gap)))
            .collect()
    }

    /// All of them of one process.
    pub fn take_last_gaps(&mut self, tgid: u32) -> Vec<Gap> {
        let process = self.processes.get_mut(&tgid);
        process.map(|process| process.take_gaps(u64::MAX)).unwrap_or_default()
    }

    /// Living processes whose devices have nothing to do, as far as is known.
    pub fn idle(&self) -> impl Iterator<Item = u32> {
        self.processes
            .iter()
            .filter(|(_, process)| process.is_idle())
            .map(|(tgid, _)| *tgid)
    }

    /// Every call of `tgid` that was entered before `at` has been applied, if it was not among the `lost` ones; no other
    /// is under way. Thus its devices had nothing to do since they had nothing to do.
    pub fn quiet_until(&mut self, tgid: u32, at: u64, lost: u64) {
        if let Some(process) = self.processes.get_mut(&tgid) {
            process.quiet_until(at, lost);
        }
    }

    /// Does what a memory call means for work. Its process has been introduced.
    pub fn remember(&mut self, call: &memory::Call<'_>) {
        if let Some(process) = self.processes.get_mut(&call.raw.tgid) {
            process.remember(call);
        }
    }

    /// What is known from elsewhere to lie at addresses of a process, and may have been there before it was watched.
    pub fn seed(&mut self, tgid: u32, start: u64, end: u64, kind: MemoryKind) {
        if let Some(process) = self.processes.get_mut(&tgid) {
            process.seed(start, end, kind);
        }
    }

    /// Records of a process that were lost, in all.
    pub fn set_loss(&mut self, tgid: u32, loss: WorkLoss) {
        if let Some(process) = self.processes.get_mut(&tgid) {
            process.lost = loss;
        }
    }

    /// What the kernel counted for a stream so far.
    pub fn count(&mut self, tgid: u32, name: StreamName, submitted: u64) {
        if let Some(process) = self.processes.get_mut(&tgid) {
            process.count(name, submitted);
        }
    }

    /// A process has ended, or has become another program.
    pub fn end(&mut self, tgid: u32, at: u64) {
        let Some(process) = self.processes.remove(&tgid) else {
            return;
        };
        self.ended.push(process.report(tgid, Some(at), at));
        self.graph_kernels.extend(process.graph_kernels());
        if self.ended.len() > KEPT_REPORTS {
            self.ended.remove(0);
            self.forgotten += 1;
        }
    }

    /// What graphs of processes that have ended, since this was last asked, had to do with kernels.
    pub fn take_graph_kernels(&mut self) -> Vec<GraphKernel> {
        std::mem::take(&mut self.graph_kernels)
    }

    /// The same, which will be asked for again.
    pub fn ended_graph_kernels(&self) -> &[GraphKernel] {
        &self.graph_kernels
    }

    /// The same of processes that live.
    pub fn graph_kernels(&self) -> impl Iterator<Item = GraphKernel> {
        self.processes.values().flat_map(Process::graph_kernels)
    }

    /// What a living process has done until `now`, CLOCK_MONOTONIC ns: no sum of it ever falls.
    #[must_use]
    pub fn so_far(&self, tgid: u32, now: u64) -> Option<ProcessReport> {
        self.processes.get(&tgid).map(|process| process.so_far(tgid, now))
    }

    /// Processes that have ended since this was last asked.
    pub fn take_ended(&mut self) -> Vec<ProcessReport> {
        std::mem::take(&mut self.ended)
    }

    /// Processes that live.
    pub fn alive(&self) -> impl Iterator<Item = u32> {
        self.processes.keys().copied()
    }

    /// What every process has done until `now`, or did until its end; by process.
    #[must_use]
    pub fn report(&self, now: u64) -> Vec<ProcessReport> {
        let alive = self
            .processes
            .iter()
            .map(|(tgid, process)| process.report(*tgid, None, now));
        let mut all: Vec<ProcessReport> = self.ended.iter().cloned().chain(alive).collect();
        all.sort_by_key(|report| (report.pid, report.ended_at));
        all
    }
}
