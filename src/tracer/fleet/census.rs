//! What is known by owner at a moment: the sums of who has ended, and those of the living as they are now.

use super::holding::{hold, hold_by_driver, uses};
use super::{FleetPlane, kernel_of};
use crate::catalog::Traffic;
use crate::discover;
use crate::model::fleet::{Living, LongCall, Reading, Sums};
use crate::model::memory::Origin;
use crate::model::open::LONG_NS;
use crate::owner::Owner;
use crate::owner::directory::Unknown;
use crate::probe::attach::Gap;
use crate::tracer::Tracer;
use crate::tracer::budget::Spending;
use crate::tracer::burden::price_of;
use crate::wire::{BEYOND_CAPACITY, RowCounter};
use anyhow::Result;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Everything that is known by owner, and how well.
#[derive(Debug, Clone, Default)]
pub struct Census {
    pub(crate) readings: Vec<Reading>,
    /// By process: the longest of its calls that have not returned and are long by now.
    pub(crate) long_calls: HashMap<u32, LongCall>,
    /// Living processes that called CUDA.
    pub processes: usize,
    pub files: usize,
    pub functions: usize,
    /// Calls stopped at entry and return, and at entry only.
    pub hits: (u64, u64),
    /// Seconds that these have cost the programs: inferred from what one costs.
    pub(crate) probe_seconds: f64,
    /// What was lost, by reason.
    pub lost: Vec<(&'static str, u64)>,
    /// What is not seen, and why; what concerns the whole machine first.
    pub unseen: Vec<String>,
    /// How many of these are about one file each.
    pub(crate) unseen_files: usize,
    pub(crate) retired_owners: u64,
    /// Processes that had to be counted for the owner `other`.
    pub merged: u64,
    /// Processes that lack labels.
    pub unknown: Unknown,
    pub(crate) evicted_kernels: u64,
    /// `None`: there is no budget.
    pub(crate) spending: Option<Spending>,
}

impl Census {
    /// Whether calls of that kind are left unseen now.
    pub(crate) fn is_shed(&self, traffic: Traffic) -> bool {
        let shed = self.spending.iter().flat_map(|spending| &spending.shed);
        shed.into_iter().any(|(kind, now, _)| *kind == traffic && *now)
    }
}

impl Tracer {
    /// Everything that is known by owner, with so many kernels of each by name. Owners that had no process for `retain`
    /// are forgotten.
    ///
    /// # Errors
    /// A table of the kernel cannot be read.
    pub(crate) fn census(&mut self, kernels: usize, retain: Duration) -> Result<Census> {
        let now = self.follow_idle();
        let long_calls = self.longest_calls(LONG_NS);
        let Some(mut fleet) = self.fleet.take() else {
            return Ok(Census::default());
        };
        // what has ended in the models must not be missing until the kernel's counts are folded, too
        fleet.fold_models(&mut self.memory, &mut self.work, now);
        let living = self.living(&mut fleet, &long_calls, now);
        let census = living.and_then(|living| self.count(&mut fleet, living, kernels, retain, now));
        self.fleet = Some(fleet);
        Ok(Census { long_calls, ..census? })
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
        // the sum of none is -0.0
        let ns = hits
            .iter()
            .map(|hits| hits.count as f64 * price_of(&fleet.prices, hits))
            .fold(0.0, |sum, ns| sum + ns);
        Ok(Census {
            readings,
            long_calls: HashMap::new(),
            processes: fleet.callers,
            files: self.attacher.attached().count(),
            functions: self.functions(),
            hits: (count(true), count(false)),
            probe_seconds: ns / 1e9,
            lost: self.losses(&counters),
            unseen_files: of_files.len(),
            unseen: self
                .left_unseen()
                .chain(of_machine.into_iter().chain(of_files).map(|gap| gap.0.clone()))
                .collect(),
            retired_owners: fleet.retired,
            merged: fleet.directory.merged(),
            unknown: fleet.directory.unknown(),
            evicted_kernels: fleet.fleet.evicted_kernels(),
            spending: self.spending(),
        })
    }

    fn losses(&self, counters: &[RowCounter]) -> Vec<(&'static str, u64)> {
        let losses = self.engine.counters();
        let nested = counters.iter().map(|counter| counter.no_frame).sum();
        let ring = self.encoder.is_some().then_some(("call_ring", losses.events_lost));
        let others = [
            ("memory_ring", losses.memory_lost),
            ("work_ring", losses.work_lost),
            ("driver_shares", losses.shares_lost),
            ("notices", losses.notices_lost),
            ("process_table", losses.totals_overflowed),
            ("late_probes", self.early_loads(losses.waits_expired)),
            ("nested_too_deeply", nested),
            ("malformed", self.malformed_in_all()),
        ];
        ring.into_iter().chain(others).collect()
    }

    fn living(
        &mut self,
        fleet: &mut FleetPlane,
        long_calls: &HashMap<u32, LongCall>,
        now: u64,
    ) -> Result<HashMap<Arc<Owner>, Living>> {
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
            if let Some(call) = long_calls.get(&pid) {
                known.note_open(call.clone());
            }
            if let Some(report) = self.work.so_far(pid, now) {
                report.add_to(&mut sums);
                let idle = report.idle_time();
                let uses = uses(self.memory.reading(pid));
                let waste = fleet.wasted.count_living(pid, &idle.reasons, idle.inferred, &uses);
                sums.add_waste(waste);
                let waits = report.waits_at();
                fleet.places.add_to(&mut sums, pid, &waits, &self.memory.sites);
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
