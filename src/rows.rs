//! The catalogue as one run uses it: which rows are traced, streamed, and how their arguments are captured.

use crate::capture::{Plan, Use, plan};
use crate::catalog::{Catalog, LibraryId, RowId};
use crate::filter::Filter;
use crate::probe::Session;
use crate::probe::attach::{Rows, unknown_row};
use crate::wire;
use anyhow::{Context, Result};

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
    capacity: usize,
    published: usize,
}

impl RunRows {
    /// Plans every row of `catalog`; up to `spare` may be added later.
    pub fn new(catalog: Catalog, filter: Filter, wish: Wish, spare: usize) -> RunRows {
        let capacity = catalog.rows.len() + spare;
        let mut rows = RunRows {
            catalog,
            filter,
            plans: Vec::new(),
            wish,
            capacity,
            published: 0,
        };
        rows.plans = (0..rows.catalog.rows.len()).map(|row| rows.plan(row, true)).collect();
        rows.published = rows.plans.len();
        rows
    }

    /// Whether what is put into streams is followed.
    pub fn follows_work(&self) -> bool {
        self.wish.work
    }

    /// What the kernel side is told at load.
    pub fn specs(&self) -> Vec<wire::Spec> {
        self.plans.iter().map(|plan| plan.spec).collect()
    }

    /// Whether calls of a row become events.
    pub fn streams(&self, row: u32) -> bool {
        self.plans
            .get(row as usize)
            .is_some_and(|plan| plan.spec.flags & wire::SPEC_STREAM != 0)
    }

    /// Whether calls of a row have a duration and a result.
    pub fn timed(&self, row: u32) -> bool {
        self.plans
            .get(row as usize)
            .is_some_and(|plan| plan.spec.flags & wire::SPEC_RETURN != 0)
    }

    fn plan(&self, row: usize, returns: bool) -> Plan {
        let known = &self.catalog.rows[row];
        let asked_for = self.wish.chatty || self.filter.asks_for(known);
        let stream = self.wish.events && (!known.chatty || asked_for);
        let told = !known.raw && !known.entry_only && (!known.trivial || asked_for || self.wish.results);
        plan(
            &self.catalog,
            known,
            Use {
                stream,
                returns: returns && self.wish.returns && told,
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

    fn add(&mut self, library: LibraryId, symbol: &str, like: Option<RowId>) -> Option<RowId> {
        // a second copy of the library brings the same symbols
        let known = self
            .catalog
            .rows
            .iter()
            .position(|row| row.library == library && row.symbol == symbol);
        if let Some(index) = known {
            return Some(RowId(index as u32));
        }
        if self.plans.len() + 1 >= self.capacity {
            return None;
        }
        let mut row = unknown_row(library, symbol);
        if let Some(like) = like.and_then(|id| self.catalog.row(id)) {
            row = like.clone();
            row.symbol = symbol.to_owned();
            row.api = symbol.to_owned();
        }
        if !self.filter.selects(&self.catalog, &row) {
            return None;
        }
        self.catalog.rows.push(row);
        let index = self.plans.len();
        self.plans.push(self.plan(index, true));
        Some(RowId(index as u32))
    }

    fn publish(&mut self, session: &Session) -> Result<()> {
        for row in self.published..self.plans.len() {
            session
                .set_spec(row as u32, &self.plans[row].spec)
                .context("failed to add a row")?;
        }
        self.published = self.plans.len();
        Ok(())
    }
}
