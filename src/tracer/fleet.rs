//! Feeds the sums by owner: the counting plane of the kernel, and the models of memory and of work.
//!
//! Owns when what an ended process did moves from its own tables to its owner's sums. A process is its owner's from
//! when it is first seen until all that it did has been folded.

use super::Tracer;
use super::memory::MemoryPlane;
use super::room::Room;
use super::work::WorkPlane;
use crate::catalog::{Catalog, Holder};
use crate::device::Reconciled;
use crate::discover;
use crate::engine::totals::Snapshot;
use crate::model::cost::Hits;
use crate::model::fleet::{Device, Earlier, Fleet, Held, Living, Reading, Sums, Uses, Wasted};
use crate::model::launches::Launches;
use crate::model::memory::{HOST, Origin, Tally};
use crate::owner::cgroup::of_names;
use crate::owner::directory::Unknown;
use crate::owner::{Directory, Owner};
use crate::probe::attach::Gap;
use crate::rows::RunRows;
use crate::wire::{self, DriverShare, Notice, RowCounter, ShareKey, TotalKey};
use anyhow::Result;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// In place of a process where the table of totals is full.
const BEYOND_CAPACITY: u32 = 0;
/// Notices of ends may be lost.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Feeds the sums by owner.
pub(super) struct FleetPlane {
    directory: Directory,
    fleet: Fleet,
    /// What one hit costs, by place.
    prices: Vec<Hits>,
    earlier: Earlier,
    wasted: Wasted,
    /// Processes that made calls, as of the last reading.
    seen: HashSet<u32>,
    /// How many of them have called CUDA.
    callers: usize,
    looked: Instant,
    /// Processes that had ended, without a word, when that was looked at last.
    gone: HashSet<u32>,
    retired: u64,
    room: Room,
}

/// Everything that is known by owner, and how well.
#[derive(Debug, Clone, Default)]
pub struct Census {
    pub readings: Vec<Reading>,
    /// Living processes that called CUDA.
    pub processes: usize,
    pub files: usize,
    pub functions: usize,
    /// Calls stopped at entry and return, and at entry only.
    pub hits: (u64, u64),
    /// Seconds that these have cost the programs: inferred from what one costs.
    pub probe_seconds: f64,
    /// What was lost, by reason.
    pub lost: Vec<(&'static str, u64)>,
    /// What is not seen, and why; what concerns the whole machine first.
    pub unseen: Vec<String>,
    /// How many of these are about one file each.
    pub unseen_files: usize,
    pub retired_owners: u64,
    /// Processes that had to be counted for the owner `other`.
    pub merged: u64,
    /// Processes that lack labels.
    pub unknown: Unknown,
    pub evicted_kernels: u64,
}

impl FleetPlane {
    /// Whether calls of one of these were counted when that was looked at last.
    pub(super) fn has_counted(&self, processes: &HashSet<u32>) -> bool {
        !self.seen.is_disjoint(processes)
    }

    fn make_room(&mut self, now: u64) {
        self.retired += self.room.make(&mut self.directory, &mut self.fleet, now);
    }

    fn fold(&mut self, pid: u32, sums: Sums, now: u64) {
        self.make_room(now);
        let owner = self.directory.owner_of(pid);
        self.fleet.fold(&owner, sums, now);
    }

    /// What processes did that have ended, as far as the models have followed them to their ends.
    fn fold_models(&mut self, memory: &mut MemoryPlane, work: &mut WorkPlane, now: u64) {
        for report in memory.take_ended() {
            let mut sums = Sums::default();
            report.add_to(&mut sums);
            self.fold(report.pid, sums, now);
        }
        for report in work.take_ended() {
            let mut sums = Sums::default();
            report.add_to(&mut sums);
            let (idle, uses) = (report.idle_time(), uses(memory.reading(report.pid)));
            let waste = self.wasted.count_last(report.pid, &idle.reasons, idle.inferred, &uses);
            sums.add_waste(&waste);
            self.fold(report.pid, sums, now);
        }
    }

    /// What the kernel counted of processes that have ended.
    fn fold_counts(&mut self, taken: &Snapshot, rows: &RunRows, launches: &Launches, now: u64) {
        let mut by_process: HashMap<u32, Sums> = HashMap::new();
        for (key, total) in &taken.totals {
            let kernel = kernel_of(key, rows, launches);
            by_process
                .entry(key.tgid)
                .or_default()
                .count(&rows.catalog, key, total, kernel);
        }
        for (key, count) in &taken.failures {
            by_process.entry(key.tgid).or_default().fail(key, *count);
        }
        for (pid, sums) in by_process {
            self.fold(pid, sums, now);
        }
    }

    /// What calls of ended processes have spent in the kernel driver.
    fn fold_shares(&mut self, taken: &[(ShareKey, DriverShare)], catalog: &Catalog, now: u64) {
        let mut by_process: HashMap<u32, Sums> = HashMap::new();
        for (key, share) in taken {
            by_process.entry(key.tgid).or_default().share(catalog, key, *share);
        }
        for (pid, sums) in by_process {
            self.fold(pid, sums, now);
        }
    }
}

/// Whether calls of that kind launch kernels, and the kernel's name.
fn kernel_of(key: &TotalKey, rows: &RunRows, launches: &Launches) -> Option<Option<Arc<str>>> {
    let plan = rows.plans.get(key.row as usize)?;
    let launches_kernels = matches!(plan.spec.launch.role, wire::ROLE_LAUNCH | wire::ROLE_STUB);
    (launches_kernels && key.variant != 0).then(|| launches.label(key.variant))
}

impl Tracer {
    /// Has everything summed up by owner from now on. Measures first what a probe costs here.
    pub fn follow_fleet(&mut self, directory: Directory) {
        let prices = self.prices();
        let own = std::process::id();
        // what was measured is nobody's work
        let _ = self.engine.take_ended(&|tgid| tgid == own);
        self.fleet = Some(FleetPlane {
            directory,
            fleet: Fleet::default(),
            prices,
            earlier: Earlier::default(),
            wasted: Wasted::default(),
            seen: HashSet::new(),
            callers: 0,
            looked: Instant::now(),
            gone: HashSet::new(),
            retired: 0,
            room: Room::default(),
        });
    }

    /// Who is counted for whom.
    pub fn directory(&mut self) -> Option<&mut Directory> {
        self.fleet.as_mut().map(|fleet| &mut fleet.directory)
    }

    /// A process was born, has become another program, or has ended.
    pub(super) fn note_life(&mut self, notice: &Notice, comm: &str) {
        let Some(fleet) = self.fleet.as_mut() else { return };
        match notice.kind {
            wire::NOTICE_FORK => fleet.directory.born(notice.tgid, notice.parent),
            wire::NOTICE_EXIT => fleet.directory.ended(notice.tgid),
            wire::NOTICE_LIBRARY if !self.callers.contains(&notice.tgid) => {
                fleet.directory.named(notice.tgid, comm.as_bytes());
                // one that never calls is no owner, and for one that is gone its first call says where it ran
                fleet.directory.look_at(notice.tgid);
            }
            wire::NOTICE_THREAD if !self.callers.contains(&notice.tgid) => {
                // it may be gone already
                fleet.directory.named(notice.tgid, comm.as_bytes());
                let cgroups = self.engine.place(notice.place);
                if let Some(cgroups) = cgroups.as_deref().and_then(wire::cgroups) {
                    fleet.directory.placed(notice.tgid, of_names(&cgroups));
                }
                fleet.make_room(notice.at);
                fleet.directory.settled(notice.tgid);
            }
            _ => {}
        }
    }

    /// A process becomes another program: what it did so far is its owner's of that time.
    pub(super) fn fold_image(&mut self, pid: u32) {
        let has_done_something =
            |fleet: &FleetPlane| fleet.seen.contains(&pid) || self.work.knows(pid) || self.memory.knows(pid);
        // where no notice was lost, one who called before has said so before: what is known else is the new program's
        let called = || self.callers.contains(&pid) || self.engine.counters().notices_lost > 0;
        if self.fleet.as_ref().is_some_and(has_done_something) && called() {
            self.follow(u64::MAX);
            self.take_counts(&HashSet::from([pid]));
        }
        if let Some(fleet) = self.fleet.as_mut() {
            fleet.directory.executed(pid);
        }
    }

    /// Moves what calls of ended processes have spent in the kernel driver to their owners.
    pub(super) fn fold_shares(&mut self, taken: &[(ShareKey, DriverShare)]) {
        if let Some(fleet) = self.fleet.as_mut() {
            fleet.fold_shares(taken, &self.rows.catalog, crate::clock::monotonic_ns());
        }
    }

    /// Moves what ended processes did to their owners. `taken` is what the kernel counted for them.
    pub(super) fn fold_taken(&mut self, taken: &Snapshot, now: u64) {
        let Some(fleet) = self.fleet.as_mut() else { return };
        fleet.fold_models(&mut self.memory, &mut self.work, now);
        fleet.fold_counts(taken, &self.rows, &self.launches, now);
    }

    /// Processes whose sums have been folded are nobody's any more.
    pub(super) fn forget_owner(&mut self, pid: u32) {
        if let Some(fleet) = self.fleet.as_mut() {
            fleet.directory.forget(pid);
            fleet.seen.remove(&pid);
            fleet.earlier.forget(pid);
            self.memory.forget_reading(pid);
        }
    }

    /// Ends of processes whose notice was lost: had it only to wait for its turn, it has come by the second look.
    pub(super) fn look_for_ended(&mut self) {
        let Some(fleet) = self.fleet.as_mut().filter(|fleet| fleet.looked.elapsed() >= LOOK_EVERY) else {
            return;
        };
        fleet.looked = Instant::now();
        let known = fleet.seen.iter().copied().chain(self.work.alive());
        let gone: HashSet<u32> = known.filter(|pid| discover::is_gone(*pid)).collect();
        let before = std::mem::replace(&mut fleet.gone, gone);
        for pid in before.intersection(&fleet.gone).copied() {
            self.work.lost_sight(pid);
            self.ended.insert(pid);
        }
    }

    /// Everything that is known by owner, with so many kernels of each by name. Owners that had no process for `retain`
    /// are forgotten.
    ///
    /// # Errors
    /// A table of the kernel cannot be read.
    pub fn census(&mut self, kernels: usize, retain: Duration) -> Result<Census> {
        let now = self.follow_idle();
        let Some(mut fleet) = self.fleet.take() else {
            return Ok(Census::default());
        };
        // what has ended in the models must not be missing until the kernel's counts are folded, too
        fleet.fold_models(&mut self.memory, &mut self.work, now);
        let living = self.living(&mut fleet, now);
        let census = living.and_then(|living| self.count(&mut fleet, living, kernels, retain, now));
        self.fleet = Some(fleet);
        census
    }

    /// Follows everything until now, also how long devices have had nothing to do while nobody called. When that was.
    pub(super) fn follow_idle(&mut self) -> u64 {
        let quiet = self.work.look_for_quiet(self.engine.as_ref());
        let now = crate::clock::monotonic_ns();
        self.follow(now);
        self.work.settle_quiet(&quiet);
        now
    }

    fn count(
        &mut self,
        fleet: &mut FleetPlane,
        living: HashMap<Arc<Owner>, Living>,
        kernels: usize,
        retain: Duration,
        now: u64,
    ) -> Result<Census> {
        let readings = fleet.fleet.read(living, now, kernels);
        let retired = fleet.fleet.retire(now.saturating_sub(retain.as_nanos() as u64));
        for owner in retired {
            fleet.retired += 1;
            fleet.directory.retire(&owner);
        }
        let (of_files, of_machine): (Vec<&Gap>, Vec<&Gap>) = self.attacher.gaps().partition(|gap| gap.is_of_file());
        let counters = self.engine.row_counters(self.rows.plans.len())?;
        let hits = self.hits_by_place(&counters);
        let count = |returns| {
            hits.iter()
                .filter(|hits| hits.returns == returns)
                .map(|hits| hits.count)
                .sum()
        };
        let price = |hits: &Hits| {
            let same = |price: &&Hits| (price.place, price.returns) == (hits.place, hits.returns);
            fleet.prices.iter().find(same).map_or(0.0, |price| price.ns)
        };
        let ns: f64 = hits.iter().map(|hits| hits.count as f64 * price(hits)).sum();
        Ok(Census {
            readings,
            processes: fleet.callers,
            files: self.attacher.attached().count(),
            functions: self.functions(),
            hits: (count(true), count(false)),
            probe_seconds: ns / 1e9,
            lost: self.losses(&counters),
            unseen_files: of_files.len(),
            unseen: of_machine
                .into_iter()
                .chain(of_files)
                .map(|gap| gap.0.clone())
                .collect(),
            retired_owners: fleet.retired,
            merged: fleet.directory.merged(),
            unknown: fleet.directory.unknown(),
            evicted_kernels: fleet.fleet.evicted_kernels(),
        })
    }

    fn losses(&self, counters: &[RowCounter]) -> Vec<(&'static str, u64)> {
        let losses = self.engine.counters();
        let nested = counters.iter().map(|counter| counter.no_frame).sum();
        vec![
            ("memory_ring", losses.memory_lost),
            ("work_ring", losses.work_lost),
            ("driver_shares", losses.shares_lost),
            ("notices", losses.notices_lost),
            ("process_table", losses.totals_overflowed),
            ("late_probes", self.early_loads(losses.waits_expired)),
            ("nested_too_deeply", nested),
            (
                "malformed",
                self.malformed + self.memory.malformed + self.work.malformed,
            ),
        ]
    }

    fn living(&mut self, fleet: &mut FleetPlane, now: u64) -> Result<HashMap<Arc<Owner>, Living>> {
        fleet.make_room(now);
        let mut by_process = self.counted()?;
        fleet.seen = by_process.keys().copied().collect();
        fleet.callers = by_process.values().filter(|sums| !sums.calls.is_empty()).count();
        for pid in self.memory.alive().chain(self.work.alive()) {
            by_process.entry(pid).or_default();
        }
        let mut living: HashMap<Arc<Owner>, Living> = HashMap::new();
        for (pid, mut sums) in by_process {
            // who it was is still to be told
            if !sums.calls.is_empty() && self.is_unannounced(pid) {
                continue;
            }
            // its names may not be known yet
            let Some(owner) = fleet.directory.settled(pid) else {
                continue;
            };
            let known = living.entry(owner).or_default();
            known.processes += 1;
            if let Some(idle) = self.work.add_to(pid, now, &mut sums) {
                let uses = uses(self.memory.reading(pid));
                let waste = fleet.wasted.count_living(pid, &idle.reasons, idle.inferred, &uses);
                sums.add_waste(waste);
                known.held.inferred += u64::from(idle.inferred);
            }
            if let Some(tally) = self.memory.tally(pid, now) {
                tally.add_to(&mut sums);
                hold(&mut known.held, &tally, self.memory.reading(pid));
            }
            let is_late = self.memory.origin(pid) == Origin::Late;
            let earlier = is_late.then_some((&mut fleet.earlier, now));
            hold_by_driver(&mut known.held, self.memory.reading(pid), earlier);
            known.sums.add(&sums);
        }
        Ok(living)
    }

    /// Whether a process has called and ended of which no notice was handled yet: nobody else knows any more what it was.
    fn is_unannounced(&self, pid: u32) -> bool {
        pid != BEYOND_CAPACITY && !self.callers.contains(&pid) && discover::has_ended(pid)
    }

    /// What the kernel has counted for each process.
    fn counted(&self) -> Result<HashMap<u32, Sums>> {
        let mut by_process: HashMap<u32, Sums> = HashMap::new();
        let mut failures = Vec::new();
        let (rows, launches) = (&self.rows, &self.launches);
        self.engine.read_counts(
            |key, total| {
                let kernel = kernel_of(&key, rows, launches);
                let sums = by_process.entry(key.tgid).or_default();
                sums.count(&rows.catalog, &key, &total, kernel);
            },
            |key, count| failures.push((key, count)),
        )?;
        for (key, count) in failures {
            by_process.entry(key.tgid).or_default().fail(&key, count);
        }
        if self.driver.is_some() {
            for (key, share) in self.engine.driver_shares()? {
                let sums = by_process.entry(key.tgid).or_default();
                sums.share(&rows.catalog, &key, share);
            }
        }
        Ok(by_process)
    }
}

/// The devices that a process is known to use.
fn uses(reading: &[Reconciled]) -> Uses {
    let is_shown = |row: &&Reconciled| row.driver_bytes.is_some();
    let shown = reading.iter().any(|row| is_shown(&row));
    let rows = reading.iter().filter(|row| !shown || is_shown(row));
    let mut devices: Vec<Device> = rows
        .filter_map(|row| row.uuid.as_deref())
        .map(|uuid| Some(uuid.into()))
        .collect();
    devices.sort();
    devices.dedup();
    Uses { devices, shown }
}

/// Adds what a process holds, by devices of the machine where these are known.
fn hold(held: &mut Held, tally: &Tally, reading: &[Reconciled]) {
    let device = |ordinal: i16| {
        let row = reading.iter().find(|row| row.ordinal == i32::from(ordinal));
        row.and_then(|row| row.uuid.as_deref()).map(Arc::from)
    };
    for ((family, ordinal), account) in &tally.families {
        let place = (family.holder() == Holder::Device).then(|| device(*ordinal)).flatten();
        let known = held.families.entry((*family, place)).or_default();
        known.0 += account.held_bytes;
        known.1 += account.outstanding;
    }
    for (ordinal, bytes) in tally.peak_bytes.iter().filter(|(ordinal, _)| **ordinal != HOST) {
        let peak = held.peak_bytes.entry(device(*ordinal)).or_default();
        *peak = (*peak).max(*bytes);
    }
    for (sum, more) in held.ages.iter_mut().zip(tally.ages) {
        sum.0 += more.0;
        sum.1 += more.1;
    }
}

/// Adds what the driver counts for a process. `earlier`: it was there before; with the time, CLOCK_MONOTONIC ns.
fn hold_by_driver(held: &mut Held, reading: &[Reconciled], mut earlier: Option<(&mut Earlier, u64)>) {
    for row in reading {
        let Some(uuid) = row.uuid.as_deref().map(Arc::<str>::from) else {
            continue;
        };
        if let Some(bytes) = row.driver_bytes {
            *held.driver_bytes.entry(Arc::clone(&uuid)).or_default() += bytes;
        }
        let Some(mut bytes) = row.unattributed_bytes else {
            continue;
        };
        if let Some((earlier, now)) = earlier.as_mut() {
            let (before, since) = earlier.split(row.pid, &uuid, bytes, *now);
            *held.earlier_bytes.entry(Arc::clone(&uuid)).or_default() += before;
            bytes = since;
        }
        *held.unattributed_bytes.entry(uuid).or_default() += bytes;
    }
}
