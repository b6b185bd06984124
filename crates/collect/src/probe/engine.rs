//! The engine that has its programs in the kernel: what is asked of it, in terms of its maps and rings.

use super::gate::Gate;
use super::links::hooks;
use super::{Session, Tier, batch, links, ring};
use crate::engine::{Arrivals, Counters, Engine, Feed, Hook, Hooks, Keep, Point, Seen, Stream, Table, Take};
use crate::stack::wire::SiteCounters;
use crate::wire;
use anyhow::{Context, Result};
use libbpf_rs::{MapCore, MapFlags};
use std::any::Any;
use std::path::Path;

impl Engine for Session {
    fn inner(&self) -> &dyn Any {
        self
    }

    fn way(&self) -> &'static str {
        self.tier.name()
    }

    fn makes_single_events(&self) -> bool {
        self.tier == Tier::PerfLink
    }

    fn rows(&self) -> usize {
        self.rows
    }

    fn open(&self, stream: Stream, take: Take) -> Result<Box<dyn Feed>> {
        ring::open(self, stream, take)
    }

    fn arrivals(&self) -> Result<Box<dyn Arrivals>> {
        let (holder, keep) = self.holding.take().unwrap_or((None, Keep::AtLinker));
        Ok(Box::new(Gate::open(self, holder, keep)?))
    }

    fn attach(&self, path: &Path, points: &[Point]) -> Result<Hooks> {
        links::attach(self, path, points).map(hooks)
    }

    fn attach_linker(&self, path: &Path, offset: u64) -> Result<Hooks> {
        links::attach_linker(self, path, offset).map(|link| hooks(vec![link]))
    }

    fn attach_lifecycle(&self) -> Result<Hooks> {
        links::attach_lifecycle(self).map(hooks)
    }

    fn attach_samples(&self) -> Result<Hooks> {
        self.sample_switches()
    }

    fn attach_clock(&self, tid: u32) -> Result<Box<dyn Hook>> {
        self.start_clock(tid)
    }

    fn last_stack(&self, tid: u32) -> Option<Seen> {
        self.stack_of(tid)
    }

    fn store(&self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        Ok(self.map(table).update(key, value, MapFlags::ANY)?)
    }

    fn look_up(&self, table: Table, key: &[u8]) -> Option<Vec<u8>> {
        self.map(table).lookup(key, MapFlags::ANY).ok().flatten()
    }

    fn read(&self, table: Table, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        batch::for_each(self.map(table), each)
    }

    fn delete(&self, table: Table, key: &[u8]) -> Result<()> {
        Ok(self.map(table).delete(key)?)
    }

    fn slots(&self, table: Table) -> u32 {
        self.map(table).max_entries()
    }

    fn counter(&self, row: u32) -> Result<wire::RowCounter> {
        let map = &self.skel.maps.row_counters;
        let cpus = map
            .lookup_percpu(&row.to_ne_bytes(), MapFlags::ANY)
            .context("failed to read the row counters")?;
        let cpus = cpus.unwrap_or_default();
        Ok(cpus.iter().fold(wire::RowCounter::default(), |sum, cpu| sum.plus(cpu)))
    }

    fn first_counters(&self, rows: u32) -> Result<Vec<wire::RowCounter>> {
        let mut counters = vec![wire::RowCounter::default(); rows as usize];
        batch::for_each_per_cpu(&self.skel.maps.row_counters, &mut |row, cpus| {
            let row: Option<u32> = wire::read(row);
            let counter = row.and_then(|row| counters.get_mut(row as usize));
            if let Some(counter) = counter {
                *counter = cpus.fold(*counter, wire::RowCounter::plus);
            }
        })?;
        Ok(counters)
    }

    fn counters(&self) -> Counters {
        let control = self.control.read();
        let sums = self.aggregate_counters.read();
        Counters {
            waits_expired: control.waits_expired,
            notices_lost: control.notices_lost,
            events_lost: control.events_lost,
            totals_overflowed: control.totals_overflowed,
            memory_lost: control.memory_lost,
            work_lost: control.work_lost,
            driver_lost: control.driver_lost,
            xids_lost: self.xids_lost(),
            samples_lost: control.samples_lost,
            shapes_lost: control.shapes_lost,
            shares_lost: control.shares_lost,
            threads_ended: control.threads_ended,
            voluntary: control.voluntary,
            involuntary: control.involuntary,
            threads_unsure: 0,
            known_files: control.known_files,
            sums_full: sums.full,
            sums_raced: sums.races,
            ranges_lost: 0,
        }
    }

    fn site_counters(&self) -> SiteCounters {
        self.site_counters.read()
    }

    fn count_calls(&self, on: bool) {
        self.control.count(on);
        if on {
            // who loads a library from now on waits, though nobody has looked for the first time yet
            self.control.alive(crate::clock::monotonic_ns());
        }
    }

    fn alive(&self, now: u64) {
        self.control.alive(now);
    }

    fn free_kernel_totals(&self, count: u64) {
        self.control.free_kernel_totals(count);
    }

    fn forget_files(&self) {
        self.control.forget_files();
    }
}

impl Session {
    fn map(&self, table: Table) -> &dyn MapCore {
        let maps = &self.skel.maps;
        match table {
            Table::Specs => &maps.specs,
            Table::ProbeSites => &maps.probe_sites,
            Table::KernelSites => &maps.kernel_sites,
            Table::Targets => &maps.targets,
            Table::Pythons => &maps.pythons,
            Table::Totals => &maps.totals,
            Table::Failures => &maps.failures,
            Table::Shapes => &maps.shapes,
            Table::Kernels => &maps.kernels,
            Table::NamedHandles => &maps.named_handles,
            Table::Aggregates => &maps.aggregates,
            Table::AggregateTexts => &maps.aggregate_texts,
            Table::Lanes => &maps.lanes,
            Table::Flows => &maps.flows,
            Table::WorkLosses => &maps.work_losses,
            Table::MemoryLosses => &maps.memory_losses,
            Table::DriverShares => &maps.driver_shares,
            Table::Places => &maps.places,
            Table::KnownSites => &maps.known_sites,
            Table::FreshFiles => &maps.fresh_files,
            Table::KnownFiles => &maps.known_files,
        }
    }

    /// Xids that found their ring full.
    fn xids_lost(&self) -> u64 {
        let shared = self.skel.maps.bss_data.as_deref();
        // SAFETY: an aligned word of memory that is shared with the kernel
        shared.map_or(0, |shared| unsafe {
            std::ptr::read_volatile(&raw const shared.xids_lost)
        })
    }
}
