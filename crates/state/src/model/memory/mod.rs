//! Who holds memory: every allocation from its call to its end, over all processes.
//!
//! Pure: it is fed with the records of the memory ring and with the ends of processes, in order, and can be asked
//! at any time. The driver layer is the truth; a runtime record comes only where no driver call was seen inside it.

mod account;
mod array;
mod call;
mod equal_sites;
mod graphs;
mod group;
mod handles;
mod ledger;
mod map;
mod owners;
mod peak;
mod physical;
mod process;
mod report;
mod segments;
mod tally;
#[cfg(test)]
mod tests;

pub use account::{Account, Anomalies, Ended, Ending};
pub use call::Call;
pub use equal_sites::merge_equal_sites;
pub use ledger::{HOST, UNKNOWN_DEVICE};
pub use map::{Allocation, AllocationMap, Wanted};
pub use peak::Sum;
pub use process::Origin;
pub use report::{
    DeviceReport, FamilyReport, FreedBy, PeakReport, PoolReport, ProcessReport, Report, SiteReport, TensorReport,
};
pub use tally::Tally;

use crate::wire::MemoryLoss;
use process::Process;
use std::collections::{BTreeMap, HashMap};

/// A free may be told of this much later than the next allocation at its address.
const LATE_FREE_NS: u64 = 5_000_000_000;
/// Reports of ended processes that are kept.
const KEPT_REPORTS: usize = 1024;

/// Who holds memory.
#[derive(Debug, Default)]
pub struct Ledgers {
    processes: HashMap<u32, Process>,
    ended: Vec<ProcessReport>,
    /// Ended processes whose reports were dropped for want of room.
    pub forgotten: u64,
    losses: HashMap<u32, MemoryLoss>,
    /// Reports have these allocations one by one.
    pub wanted: Option<Wanted>,
}

impl Ledgers {
    /// Whether `tgid` is known and lives.
    pub fn knows(&self, tgid: u32) -> bool {
        self.processes.contains_key(&tgid)
    }

    /// How `tgid` came to be known, if it lives.
    pub fn origin(&self, tgid: u32) -> Option<Origin> {
        self.processes.get(&tgid).map(|process| process.origin)
    }

    /// From now on calls of `tgid` are accounted for.
    pub fn introduce(&mut self, tgid: u32, origin: Origin, at: u64) {
        self.processes.entry(tgid).or_insert_with(|| Process::new(origin, at));
    }

    /// Calls of `tgid` may be missing.
    pub fn doubt(&mut self, tgid: u32) {
        if let Some(process) = self.processes.get_mut(&tgid) {
            process.origin = Origin::Late;
        }
    }

    /// The name of a process is known, or has changed.
    pub fn name(&mut self, tgid: u32, comm: &str) {
        if let Some(process) = self.processes.get_mut(&tgid).filter(|process| process.comm != comm) {
            process.comm = comm.to_owned();
        }
    }

    /// Whether a process is known by name.
    pub fn is_named(&self, tgid: u32) -> bool {
        self.processes
            .get(&tgid)
            .is_some_and(|process| !process.comm.is_empty())
    }

    /// Does what `call` did. Its process has been introduced. The bytes that it has given back, as far as is known.
    pub fn apply(&mut self, call: &Call<'_>) -> Option<u64> {
        let process = self.processes.get_mut(&call.raw.tgid)?;
        process.ledger.given_back = None;
        process.apply(call);
        process.ledger.given_back
    }

    /// A process has ended, or has become another program: nothing is held any more.
    pub fn end(&mut self, tgid: u32, at: u64) {
        let Some(mut process) = self.processes.remove(&tgid) else {
            return;
        };
        process.settle(u64::MAX);
        let report = self.report_at(tgid, &process, Some(at), at);
        self.losses.remove(&tgid);
        self.ended.push(report);
        if self.ended.len() > KEPT_REPORTS {
            self.ended.remove(0);
            self.forgotten += 1;
        }
    }

    /// Records of a process that were lost, in all.
    pub fn set_loss(&mut self, tgid: u32, loss: MemoryLoss) {
        self.losses.insert(tgid, loss);
    }

    fn loss(&self, tgid: u32) -> MemoryLoss {
        self.losses.get(&tgid).copied().unwrap_or_default()
    }

    /// To be called now and then.
    pub fn settle(&mut self, now: u64) {
        for process in self.processes.values_mut() {
            process.settle(now.saturating_sub(LATE_FREE_NS));
        }
    }

    /// Which devices the ordinals of a process stand for, as far as the driver told it.
    pub fn uuids(&self, tgid: u32) -> BTreeMap<u32, [u8; 16]> {
        let process = self.processes.get(&tgid);
        process.map(|process| process.owners.uuids.clone()).unwrap_or_default()
    }

    /// What a process holds on each device.
    pub fn held(&self, tgid: u32) -> Vec<(i16, u64)> {
        let devices = self.processes.get(&tgid).map(|process| process.ledger.devices());
        let devices = devices.into_iter().flatten().filter(|(device, _)| **device != HOST);
        devices.map(|(device, account)| (*device, account.held_bytes)).collect()
    }

    /// What it holds on all devices.
    #[must_use]
    pub fn held_on_devices(&self, tgid: u32) -> Option<u64> {
        let devices = self.processes.get(&tgid)?.ledger.devices();
        let devices = devices.iter().filter(|(device, _)| **device != HOST);
        Some(
            devices
                .map(|(_, account)| account.held_bytes)
                .fold(0, u64::saturating_add),
        )
    }

    /// What a living process has done and holds at `now`, CLOCK_MONOTONIC ns.
    pub fn tally(&self, tgid: u32, now: u64) -> Option<Tally> {
        self.processes.get(&tgid).map(|process| Tally::of(process, now))
    }

    /// Processes that have ended since this was last asked.
    pub fn take_ended(&mut self) -> Vec<ProcessReport> {
        std::mem::take(&mut self.ended)
    }

    /// Processes that live.
    pub fn alive(&self) -> impl Iterator<Item = u32> {
        self.processes.keys().copied()
    }

    /// Memory of one living process at `now`, CLOCK_MONOTONIC ns; `None`: it is not known.
    #[must_use]
    pub fn report_of(&self, tgid: u32, now: u64) -> Option<ProcessReport> {
        let process = self.processes.get(&tgid)?;
        Some(self.report_at(tgid, process, None, now))
    }

    /// Single allocations of a living process at `now`, CLOCK_MONOTONIC ns; `None`: it is not known.
    #[must_use]
    pub fn map_of(&self, tgid: u32, wanted: Wanted, now: u64) -> Option<AllocationMap> {
        self.processes.get(&tgid).map(|process| map::of(process, wanted, now))
    }

    fn report_at(&self, tgid: u32, process: &Process, ended_at: Option<u64>, now: u64) -> ProcessReport {
        ProcessReport {
            map: self.wanted.map(|wanted| map::of(process, wanted, now)),
            ..report::of(tgid, process, self.loss(tgid), ended_at, now)
        }
    }

    /// What every process holds at `now`, or held at its end; by process.
    pub fn report(&self, now: u64) -> Vec<ProcessReport> {
        let alive = self
            .processes
            .iter()
            .map(|(tgid, process)| self.report_at(*tgid, process, None, now));
        let mut all: Vec<ProcessReport> = self.ended.iter().cloned().chain(alive).collect();
        all.sort_by_key(|report| (report.pid, report.ended_at));
        all
    }
}
