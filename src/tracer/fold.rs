//! Totals of processes that have ended, moved out of the kernel's tables.
//!
//! Owns when that is done and what is forgotten with it. Where owners are followed, their sums are [`super::fleet`]'s.

use super::Tracer;
use crate::clock::monotonic_ns;
use crate::discover;
use crate::engine::totals::Snapshot;
use crate::wire;
use std::collections::HashSet;

impl Tracer {
    /// Keeps the kernel's tables small: totals of ended processes move here.
    pub(super) fn fold_ended(&mut self) {
        // what they launched may be being named
        if self.ended.is_empty() || self.memory.stubs.is_busy() || self.memory.late.is_busy() {
            return;
        }
        // names of kernels are needed until the last records of their process have been followed
        let (early, ended): (HashSet<u32>, HashSet<u32>) = std::mem::take(&mut self.ended)
            .into_iter()
            .partition(|tgid| self.work.knows(*tgid));
        self.ended = early;
        self.work.tell_graphs(&mut self.launches, false);
        if self.made_calls(&ended) {
            self.fold(&ended);
        }
        for tgid in ended {
            self.threads.left(tgid);
            if self.callers.remove(&tgid) && self.encoder.is_some() {
                self.note_departed(tgid);
            }
            self.forget_owner(tgid);
        }
    }

    /// Whether one of these may have; most processes of a machine do not, and a look into the tables takes a while.
    fn made_calls(&mut self, ended: &HashSet<u32>) -> bool {
        let lost = self.engine.counters().notices_lost;
        let knows_all = std::mem::replace(&mut self.notices_lost, lost) == lost;
        let has_counted = |fleet: &super::fleet::FleetPlane| fleet.has_counted(ended);
        !knows_all || !self.callers.is_disjoint(ended) || self.fleet.as_ref().is_some_and(has_counted)
    }

    fn fold(&mut self, ended: &HashSet<u32>) {
        self.take_counts(ended);
        self.take_launched(ended);
        self.launches.forget(&|tgid| ended.contains(&tgid));
    }

    /// What the kernel has counted of these processes so far.
    pub(super) fn take_counts(&mut self, pids: &HashSet<u32>) {
        let taken = self.engine.take_ended(&|tgid| pids.contains(&tgid));
        let taken = taken.unwrap_or_default();
        match self.fleet {
            Some(_) => self.fold_taken(&taken, monotonic_ns()),
            None => self.add_to_tally(&taken),
        }
        self.take_shares(pids);
    }

    /// What calls of ended processes have spent in the driver.
    fn take_shares(&mut self, ended: &HashSet<u32>) {
        if self.driver.is_none() {
            return;
        }
        let taken = self.engine.take_driver_shares(&|tgid| ended.contains(&tgid));
        let taken = taken.unwrap_or_default();
        if self.fleet.is_some() {
            return self.fold_shares(&taken);
        }
        for (key, share) in taken {
            self.tally.add_share(&key, share);
        }
    }

    fn take_launched(&mut self, ended: &HashSet<u32>) {
        let is_ended = |tgid: u32| ended.contains(&tgid);
        if !self.launches.knows_any(&is_ended) {
            return;
        }
        let launched = self.engine.take_launched(&is_ended).unwrap_or_default();
        if self.fleet.is_none() {
            self.launches.add_launched(&launched.shapes, &launched.streams);
        }
    }

    pub(super) fn add_to_tally(&mut self, taken: &Snapshot) {
        for (key, total) in &taken.totals {
            self.tally.add(&self.rows.catalog, key, total);
            let plan = self.rows.plans.get(key.row as usize);
            let launches = |role| matches!(role, wire::ROLE_LAUNCH | wire::ROLE_STUB);
            // of the runtime's launches, those that a launch of the driver lies in are counted there
            if key.variant != 0 && plan.is_some_and(|plan| launches(plan.spec.launch.role)) {
                self.launches.add(key, total);
            }
        }
        self.launches
            .add_launched(&taken.launched.shapes, &taken.launched.streams);
        for (key, count) in &taken.failures {
            self.tally.add_failure(key, *count);
        }
        for (key, sums) in &taken.aggregates {
            let comm = self.process_name(key.tgid);
            self.aggregates.add(&self.rows.catalog, key, sums, comm.as_deref());
        }
    }

    /// As last heard of, also of one that has ended.
    pub(super) fn process_name(&self, tgid: u32) -> Option<String> {
        let known = self.rows.names_processes().then(|| self.comms.get(&tgid).cloned())?;
        known.or_else(|| discover::comm(tgid, tgid))
    }
}
