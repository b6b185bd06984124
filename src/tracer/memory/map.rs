//! Single allocations: of whom they are told, and their names.

use super::MemoryPlane;
use crate::catalog::Catalog;
use crate::model::memory::{AllocationMap, Wanted};
use crate::tracer::Tracer;

impl Tracer {
    /// Has reports of memory tell these single allocations from now on.
    pub(crate) fn list_allocations(&mut self, wanted: Option<Wanted>) {
        self.memory.list(wanted);
    }
}

impl MemoryPlane {
    /// Reports have these single allocations from now on.
    pub(in crate::tracer) fn list(&mut self, wanted: Option<Wanted>) {
        self.ledgers.wanted = wanted;
    }

    /// Single allocations of a living process.
    pub(in crate::tracer) fn map_of(
        &self,
        pid: u32,
        wanted: Wanted,
        catalog: &Catalog,
        now: u64,
    ) -> Option<AllocationMap> {
        let mut map = self.ledgers.map_of(pid, wanted, now)?;
        name(&mut map, catalog);
        Some(map)
    }
}

pub(super) fn name(map: &mut AllocationMap, catalog: &Catalog) {
    for allocation in &mut map.shown {
        let row = catalog.rows.get(allocation.row as usize);
        allocation.function = row.map(|row| row.symbol.clone()).unwrap_or_default();
    }
}
