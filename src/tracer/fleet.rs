//! Feeds the sums by owner: the counting plane of the kernel, and the models of memory and of work.
//!
//! Owns when what an ended process did moves from its own tables to its owner's sums. A process is its owner's from
//! when it is first seen until all that it did has been folded. What is read of the sums is `census`' business.

mod census;
mod holding;
mod places;

pub(crate) use census::Census;

use super::Tracer;
use super::memory::MemoryPlane;
use super::room::Room;
use super::work::WorkPlane;
use crate::catalog::Catalog;
use crate::discover;
use crate::engine::totals::Snapshot;
use crate::model::cost::Hits;
use crate::model::fleet::{Earlier, Fleet, Sums, Wasted};
use crate::model::launches::Launches;
use crate::owner::cgroup::of_names;
use crate::owner::{Choice, Directory, Owner};
use crate::rows::RunRows;
use crate::wire::{self, DriverShare, Notice, ShareKey, TotalKey};
use holding::uses;
use places::Places;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

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
    places: Places,
    /// Processes that made calls, as of the last reading.
    seen: HashSet<u32>,
    /// How many of them have called CUDA.
    callers: usize,
    looked: Instant,
    /// Processes that had ended, without a word, when that was looked at last.
    gone: HashSet<u32>,
    retired: u64,
    room: Room,
    /// Whose processes were that have ended, for who still has lines of these.
    departed: Vec<(u32, Arc<Owner>)>,
}

impl FleetPlane {
    /// What one hit costs, by place.
    pub(super) fn prices(&self) -> &[Hits] {
        &self.prices
    }

    /// Whether calls of one of these were counted when that was looked at last.
    pub(super) fn has_counted(&self, processes: &HashSet<u32>) -> bool {
        !self.seen.is_disjoint(processes)
    }

    /// Whether a process is among those that any of these choose.
    pub(super) fn is_chosen(&mut self, pid: u32, choices: &[Choice]) -> bool {
        self.directory.is_chosen(pid, choices)
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
            self.places
                .add_to(&mut sums, report.pid, &report.waits_at(), &memory.sites);
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
    pub(crate) fn follow_fleet(&mut self, directory: Directory) {
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
            places: Places::default(),
            seen: HashSet::new(),
            callers: 0,
            looked: Instant::now(),
            gone: HashSet::new(),
            retired: 0,
            room: Room::default(),
            departed: Vec::new(),
        });
    }

    /// Who is counted for whom.
    pub(crate) fn directory(&mut self) -> Option<&mut Directory> {
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
            if let Some(fleet) = self.fleet.as_mut() {
                fleet.places.forget(pid);
            }
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
            fleet.places.forget(pid);
            self.memory.sites.forget_sites(pid);
            self.memory.forget_reading(pid);
        }
    }

    /// A process that has called is about to be forgotten.
    pub(super) fn note_departed(&mut self, pid: u32) {
        if let Some(fleet) = self.fleet.as_mut() {
            fleet.departed.push((pid, fleet.directory.owner_of(pid)));
        }
    }

    /// Processes that have been forgotten since this was last asked, with their owners; noted where lines are written.
    pub(crate) fn take_departed(&mut self) -> Vec<(u32, Arc<Owner>)> {
        let departed = self.fleet.as_mut().map(|fleet| std::mem::take(&mut fleet.departed));
        departed.unwrap_or_default()
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
            self.open.exited(pid, crate::clock::monotonic_ns());
            self.ended.insert(pid);
        }
    }

    /// Follows everything until now, also how long devices have had nothing to do while nobody called. When that was.
    pub(super) fn follow_idle(&mut self) -> u64 {
        self.idle_followed = Instant::now();
        let quiet = self.work.look_for_quiet(self.engine.as_ref());
        let now = crate::clock::monotonic_ns();
        self.follow(now);
        self.work.settle_quiet(&quiet);
        now
    }
}
