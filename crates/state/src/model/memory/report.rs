//! What is shown of a process's memory. Plain data, complete: outputs need nothing else.

use super::account::{Account, Anomalies, Ended, Ending};
use super::group::GroupKey;
use super::ledger::Live;
use super::map::AllocationMap;
use super::peak::{Peak, Sum};
use super::process::{Origin, Process};
use crate::catalog::{Family, Holder};
use crate::frame::Frame;
use crate::wire::MemoryLoss;
use std::collections::{HashMap, HashSet};

/// Memory of all processes at one time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// CLOCK_MONOTONIC ns.
    pub at: u64,
    /// When watching began, CLOCK_MONOTONIC ns.
    pub started_at: u64,
    /// Nothing comes after it.
    pub last: bool,
    pub processes: Vec<ProcessReport>,
    /// Ended processes left out for want of room.
    pub forgotten: u64,
    /// Call stacks by site, innermost frame first. Sites that are missing here were not taken or not resolved.
    pub stacks: HashMap<u64, Vec<Frame>>,
    /// Of these, stacks that go on beyond their last frame.
    pub truncated: HashSet<u64>,
    /// What limits these figures, one sentence each.
    pub notes: Vec<String>,
}

impl Report {
    /// Seconds watched.
    pub fn seconds(&self) -> f64 {
        self.at.saturating_sub(self.started_at) as f64 / 1e9
    }
}

/// What one process holds on one device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceReport {
    /// CUDA ordinal in the process; [`super::UNKNOWN_DEVICE`] where it is not known.
    pub device: i16,
    pub account: Account,
    /// Where the ordinal could be tied to a device of the machine.
    pub uuid: Option<String>,
    pub name: Option<String>,
    /// The tie is a guess.
    pub inferred: bool,
    /// What the driver says that the process uses there; `None`: it does not say.
    pub driver_bytes: Option<u64>,
    /// Of these, what no allocation explains: context, code, workspaces, what was there before.
    pub unattributed_bytes: Option<u64>,
    /// When it said so, CLOCK_MONOTONIC ns. Both figures are of that time.
    pub driver_at: Option<u64>,
    /// What is to be known of these figures.
    pub notes: Vec<String>,
}

/// Memory of one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessReport {
    pub pid: u32,
    /// Name of its main thread, as last seen; empty: not known.
    pub comm: String,
    pub origin: Origin,
    /// When its first memory call was seen, CLOCK_MONOTONIC ns.
    pub first_at: u64,
    /// Its end; what is held is then what was held at that time.
    pub ended_at: Option<u64>,
    /// CLOCK_MONOTONIC ns that ages refer to.
    pub at: u64,
    pub devices: Vec<DeviceReport>,
    pub host: Account,
    pub families: Vec<FamilyReport>,
    /// Most bytes first.
    pub sites: Vec<SiteReport>,
    /// Single allocations; `None`: they were not asked for.
    pub map: Option<AllocationMap>,
    pub pools: Vec<PoolReport>,
    /// Where a framework's allocator was seen handing out memory.
    pub tensors: Option<TensorReport>,
    /// Sums near their highest; what each call site held then is in [`SiteReport::peak_bytes`].
    pub peaks: Vec<PeakReport>,
    pub endings: Vec<(Ending, Ended)>,
    /// Who freed what was freed.
    pub freed_by: Vec<FreedBy>,
    pub anomalies: Anomalies,
    pub lost: MemoryLoss,
}

/// What one function gave back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FreedBy {
    pub row: u32,
    /// Its name.
    pub function: String,
    pub ended: Ended,
}

/// When most was held, as nearly as there is a picture of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeakReport {
    pub sum: Sum,
    pub bytes: u64,
    /// CLOCK_MONOTONIC ns.
    pub at: u64,
    /// Highest that it ever was: at most 1 % more than `bytes`.
    pub highest_bytes: u64,
}

/// One family on one device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FamilyReport {
    pub family: Family,
    pub device: i16,
    pub account: Account,
}

/// Allocations of one family on one device from one call site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteReport {
    /// Row of the function that allocated, and its name.
    pub row: u32,
    pub function: String,
    /// Names the stack; 0: not taken.
    pub site: u64,
    pub family: Family,
    pub device: i16,
    pub account: Account,
    /// Held when most was held; see [`ProcessReport::peaks`].
    pub peak_bytes: u64,
    pub peak_count: u64,
    /// Age of the oldest and of the youngest that is outstanding, ns.
    pub oldest_ns: u64,
    pub newest_ns: u64,
}

/// A memory pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolReport {
    pub handle: u64,
    pub device: i16,
    /// Made by the program; else one that it asked about.
    pub made: bool,
    pub used_bytes: u64,
    pub peak_used_bytes: u64,
    /// What the driver last told the program that it keeps, and when (CLOCK_MONOTONIC ns).
    pub reserved: Option<(u64, u64)>,
}

/// What a framework's own allocator keeps and hands out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TensorReport {
    /// The driver's allocations that blocks were handed out of.
    pub segments: u64,
    pub segment_bytes: u64,
    pub peak_segment_bytes: u64,
    /// Handed out now.
    pub tensors: u64,
    pub tensor_bytes: u64,
    /// Handed out, over time, at addresses of which no allocation was seen.
    pub stray_bytes: u64,
}

impl TensorReport {
    /// Bytes that the framework keeps and that no tensor uses: its cache, and what is lost between tensors.
    pub fn unused_bytes(&self) -> u64 {
        self.segment_bytes.saturating_sub(self.tensor_bytes)
    }
}

impl ProcessReport {
    /// Bytes on devices and in pinned host memory that the program has not given back.
    pub fn held_bytes(&self) -> u64 {
        let devices = self.devices.iter().map(|device| device.account.held_bytes);
        devices.fold(self.host.held_bytes, u64::saturating_add)
    }

    /// Whether figures are exact: no record was lost or unreadable, and nothing was allocated before we came.
    pub fn is_exact(&self) -> bool {
        self.origin == Origin::Start
            && self.lost == MemoryLoss::default()
            && self.anomalies.unreadable + self.anomalies.unfollowed == 0
    }
}

pub(super) fn of(pid: u32, process: &Process, lost: MemoryLoss, ended_at: Option<u64>, at: u64) -> ProcessReport {
    let ledger = &process.ledger;
    let peaks: Vec<(Sum, Peak)> = ledger.peaks().collect();
    let devices = ledger.devices();
    let held = ledger
        .families()
        .iter()
        .map(|(&(family, device), &account)| FamilyReport {
            family,
            device,
            account,
        });
    ProcessReport {
        pid,
        comm: process.comm.clone(),
        origin: process.origin,
        first_at: process.first_at,
        ended_at,
        at,
        devices: devices
            .iter()
            .filter(|(device, _)| **device != super::HOST)
            .map(|(device, account)| DeviceReport {
                device: *device,
                account: *account,
                ..DeviceReport::default()
            })
            .collect(),
        host: devices.get(&super::HOST).copied().unwrap_or_default(),
        families: held.collect(),
        sites: sites(process, &peaks, at),
        map: None,
        pools: pools(process),
        tensors: tensors(process),
        peaks: peaks.iter().map(PeakReport::from).collect(),
        endings: endings(process, ended_at),
        freed_by: freed_by(process),
        anomalies: ledger.anomalies,
        lost,
    }
}

/// With an ended process, what it held ended with it.
fn endings(process: &Process, ended_at: Option<u64>) -> Vec<(Ending, Ended)> {
    let mut endings = process.ledger.endings().clone();
    if ended_at.is_some() {
        let mut last = Ended::default();
        for (key, live) in process.all_live() {
            if key.family.holder() != Holder::Nobody {
                last.count += 1;
                last.bytes = last.bytes.saturating_add(live.bytes);
            }
        }
        if last.count > 0 {
            endings.insert(Ending::ProcessEnded, last);
        }
    }
    endings.into_iter().collect()
}

fn freed_by(process: &Process) -> Vec<FreedBy> {
    let rows = process.ledger.freed_by().iter();
    rows.map(|(&row, &ended)| FreedBy {
        row,
        function: String::new(),
        ended,
    })
    .collect()
}

impl From<&(Sum, Peak)> for PeakReport {
    fn from((sum, peak): &(Sum, Peak)) -> PeakReport {
        PeakReport {
            sum: *sum,
            bytes: peak.bytes,
            at: peak.at,
            highest_bytes: peak.highest_bytes,
        }
    }
}

fn sites(process: &Process, peaks: &[(Sum, Peak)], now: u64) -> Vec<SiteReport> {
    let ages = ages(process, now);
    let at_peak: HashMap<u32, (u64, u64)> = peaks
        .iter()
        .flat_map(|(_, peak)| &peak.shares)
        .map(|&(group, bytes, count)| (group, (bytes, count)))
        .collect();
    let groups = process.ledger.groups().iter().enumerate();
    let used = groups.filter(|(_, (_, account))| account.allocations > 0);
    let mut sites: Vec<SiteReport> = used
        .map(|(number, &(key, account))| {
            let (peak_bytes, peak_count) = at_peak.get(&(number as u32)).copied().unwrap_or_default();
            let (oldest_ns, newest_ns) = ages.get(&key).copied().unwrap_or_default();
            SiteReport {
                row: key.row,
                function: String::new(),
                site: key.site,
                family: key.family,
                device: key.device,
                account,
                peak_bytes,
                peak_count,
                oldest_ns,
                newest_ns,
            }
        })
        .collect();
    sort(&mut sites);
    sites
}

/// Most bytes first.
pub(super) fn sort(sites: &mut [SiteReport]) {
    sites.sort_by(|a, b| {
        let size = |site: &SiteReport| (site.account.held_bytes, site.oldest_ns, site.account.allocated_bytes);
        size(b)
            .cmp(&size(a))
            .then_with(|| (a.family, a.device, a.site, a.row).cmp(&(b.family, b.device, b.site, b.row)))
    });
}

/// Oldest and newest age of what is outstanding, by group.
fn ages(process: &Process, now: u64) -> HashMap<GroupKey, (u64, u64)> {
    let mut ages: HashMap<GroupKey, (u64, u64)> = HashMap::new();
    let age = |live: &Live| now.saturating_sub(live.at);
    for (key, live) in process.all_live() {
        let span = ages.entry(key).or_insert((0, u64::MAX));
        *span = (span.0.max(age(live)), span.1.min(age(live)));
    }
    ages
}

fn tensors(process: &Process) -> Option<TensorReport> {
    let (segments, segment_bytes, peak_segment_bytes) = process.segments.as_ref()?.totals();
    let handed_out = process.ledger.families().iter();
    let accounts = handed_out.filter(|((family, _), _)| *family == Family::Tensor);
    let (tensors, tensor_bytes) = accounts.fold((0, 0), |sum, (_, account)| {
        (sum.0 + account.outstanding, sum.1 + account.held_bytes)
    });
    Some(TensorReport {
        segments,
        segment_bytes,
        peak_segment_bytes,
        tensors,
        tensor_bytes,
        stray_bytes: process.strays,
    })
}

fn pools(process: &Process) -> Vec<PoolReport> {
    let mut pools: Vec<PoolReport> = process
        .owners
        .pools()
        .map(|(handle, pool)| PoolReport {
            handle,
            device: pool.device,
            made: pool.made,
            used_bytes: pool.used_bytes,
            peak_used_bytes: pool.peak_used_bytes,
            reserved: pool.reserved,
        })
        .collect();
    pools.sort_by_key(|pool| pool.handle);
    pools
}
