//! What is said of who holds memory: what the ledgers know, with names, call sites and what the driver counts.

use super::{MemoryPlane, map};
use crate::catalog::Catalog;
use crate::engine::Engine;
use crate::model::memory::{ProcessReport, Report, SiteReport, merge_equal_sites};
use crate::tracer::devices::DevicePlane;
use crate::tracer::sites;

impl MemoryPlane {
    /// Everything that is known at `now`, CLOCK_MONOTONIC ns, and the stacks of `sites`, too.
    pub(in crate::tracer) fn report(
        &mut self,
        engine: &dyn Engine,
        catalog: &Catalog,
        now: u64,
        sites: &[u64],
    ) -> Report {
        let mut report = self.stackless_report(engine, catalog, now);
        self.sites.name(&mut report, sites);
        merge_equal_sites(&mut report);
        report
    }

    /// What a living process holds, by the function that asked for it; most bytes first.
    pub(in crate::tracer) fn sites_of(&self, pid: u32, catalog: &Catalog, now: u64) -> Vec<SiteReport> {
        let Some(mut process) = self.ledgers.report_of(pid, now) else {
            return Vec::new();
        };
        name_functions(&mut process, catalog);
        process.sites
    }

    /// The same without names of call sites: these take a while.
    pub(in crate::tracer) fn stackless_report(&mut self, engine: &dyn Engine, catalog: &Catalog, now: u64) -> Report {
        self.note_losses(engine);
        let mut processes = self.ledgers.report(now);
        for process in &mut processes {
            if let Some(devices) = &self.devices {
                devices.complete(process);
            }
            name_functions(process, catalog);
        }
        let devices = self.devices.iter().flat_map(DevicePlane::notes).cloned();
        Report {
            at: now,
            started_at: self.births.begun_at(),
            processes,
            forgotten: self.ledgers.forgotten,
            notes: sites::notes(engine).into_iter().chain(devices).collect(),
            ..Report::default()
        }
    }
}

fn name_functions(process: &mut ProcessReport, catalog: &Catalog) {
    let name = |row: u32| catalog.rows.get(row as usize).map(|row| row.symbol.clone());
    for site in &mut process.sites {
        site.function = name(site.row).unwrap_or_default();
    }
    process.map.iter_mut().for_each(|map| map::name(map, catalog));
    for freed in &mut process.freed_by {
        freed.function = name(freed.row).unwrap_or_default();
    }
}
