//! The catalogue as one run uses it: which rows are traced, streamed, and how their arguments are captured.

use crate::capture::{Plan, Use, plan};
use crate::catalog::{Arg, Catalog, Group, Layer, LibraryId, Row, RowId};
use crate::driver::DriverRows;
use crate::engine::Engine;
use crate::filter::Filter;
use crate::probe::rows::{NoRoom, Rows};
use crate::wire;
use anyhow::{Context, Result};
use std::collections::HashMap;

/// What the user wants of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wish {
    /// Events at all; without, everything is only counted.
    pub events: bool,
    /// Events of chatty functions, too.
    pub chatty: bool,
    /// Return probes; false on kernels where they would harm the traced program.
    pub returns: bool,
    /// The results of trivial functions, too, which are else only counted.
    pub results: bool,
    /// Follow who holds memory.
    pub memory: bool,
    /// And from where it was asked for.
    pub stacks: bool,
    /// Tell launches apart by kernel.
    pub kernels: bool,
    /// Follow what is put into streams.
    pub work: bool,
    /// And from where: of launches, of what waits.
    pub launch_stacks: bool,
    pub sync_stacks: bool,
}

/// Catalogue, filter and capture plans, index by index.
#[derive(Debug)]
pub struct RunRows {
    pub catalog: Catalog,
    pub filter: Filter,
    pub plans: Vec<Plan>,
    wish: Wish,
    /// All of them by symbol: a library may have millions of those.
    index: HashMap<(LibraryId, String), RowId>,
    capacity: usize,
    spare: usize,
    published: usize,
}

/// The first row of each symbol.
fn index_of(rows: &[Row]) -> HashMap<(LibraryId, String), RowId> {
    let ids = (0..).map(RowId);
    let last_to_first = rows.iter().zip(ids).collect::<Vec<_>>().into_iter().rev();
    last_to_first
        .map(|(row, id)| ((row.library, row.symbol.clone()), id))
        .collect()
}

impl RunRows {
    /// Plans every row of `catalog`; up to `spare` may be added later.
    pub fn new(catalog: Catalog, filter: Filter, wish: Wish, spare: usize) -> RunRows {
        let capacity = catalog.rows.len() + spare;
        let mut rows = RunRows {
            index: index_of(&catalog.rows),
            catalog,
            filter,
            plans: Vec::new(),
            wish,
            capacity,
            spare,
            published: 0,
        };
        rows.plans = (0..rows.catalog.rows.len()).map(|row| rows.plan(row, true)).collect();
        rows.published = rows.plans.len();
        rows
    }

    /// Whether what is put into streams is followed.
    pub(crate) fn follows_work(&self) -> bool {
        self.wish.work
    }

    /// Whether it is followed who holds memory.
    pub(crate) fn follows_memory(&self) -> bool {
        self.wish.memory
    }

    /// Whether it is noted where calls come from.
    pub(crate) fn takes_stacks(&self) -> bool {
        let hooks = self.catalog.rows.iter().any(|row| row.hook.takes_stacks());
        self.wish.stacks || self.wish.launch_stacks || self.wish.sync_stacks || hooks
    }

    /// Whether calls are summed up by process.
    pub(crate) fn names_processes(&self) -> bool {
        let by = |row: &Row| row.hook.aggregate.as_ref().map(|sums| sums.by);
        self.catalog.rows.iter().any(|row| by(row) == Some(Group::Process))
    }

    /// Whether a function of `layer` is traced where it is found.
    pub(crate) fn has_layer(&self, layer: Layer) -> bool {
        let libraries = &self.catalog.libraries;
        let of_layer =
            |row: &Row| libraries.get(usize::from(row.library.0)).map(|library| library.layer) == Some(layer);
        let mut rows = self.catalog.rows.iter().filter(|row| of_layer(row));
        rows.any(|row| self.filter.selects(&self.catalog, row))
    }

    /// The kernel driver's calls, if any of them is traced.
    pub fn driver(&self) -> Option<DriverRows> {
        let driver = self.catalog.driver?;
        let mut rows = (0..self.catalog.rows.len() as u32).filter(|row| driver.contains(*row));
        rows.any(|row| self.selects(row)).then_some(driver)
    }

    /// Of its rows, those that are not traced.
    pub(crate) fn driver_left_out(&self) -> Vec<u32> {
        let is_driver = |row: &u32| self.catalog.driver.is_some_and(|driver| driver.contains(*row));
        let rows = (0..self.catalog.rows.len() as u32).filter(is_driver);
        rows.filter(|row| !self.selects(*row)).collect()
    }

    /// Whether calls of a row are traced where they are found.
    pub fn selects(&self, row: u32) -> bool {
        let row = self.catalog.rows.get(row as usize);
        row.is_some_and(|row| self.filter.selects(&self.catalog, row))
    }

    /// What the kernel side is told at load.
    pub fn specs(&self) -> Vec<wire::Spec> {
        self.plans.iter().map(|plan| plan.spec).collect()
    }

    /// Whether calls of a row become events.
    pub(crate) fn streams(&self, row: u32) -> bool {
        self.plans
            .get(row as usize)
            .is_some_and(|plan| plan.spec.flags & wire::SPEC_STREAM != 0)
    }

    /// Whether calls of a row have a duration and a result.
    pub(crate) fn timed(&self, row: u32) -> bool {
        self.plans
            .get(row as usize)
            .is_some_and(|plan| plan.spec.flags & wire::SPEC_RETURN != 0)
    }

    fn is_driver(&self, row: usize) -> bool {
        self.catalog.driver.is_some_and(|driver| driver.contains(row as u32))
    }

    fn plan(&self, row: usize, returns: bool) -> Plan {
        let known = &self.catalog.rows[row];
        let asked_for = self.wish.chatty || self.filter.asks_for(known);
        let stream = self.wish.events && (!known.chatty || asked_for) && known.hook.streams();
        let told = known.may_return() && (!known.trivial || asked_for || self.wish.results);
        let told = known.hook.returns.unwrap_or(told && known.hook.offset.is_none());
        plan(
            &self.catalog,
            known,
            Use {
                stream,
                // tracepoints and kernel functions are seen to return on every kernel
                returns: returns && (self.wish.returns || known.site.is_in_kernel() || self.is_driver(row)) && told,
                memory: self.wish.memory,
                stacks: self.wish.stacks,
                kernels: self.wish.kernels,
                work: self.wish.work,
                launch_stacks: self.wish.launch_stacks,
                sync_stacks: self.wish.sync_stacks,
            },
        )
    }
}

impl Rows for RunRows {
    fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    fn filter(&self) -> &Filter {
        &self.filter
    }

    fn returns(&self, row: RowId) -> bool {
        self.timed(row.0)
    }

    fn see_entry_only(&mut self, row: RowId) {
        let index = row.0 as usize;
        self.plans[index] = self.plan(index, false);
        self.published = self.published.min(index);
    }

    fn add(&mut self, library: LibraryId, symbol: &str, like: Option<RowId>) -> Result<Option<RowId>, NoRoom> {
        // a second copy of the library brings the same symbols
        if let Some(known) = self.index.get(&(library, symbol.to_owned())) {
            return Ok(Some(*known));
        }
        let mut row = Row::unknown(library, symbol);
        if let Some(like) = like.and_then(|id| self.catalog.row(id)) {
            row = like.clone();
            row.symbol = symbol.to_owned();
            row.api = symbol.to_owned();
        }
        if !self.filter.selects(&self.catalog, &row) {
            return Ok(None);
        }
        if self.plans.len() >= self.capacity {
            return Err(NoRoom);
        }
        self.catalog.rows.push(row);
        let index = self.plans.len();
        self.plans.push(self.plan(index, true));
        let id = RowId(index as u32);
        self.index.insert((library, symbol.to_owned()), id);
        Ok(Some(id))
    }

    fn spare(&self) -> usize {
        self.spare
    }

    fn set_args(&mut self, row: RowId, args: Vec<Arg>) {
        let index = row.0 as usize;
        self.catalog.rows[index].args = args;
        self.plans[index] = self.plan(index, true);
        self.published = self.published.min(index);
    }

    fn publish(&mut self, engine: &dyn Engine) -> Result<()> {
        for row in self.published..self.plans.len() {
            engine
                .set_spec(row as u32, &self.plans[row].spec)
                .context("failed to add a row")?;
        }
        self.published = self.plans.len();
        Ok(())
    }
}
