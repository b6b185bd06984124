//! The counting plane, read out of an engine's tables.

use super::{Engine, Table, value_of};
use crate::wire::{self, Plain, bytes_of};
use anyhow::{Context, Result, bail};

/// In which shapes kernels were launched, and on which streams.
#[derive(Debug, Clone, Default)]
pub struct Launched {
    pub shapes: Vec<(wire::ShapeKey, u64)>,
    pub streams: Vec<wire::KernelStream>,
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

impl Launched {
    /// Most kernels have one shape, which is kept beside them.
    fn of(mut shapes: Vec<(wire::ShapeKey, u64)>, kernels: &[(wire::KernelKey, wire::KnownKernel)]) -> Launched {
        shapes.extend(kernels.iter().filter_map(|(_, known)| known.shape()));
        let streams = kernels.iter().filter_map(|(_, known)| known.stream()).collect();
        Launched { shapes, streams }
    }
}

impl dyn Engine {
    /// Reads the exact totals, and the counters of the first `rows` rows.
    ///
    /// # Errors
    /// A table cannot be read.
    pub fn snapshot(&self, rows: usize) -> Result<Snapshot> {
        let counters = self.counters();
        Ok(Snapshot {
            totals: self.entries(Table::Totals)?,
            failures: self.entries(Table::Failures)?,
            launched: self.launched()?,
            aggregates: self.aggregates()?,
            counters: self.row_counters(rows)?,
            waits_expired: counters.waits_expired,
            notices_lost: counters.notices_lost,
            unattributed: counters.totals_overflowed,
            shapes_lost: counters.shapes_lost,
        })
    }

    /// Calls `each` with every total and every failure of living processes, and those that ended a moment ago.
    ///
    /// # Errors
    /// A table cannot be read.
    pub fn read_counts(
        &self,
        total: impl FnMut(wire::TotalKey, wire::Total),
        failure: impl FnMut(wire::FailureKey, u64),
    ) -> Result<()> {
        self.each(Table::Totals, total)?;
        self.each(Table::Failures, failure)
    }

    /// Takes the totals of processes that have ended out of the tables.
    ///
    /// # Errors
    /// A table cannot be read.
    pub fn take_ended(&self, ended: &dyn Fn(u32) -> bool) -> Result<Snapshot> {
        let totals = self.take(Table::Totals, |key: &wire::TotalKey| ended(key.tgid))?;
        let named = |(key, _): &&(wire::TotalKey, wire::Total)| key.variant >= wire::KERNEL_FIRST_ID;
        self.free_kernel_totals(totals.iter().filter(named).count() as u64);
        Ok(Snapshot {
            totals,
            failures: self.take(Table::Failures, |key: &wire::FailureKey| ended(key.tgid))?,
            aggregates: self.take_aggregates(ended)?,
            ..Snapshot::default()
        })
    }

    /// Takes the shapes and streams of launches by processes that have ended out of the tables, and forgets which handles
    /// of theirs stood for which kernels.
    ///
    /// # Errors
    /// A table cannot be read.
    pub fn take_launched(&self, ended: &dyn Fn(u32) -> bool) -> Result<Launched> {
        let shapes = self.take(Table::Shapes, |key: &wire::ShapeKey| ended(key.tgid))?;
        let known = self.take_by(Table::Kernels, |_: &wire::KernelKey, known: &wire::KnownKernel| {
            ended(known.tgid)
        })?;
        self.take_by(Table::NamedHandles, |_: &wire::KernelKey, named: &wire::NamedHandle| {
            ended(named.tgid)
        })?;
        Ok(Launched::of(shapes, &known))
    }

    fn launched(&self) -> Result<Launched> {
        let kernels: Vec<(wire::KernelKey, wire::KnownKernel)> = self.entries(Table::Kernels)?;
        Ok(Launched::of(self.entries(Table::Shapes)?, &kernels))
    }

    /// What was put into the streams of all processes.
    ///
    /// # Errors
    /// The table cannot be read.
    pub fn lanes(&self) -> Result<Vec<(wire::LaneKey, wire::Lane)>> {
        self.entries(Table::Lanes)
    }

    /// Takes the streams of a process that has ended out of its table.
    ///
    /// # Errors
    /// The table cannot be read.
    pub fn take_lanes(&self, tgid: u32) -> Result<Vec<(wire::LaneKey, wire::Lane)>> {
        self.take(Table::Lanes, |key: &wire::LaneKey| key.tgid == tgid)
    }

    /// Where a process runs whose notice had this key: for [`wire::cgroups`].
    pub fn place(&self, key: u64) -> Option<Vec<u8>> {
        (key != 0).then(|| self.look_up(Table::Places, &key.to_ne_bytes()))?
    }

    /// What is known at this moment of the calls of a process, and of those that share its place.
    pub fn flow(&self, tgid: u32) -> Option<wire::Flow> {
        let slot = tgid.checked_rem(self.slots(Table::Flows))?;
        wire::Flow::parse(&self.look_up(Table::Flows, &slot.to_ne_bytes())?)
    }

    /// Work calls that found their ring full, by process.
    ///
    /// # Errors
    /// The table cannot be read.
    pub fn work_losses(&self) -> Result<Vec<(u32, wire::WorkLoss)>> {
        self.entries(Table::WorkLosses)
    }

    /// Forgets the losses of an ended process, whose number may be given to another.
    pub fn forget_work_loss(&self, tgid: u32) {
        // most have none
        let _ = self.delete(Table::WorkLosses, &tgid.to_ne_bytes());
    }

    /// Memory calls that found their ring full, by process.
    ///
    /// # Errors
    /// The table cannot be read.
    pub fn memory_losses(&self) -> Result<Vec<(u32, wire::MemoryLoss)>> {
        self.entries(Table::MemoryLosses)
    }

    /// Forgets the losses of an ended process, whose number may be given to another.
    pub fn forget_memory_loss(&self, tgid: u32) {
        // most have none
        let _ = self.delete(Table::MemoryLosses, &tgid.to_ne_bytes());
    }

    /// What the first `rows` rows have counted beside totals.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn row_counters(&self, rows: usize) -> Result<Vec<wire::RowCounter>> {
        self.first_counters(rows.min(self.rows()) as u32)
    }

    /// What each function's calls have spent in system calls on the driver's devices.
    ///
    /// # Errors
    /// The table cannot be read.
    pub fn driver_shares(&self) -> Result<Vec<(wire::ShareKey, wire::DriverShare)>> {
        self.entries(Table::DriverShares)
    }

    /// Takes the same of processes that have ended out of its table.
    ///
    /// # Errors
    /// The table cannot be read.
    pub fn take_driver_shares(&self, ended: &dyn Fn(u32) -> bool) -> Result<Vec<(wire::ShareKey, wire::DriverShare)>> {
        self.take(Table::DriverShares, |key: &wire::ShareKey| ended(key.tgid))
    }

    /// Sets what row `row` captures; takes effect at its next call.
    ///
    /// # Errors
    /// It cannot be stored.
    pub fn set_spec(&self, row: u32, spec: &wire::Spec) -> Result<()> {
        self.store(Table::Specs, &row.to_ne_bytes(), bytes_of(spec))
            .with_context(|| format!("failed to store the capture rule of row {row}"))
    }

    /// Says where the arguments of static probe `number` lie.
    pub(crate) fn set_site(&self, number: u32, site: &wire::ProbeSite) -> Result<()> {
        self.store(Table::ProbeSites, &number.to_ne_bytes(), bytes_of(site))
            .with_context(|| format!("failed to store the places of static probe {number}"))
    }

    /// Says where the arguments of row of the kernel `number` lie, and which calls are meant.
    pub(crate) fn set_kernel_site(&self, number: u32, site: &wire::KernelSite) -> Result<()> {
        self.store(Table::KernelSites, &number.to_ne_bytes(), bytes_of(site))
            .with_context(|| format!("failed to store where arguments lie in the kernel ({number})"))
    }

    /// Selects process `tgid` (and, when forks are followed, its children from now on).
    ///
    /// # Errors
    /// There are too many.
    pub fn add_target(&self, tgid: u32) -> Result<()> {
        self.store(Table::Targets, &tgid.to_ne_bytes(), &1u32.to_ne_bytes())
            .with_context(|| format!("failed to select process {tgid}"))
    }

    /// Whether process `tgid` lives and is one of those that are selected.
    #[must_use]
    pub fn is_target(&self, tgid: u32) -> bool {
        self.look_up(Table::Targets, &tgid.to_ne_bytes()).is_some()
    }

    /// All entries of a table.
    pub(super) fn entries<K: Plain, V: Plain>(&self, table: Table) -> Result<Vec<(K, V)>> {
        let mut found = Vec::new();
        self.each(table, |key, value| found.push((key, value)))?;
        Ok(found)
    }

    fn each<K: Plain, V: Plain>(&self, table: Table, mut each: impl FnMut(K, V)) -> Result<()> {
        let mut is_foreign = false;
        self.read(table, &mut |key, value| match value_of(key).zip(value_of(value)) {
            Some((key, value)) => each(key, value),
            None => is_foreign = true,
        })?;
        match is_foreign {
            true => bail!("failed to read the table {table:?}: it holds something else"),
            false => Ok(()),
        }
    }

    /// Takes the entries out of a table whose keys `is_meant`.
    pub(super) fn take<K: Plain, V: Plain>(&self, table: Table, is_meant: impl Fn(&K) -> bool) -> Result<Vec<(K, V)>> {
        self.take_by(table, |key, _| is_meant(key))
    }

    fn take_by<K: Plain, V: Plain>(&self, table: Table, is_meant: impl Fn(&K, &V) -> bool) -> Result<Vec<(K, V)>> {
        let mut taken = Vec::new();
        self.each(table, |key, value| {
            if is_meant(&key, &value) {
                taken.push((key, value));
            }
        })?;
        for (key, _) in &taken {
            self.delete(table, bytes_of(key))
                .with_context(|| format!("failed to drop what the table {table:?} has of an ended process"))?;
        }
        Ok(taken)
    }
}
