//! Reads the counting plane out of the kernel.

use super::{Session, batch};
use crate::wire::{self, Plain, bytes_of};
use anyhow::{Context, Result};
use libbpf_rs::{MapCore, MapFlags};

/// In which shapes kernels were launched, and on which streams.
#[derive(Debug, Clone, Default)]
pub struct Launched {
    pub shapes: Vec<(wire::ShapeKey, u64)>,
    pub streams: Vec<wire::KernelStream>,
}

/// What was lost beside records of the rings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Losses {
    /// Library loads that did not wait until their probes were in place.
    pub waits_expired: u64,
    pub notices: u64,
    /// Calls counted without their process.
    pub unattributed: u64,
}

/// The counting plane, read once.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    pub totals: Vec<(wire::TotalKey, wire::Total)>,
    pub failures: Vec<(wire::FailureKey, u64)>,
    pub launched: Launched,
    /// What rows of users' files sum up.
    pub aggregates: Vec<(wire::AggregateKey, wire::Aggregate)>,
    /// By row.
    pub counters: Vec<wire::RowCounter>,
    /// Library loads that did not wait until their probes were in place.
    pub waits_expired: u64,
    pub notices_lost: u64,
    /// Calls counted without their process, because the table of processes was full.
    pub unattributed: u64,
    /// Launches whose shape found no room.
    pub shapes_lost: u64,
}

impl Session {
    /// Reads the exact totals.
    ///
    /// # Errors
    /// A map cannot be read.
    pub fn snapshot(&self) -> Result<Snapshot> {
        let maps = &self.skel.maps;
        let control = self.control.read();
        Ok(Snapshot {
            totals: entries(&maps.totals)?,
            failures: entries(&maps.failures)?,
            launched: self.launched()?,
            aggregates: self.aggregates()?,
            counters: self.counters()?,
            waits_expired: control.waits_expired,
            notices_lost: control.notices_lost,
            unattributed: control.totals_overflowed,
            shapes_lost: control.shapes_lost,
        })
    }

    /// Calls `each` with every total and every failure of living processes, and those that ended a moment ago.
    ///
    /// # Errors
    /// A map cannot be read.
    pub fn read_counts(
        &self,
        total: impl FnMut(wire::TotalKey, wire::Total),
        failure: impl FnMut(wire::FailureKey, u64),
    ) -> Result<()> {
        batch::for_each(&self.skel.maps.totals, total)?;
        batch::for_each(&self.skel.maps.failures, failure)
    }

    /// Takes the totals of processes that have ended out of the kernel's tables.
    ///
    /// # Errors
    /// A map cannot be read.
    pub fn take_ended(&self, ended: &dyn Fn(u32) -> bool) -> Result<Snapshot> {
        let maps = &self.skel.maps;
        let mut taken = Snapshot::default();
        batch::for_each(&maps.totals, |key: wire::TotalKey, total: wire::Total| {
            if ended(key.tgid) {
                taken.totals.push((key, total));
            }
        })?;
        batch::for_each(&maps.failures, |key: wire::FailureKey, count: u64| {
            if ended(key.tgid) {
                taken.failures.push((key, count));
            }
        })?;
        let named = |(key, _): &&(wire::TotalKey, wire::Total)| key.variant >= wire::KERNEL_FIRST_ID;
        self.control
            .free_kernel_totals(taken.totals.iter().filter(named).count() as u64);
        for (key, _) in &taken.totals {
            maps.totals
                .delete(bytes_of(key))
                .context("failed to drop the totals of an ended process")?;
        }
        for (key, _) in &taken.failures {
            maps.failures
                .delete(bytes_of(key))
                .context("failed to drop the failures of an ended process")?;
        }
        taken.aggregates = self.take_aggregates(ended)?;
        Ok(taken)
    }

    /// Takes the shapes and streams of launches by processes that have ended out of the kernel's tables, and forgets which handles
    /// of theirs stood for which kernels.
    ///
    /// # Errors
    /// A map cannot be read.
    pub fn take_launched(&self, ended: &dyn Fn(u32) -> bool) -> Result<Launched> {
        let mut streams = Vec::new();
        let mut shapes: Vec<(wire::ShapeKey, u64)> = entries(&self.skel.maps.shapes)?;
        shapes.retain(|(key, _)| ended(key.tgid));
        for (key, _) in &shapes {
            let dropped = self.skel.maps.shapes.delete(bytes_of(key));
            dropped.context("failed to drop the shapes of an ended process")?;
        }
        for (key, known) in self.kernels()?.iter().filter(|(_, known)| ended(known.tgid)) {
            let dropped = self.skel.maps.kernels.delete(bytes_of(key));
            dropped.context("failed to drop the kernels of an ended process")?;
            shapes.extend(known.shape());
            streams.extend(known.stream());
        }
        let named: Vec<(wire::KernelKey, wire::NamedHandle)> = entries(&self.skel.maps.named_handles)?;
        for (key, _) in named.iter().filter(|(_, named)| ended(named.tgid)) {
            let dropped = self.skel.maps.named_handles.delete(bytes_of(key));
            dropped.context("failed to drop the names of an ended process")?;
        }
        Ok(Launched { shapes, streams })
    }

    fn launched(&self) -> Result<Launched> {
        let mut shapes: Vec<(wire::ShapeKey, u64)> = entries(&self.skel.maps.shapes)?;
        let kernels = self.kernels()?;
        shapes.extend(kernels.iter().filter_map(|(_, known)| known.shape()));
        let streams = kernels.iter().filter_map(|(_, known)| known.stream()).collect();
        Ok(Launched { shapes, streams })
    }

    fn kernels(&self) -> Result<Vec<(wire::KernelKey, wire::KnownKernel)>> {
        entries(&self.skel.maps.kernels)
    }

    /// What was put into the streams of all processes.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn lanes(&self) -> Result<Vec<(wire::LaneKey, wire::Lane)>> {
        entries(&self.skel.maps.lanes)
    }

    /// Takes the streams of a process that has ended out of the kernel's table.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn take_lanes(&self, tgid: u32) -> Result<Vec<(wire::LaneKey, wire::Lane)>> {
        let mut lanes = self.lanes()?;
        lanes.retain(|(key, _)| key.tgid == tgid);
        for (key, _) in &lanes {
            let dropped = self.skel.maps.lanes.delete(bytes_of(key));
            dropped.context("failed to drop the streams of an ended process")?;
        }
        Ok(lanes)
    }

    /// Where a process runs whose notice had this key: for [`wire::cgroups`].
    pub fn place(&self, key: u64) -> Option<Vec<u8>> {
        let wanted = key != 0;
        let found = wanted.then(|| self.skel.maps.places.lookup(&key.to_ne_bytes(), MapFlags::ANY));
        found?.ok().flatten()
    }

    /// What is known at this moment of the calls of a process, and of those that share its place.
    pub fn flow(&self, tgid: u32) -> Option<wire::Flow> {
        let flows = &self.skel.maps.flows;
        let slot = tgid.checked_rem(flows.max_entries())?;
        let found = flows.lookup(&slot.to_ne_bytes(), MapFlags::ANY);
        found.ok().flatten().and_then(|bytes| wire::Flow::parse(&bytes))
    }

    /// What was lost beside records of the rings.
    pub fn losses(&self) -> Losses {
        let control = self.control.read();
        Losses {
            waits_expired: control.waits_expired,
            notices: control.notices_lost,
            unattributed: control.totals_overflowed,
        }
    }

    /// Work calls that found their ring full, of all processes.
    pub fn work_lost(&self) -> u64 {
        self.control.read().work_lost
    }

    /// The same by process.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn work_losses(&self) -> Result<Vec<(u32, wire::WorkLoss)>> {
        entries(&self.skel.maps.work_losses)
    }

    /// Forgets the losses of an ended process, whose number may be given to another.
    pub fn forget_work_loss(&self, tgid: u32) {
        // most have none
        let _ = self.skel.maps.work_losses.delete(&tgid.to_ne_bytes());
    }

    /// Events that found the ring full, of all rows.
    pub fn lost(&self) -> u64 {
        self.control.read().events_lost
    }

    /// Memory calls that found their ring full, of all processes.
    pub fn memory_lost(&self) -> u64 {
        self.control.read().memory_lost
    }

    /// The same by process.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn memory_losses(&self) -> Result<Vec<(u32, wire::MemoryLoss)>> {
        entries(&self.skel.maps.memory_losses)
    }

    /// Forgets the losses of an ended process, whose number may be given to another.
    pub fn forget_memory_loss(&self, tgid: u32) {
        // most have none
        let _ = self.skel.maps.memory_losses.delete(&tgid.to_ne_bytes());
    }

    /// Per row, added over all CPUs.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn counters(&self) -> Result<Vec<wire::RowCounter>> {
        self.counters_of(self.rows)
    }

    /// The same of the first `rows` rows.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn counters_of(&self, rows: usize) -> Result<Vec<wire::RowCounter>> {
        (0..rows.min(self.rows) as u32).map(|row| self.counter(row)).collect()
    }

    /// The counters of one row.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn counter(&self, row: u32) -> Result<wire::RowCounter> {
        let map = &self.skel.maps.row_counters;
        let cpus = map
            .lookup_percpu(&row.to_ne_bytes(), MapFlags::ANY)
            .context("failed to read the row counters")?;
        let cpus = cpus.unwrap_or_default();
        Ok(cpus.iter().fold(wire::RowCounter::default(), |sum, cpu| sum.plus(cpu)))
    }
}

/// All entries of a hash map.
pub(super) fn entries<K: Plain, V: Plain>(map: &dyn MapCore) -> Result<Vec<(K, V)>> {
    let mut found = Vec::new();
    batch::for_each(map, |key, value| found.push((key, value)))?;
    Ok(found)
}
