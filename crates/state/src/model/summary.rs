//! The exact totals of a run: the kernel's counting plane, grouped by layer and function.
//!
//! Never computed from events. Layers are never added to each other.

use super::cost::Cost;
use super::quantile::quantile_ns;
use super::totals::Spent;
use crate::capture::direction;
use crate::catalog::{Catalog, Class, CopyKind, Layer, Role};
use crate::wire::{DriverShare, FailureKey, RowCounter, ShareKey, Total, TotalKey};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Totals of one function over all processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    pub layer: Layer,
    /// Name of the layer: that of the library.
    pub label: String,
    pub name: String,
    pub class: Class,
    /// Calls that returned (or, for functions seen at entry only, were entered).
    pub calls: u64,
    pub errors: u64,
    pub total_ns: u64,
    pub max_ns: u64,
    pub bytes: u64,
    /// From a histogram with four buckets per power of two: at most 25 % too high.
    pub p50_ns: u64,
    pub p99_ns: u64,
    /// Entered and not returned to their caller: process end, exec, longjmp, or under way at the end.
    pub unfinished: u64,
    /// Events that did not fit into the ring.
    pub lost: u64,
    /// Counted without arguments: nested too deeply.
    pub without_args: u64,
    /// False: seen at entry only, so there is no time and no result.
    pub timed: bool,
    /// What of it was spent in system calls on the driver's devices; `None`: that was not followed.
    pub driver: Option<DriverShare>,
    /// Of the time: while threads stood still for probes in what these calls had loaded.
    pub standstill_ns: u64,
}

/// Failed calls of one function with one result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub function: String,
    pub error: String,
    pub code: i32,
    pub count: u64,
}

/// Copies in one direction, in one layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copies {
    pub layer: String,
    /// `None`: by address, not decided by the call's arguments.
    pub direction: Option<CopyKind>,
    pub calls: u64,
    pub bytes: u64,
}

/// Calls that lie across an end of the time in which calls count: they are not among the calls of a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnderWay {
    /// Name of the layer: that of the library.
    pub layer: String,
    /// Entered before that time, after they were hooked, and returned within it.
    pub at_begin: u64,
    /// Entered within it, and not returned by its end.
    pub at_end: u64,
}

/// Which engine has taken calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// `inside` or `kernel`, as for `--engine`.
    pub engine: &'static str,
    /// What follows "because".
    pub why: String,
}

/// Everything that the end of a run reports.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    pub seconds: f64,
    pub functions: Vec<Function>,
    pub failures: Vec<Failure>,
    pub copies: Vec<Copies>,
    pub lost_events: u64,
    pub malformed: u64,
    pub processes: usize,
    /// What was not seen, and why.
    pub unseen: Vec<String>,
    /// Functions that were counted and not shown as events.
    pub counted_only: Vec<String>,
    pub attached: Vec<String>,
    pub cost: Cost,
    pub tier: String,
    /// `None`: nobody has chosen.
    pub engine: Option<Chosen>,
    pub memory: super::memory::Report,
    /// The kernel driver's objects; `None`: its calls were not followed.
    pub driver: Option<super::driver::Report>,
    /// By process.
    pub work: Vec<super::work::ProcessReport>,
    /// Launches by kernel, most first.
    pub kernels: Vec<super::launches::Kernel>,
    /// Names of kernels as in the source, instead of short ones.
    pub full_names: bool,
    /// What the driver reported of faults of GPUs, in the order in which they came.
    pub xids: Vec<super::xid::Faults>,
    /// Reports of yet other kinds than those.
    pub more_xids: u64,
    /// What rows of users' files have summed up.
    pub aggregates: Vec<super::aggregate::Report>,
    pub totals: super::totals::Totals,
    /// By layer; those without such calls are left out.
    pub under_way: Vec<UnderWay>,
    /// Calls that had been open for a second or more, and have not returned.
    pub open: Vec<super::open::OpenCall>,
    /// Where threads were outside CUDA; `None`: not sampled.
    pub outside: Option<super::outside::Outside>,
    /// What devices have executed; `None`: not asked for.
    pub gpu: Option<super::activity::Report>,
    /// What is wrong.
    pub findings: super::finding::Diagnosis,
    /// The iterations of its programs, where it was looked for what is wrong.
    pub steps: super::step::Told,
}

/// Adds up the counting plane; see [`Tally::functions`].
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// By row and, of the kernel driver's calls, variant.
    rows: BTreeMap<(u32, u64), RowTotal>,
    shares: BTreeMap<u32, DriverShare>,
    failures: BTreeMap<(u32, i32), u64>,
    copies: BTreeMap<(Layer, Option<CopyKind>), (u64, u64)>,
    /// Those that made a call.
    processes: BTreeSet<u32>,
    /// Those that called CUDA.
    cuda: BTreeSet<u32>,
    /// Calls seen by probes, by process.
    probed: HashMap<u32, u64>,
}

#[derive(Debug, Clone)]
struct RowTotal {
    total: Total,
}

impl Tally {
    /// Adds one entry of the counting plane.
    pub fn add(&mut self, catalog: &Catalog, key: &TotalKey, total: &Total) {
        self.processes.insert(key.tgid);
        let Some(row) = catalog.rows.get(key.row as usize) else {
            return;
        };
        let library = catalog.library_with(row.library);
        if library.is_some_and(|library| library.layer != Layer::Kernel) {
            *self.probed.entry(key.tgid).or_default() += total.calls();
        }
        if library.is_some_and(|library| matches!(library.layer, Layer::Runtime | Layer::Driver)) {
            self.cuda.insert(key.tgid);
        }
        if let (Class::Copy, Some(library)) = (row.class, library) {
            let copies = self
                .copies
                .entry((library.layer, direction(row, key.variant)))
                .or_default();
            copies.0 += total.calls().saturating_sub(total.errors);
            copies.1 += total.bytes;
        }
        // a launch has threads in their place
        let bytes = if row.launch.as_ref().is_some_and(|launch| launch.role == Role::Launch) {
            0
        } else {
            total.bytes
        };
        let total = Total { bytes, ..*total };
        let told_apart = catalog.driver.is_some_and(|driver| driver.contains(key.row));
        self.rows
            .entry((key.row, if told_apart { key.variant } else { 0 }))
            .and_modify(|sum| sum.total.add(&total))
            .or_insert(RowTotal { total });
    }

    /// Adds one entry of the failure table.
    pub fn add_failure(&mut self, key: &FailureKey, count: u64) {
        *self.failures.entry((key.row, key.code)).or_default() += count;
    }

    /// Whether process `tgid` made a call.
    pub fn knows(&self, tgid: u32) -> bool {
        self.processes.contains(&tgid)
    }

    /// The process with most calls that probes have seen, and its share of all of them.
    pub fn busiest(&self) -> (u32, f64) {
        let all: u64 = self.probed.values().sum();
        let busiest = self.probed.iter().max_by_key(|(tgid, calls)| (**calls, **tgid));
        busiest.map_or((0, 1.0), |(tgid, calls)| (*tgid, *calls as f64 / all.max(1) as f64))
    }

    /// Adds what calls of a function have spent in the kernel driver.
    pub fn add_share(&mut self, key: &ShareKey, share: DriverShare) {
        let sum = self.shares.entry(key.row).or_default();
        sum.calls += share.calls;
        sum.ns += share.ns;
    }

    /// What ioctls of the kernel driver took; `None`: they were not followed.
    pub fn ioctls(&self, catalog: &Catalog) -> Option<Spent> {
        let driver = catalog.driver?;
        let ioctls = self.rows.iter().filter(|((row, _), _)| driver.is_ioctl(*row));
        let sum = ioctls.fold(Spent::default(), |sum, (_, row)| Spent {
            calls: sum.calls + row.total.calls(),
            ns: sum.ns + row.total.total_ns,
        });
        Some(sum)
    }

    /// Processes that made at least one call of CUDA.
    pub fn processes(&self) -> usize {
        self.cuda.len()
    }

    /// Totals by function, busiest layer order: runtime, driver, custom; most time first.
    /// `standstill`: ns of a row.
    pub fn functions(
        &self,
        catalog: &Catalog,
        counters: &[RowCounter],
        timed: &dyn Fn(u32) -> bool,
        standstill: &dyn Fn(u32) -> u64,
    ) -> Vec<Function> {
        let used = counters.iter().enumerate().filter(|(_, counter)| counter.entered > 0);
        let mut functions: Vec<Function> = Vec::new();
        for (row, counter) in used {
            let mut of_row = self.functions_of(catalog, row as u32, counter, timed(row as u32));
            if let Some(first) = of_row.first_mut() {
                first.standstill_ns = standstill(row as u32);
            }
            functions.append(&mut of_row);
        }
        functions.sort_by(|a, b| (a.layer, b.total_ns, b.calls, &a.name).cmp(&(b.layer, a.total_ns, a.calls, &b.name)));
        functions
    }

    /// Calls across the ends of the time in which calls count, by layer.
    pub fn under_way(&self, catalog: &Catalog, counters: &[RowCounter], functions: &[Function]) -> Vec<UnderWay> {
        let mut layers: BTreeMap<(Layer, &str), (u64, u64)> = BTreeMap::new();
        for (row, counter) in catalog.rows.iter().zip(counters) {
            if let Some(library) = catalog.library_with(row.library).filter(|_| counter.before > 0) {
                layers.entry((library.layer, &library.name)).or_default().0 += counter.before;
            }
        }
        for function in functions.iter().filter(|function| function.unfinished > 0) {
            layers.entry((function.layer, &function.label)).or_default().1 += function.unfinished;
        }
        let under_way = |((_, layer), (at_begin, at_end)): ((Layer, &str), (u64, u64))| UnderWay {
            layer: layer.to_owned(),
            at_begin,
            at_end,
        };
        layers.into_iter().map(under_way).collect()
    }

    /// One for each variant; the first of them has what is known of the row alone.
    fn functions_of(&self, catalog: &Catalog, row: u32, counter: &RowCounter, timed: bool) -> Vec<Function> {
        let totals: Vec<(u64, &Total)> = self
            .rows
            .range((row, 0)..=(row, u64::MAX))
            .map(|((_, variant), sum)| (*variant, &sum.total))
            .collect();
        let others: u64 = totals.iter().skip(1).map(|(_, total)| total.calls()).sum();
        let first = RowCounter {
            entered: counter.entered.saturating_sub(others),
            ..*counter
        };
        let rest = RowCounter::default();
        let counters = std::iter::once(&first).chain(std::iter::repeat(&rest));
        let none = (0, &Total::NONE);
        let totals = if totals.is_empty() { vec![none] } else { totals };
        let functions = totals.into_iter().zip(counters);
        functions
            .filter_map(|((variant, total), counter)| self.function(catalog, (row, variant), total, counter, timed))
            .collect()
    }

    fn function(
        &self,
        catalog: &Catalog,
        (row, variant): (u32, u64),
        total: &Total,
        counter: &RowCounter,
        timed: bool,
    ) -> Option<Function> {
        let known = catalog.rows.get(row as usize)?;
        let library = catalog.library_with(known.library)?;
        let calls = total.calls();
        let quantile = |share: f64| quantile_ns(total, share);
        Some(Function {
            layer: library.layer,
            label: library.name.clone(),
            name: catalog.name_of(row, variant).into_owned(),
            class: known.class,
            calls,
            errors: total.errors,
            total_ns: total.total_ns,
            max_ns: total.max_ns,
            bytes: total.bytes,
            p50_ns: quantile(0.5),
            p99_ns: quantile(0.99),
            unfinished: counter.entered.saturating_sub(calls),
            lost: counter.lost,
            without_args: counter.no_frame,
            timed,
            driver: self.shares.get(&row).copied(),
            standstill_ns: 0,
        })
    }

    /// Failed calls by function and error, most frequent first.
    pub fn failures(&self, catalog: &Catalog) -> Vec<Failure> {
        let mut failures: Vec<Failure> = self
            .failures
            .iter()
            .filter_map(|(&(row, code), &count)| {
                let row = catalog.rows.get(row as usize)?;
                let error = catalog
                    .error_name(row, i64::from(code))
                    .map_or_else(|| code.to_string(), str::to_owned);
                Some(Failure {
                    function: row.symbol.clone(),
                    error,
                    code,
                    count,
                })
            })
            .collect();
        failures.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.function.cmp(&b.function)));
        failures
    }

    /// Successful copies by layer and direction.
    pub fn copies(&self, catalog: &Catalog) -> Vec<Copies> {
        let label = |layer: Layer| {
            catalog
                .libraries
                .iter()
                .find(|library| library.layer == layer)
                .map(|library| library.name.clone())
        };
        let kept = self.copies.iter().filter(|(_, (calls, _))| *calls > 0);
        kept.map(|(&(layer, direction), &(calls, bytes))| Copies {
            layer: label(layer).unwrap_or_default(),
            direction,
            calls,
            bytes,
        })
        .collect()
    }
}

#[cfg(test)]
#[path = "summary_tests.rs"]
mod tests;
