//! What a recording says: totals, what was slow, memory and work over time, and what is wrong.
//!
//! [`Gatherer`] takes rows, whether they come from a file or from a trace that runs, and keeps sums of bounded size;
//! [`Report`] is plain data; [`text`], [`json`], [`markdown`] and [`html`] write it, [`diff`] compares two. Diagnoses
//! are `findings`' business, files `trace`'s.

mod bins;
mod chapters;
mod clip;
mod copies;
pub mod diff;
mod driver;
mod executed;
mod failures;
mod functions;
pub mod gate;
mod gather;
mod histogram;
pub mod html;
mod idle;
pub mod json;
mod kernels;
pub(crate) mod live;
pub mod load;
pub mod markdown;
mod memory;
#[cfg(test)]
mod pages_tests;
mod processes;
mod ranges;
mod rates;
mod short;
pub(crate) mod site;
mod slowest;
mod source;
mod steps;
#[cfg(test)]
mod steps_tests;
pub mod text;
mod texts;
mod waits;
pub(crate) mod words;

pub(crate) use copies::Copies;
pub(crate) use driver::DriverShare;
pub(crate) use failures::{Failure, Losses, Xid};
pub(crate) use functions::{Function, Layer};
pub(crate) use gather::Gatherer;
pub(crate) use idle::{Gap, Idle, Meanwhile, at_least};
pub(crate) use kernels::Kernel;
pub use live::Live;
pub use load::{Collector, load};
pub(crate) use memory::{Held, Memory, MemorySite, Point, since_words};
pub(crate) use processes::{Process, Thread};
pub(crate) use ranges::Ranges;
pub(crate) use rates::{DIRECTIONS, Rates, Step};
pub(crate) use slowest::{Slow, Unreturned};
pub use source::{Source, Until};
pub(crate) use steps::Iterations;
pub(crate) use waits::{Hidden, Wait, WaitSite};

use crate::model::finding::{Finding, Run};
use crate::model::outside::Outside;
use crate::model::snapshot::{Figure, Graphs, Snapshot};
use crate::paths::{Tree, Weight};
use std::collections::HashMap;

/// Asked for each row; what comes from the traced side cannot foresee where it lies in it.
type Map<K, V> = HashMap<K, V, ahash::RandomState>;

/// Of numbers that a file may have been made to overflow with.
pub(super) fn sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

/// Everything that outputs say.
#[derive(Debug, Clone)]
pub struct Report {
    pub source: Source,
    /// What is grave first, then most expensive first.
    pub findings: Vec<Finding>,
    /// Why it was not looked for what is wrong, if it was not.
    pub not_looked_for: Option<String>,
    /// What findings were judged by.
    pub run: Run,
    /// What limits the numbers, as sentences.
    pub notes: Vec<String>,
    /// First and last moment of any call, ns since the start of the trace.
    pub from_ns: i64,
    pub to_ns: i64,
    pub layers: Vec<Layer>,
    /// Slowest first.
    pub slowest: Vec<Slow>,
    /// Calls that were under way at the end.
    pub(crate) unreturned: Unreturned,
    pub memory: Memory,
    pub kernels: Vec<Kernel>,
    pub copies: Vec<Copies>,
    pub waits: Vec<Wait>,
    /// Waits that nobody asked for; some may be among those.
    pub hidden: Vec<Hidden>,
    /// How many calls waited that say so, and by which layer.
    pub wait_calls: Figure,
    pub driver: Option<DriverShare>,
    pub idle: Vec<Idle>,
    /// Where threads that call CUDA were while they were outside of it, by samples; without any it was not sampled.
    pub outside: Outside,
    /// Phases as the program calls them.
    pub ranges: Ranges,
    pub rates: Rates,
    pub failures: Vec<Failure>,
    pub losses: Losses,
    pub processes: Vec<Process>,
    pub xids: Vec<Xid>,
    /// Time by call path: of what devices executed, of waiting, and outside CUDA.
    pub paths: [Tree; Weight::ALL.len()],
    pub steps: Iterations,
    /// What a gate judges: the summary of the run; where there is none, its last snapshot, or else what rows add up to.
    pub totals: Snapshot,
    /// It is the summary, or the last snapshot.
    pub exact: bool,
    /// Where it is a snapshot, what all rows add up to: they know what happened later.
    pub by_rows: Option<Snapshot>,
}

impl Report {
    /// From the first to the last moment of any call, ns.
    #[must_use]
    pub(crate) fn wall_ns(&self) -> u64 {
        self.run.wall_ns
    }

    /// The part of it that totals are of, ns: all, but where they are those of a snapshot.
    #[must_use]
    pub(crate) fn totals_ns(&self) -> u64 {
        let until = self.source.until.map(|until| until.at.saturating_sub(self.from_ns));
        until.map_or(self.wall_ns(), |ns| self.wall_ns().min(ns.max(0).unsigned_abs()))
    }

    /// What findings do not explain, where they were looked for.
    #[must_use]
    pub(crate) fn unexplained(&self) -> Option<String> {
        let looked = self.not_looked_for.is_none();
        looked.then(|| self.run.unexplained(&self.findings)).flatten()
    }

    /// What shares of the time are of, where findings have any that are not of all of it.
    fn shares_of(&self) -> Option<String> {
        self.run.steady_words().filter(|_| !self.findings.is_empty())
    }

    /// Successful launches, of kernels and of graphs.
    #[must_use]
    pub fn launches(&self) -> Figure {
        self.totals.launches()
    }

    /// What graphs did; `None`: rows alone do not say.
    #[must_use]
    pub fn graphs(&self) -> Option<Graphs> {
        self.exact.then(|| self.totals.graphs())
    }

    /// Runs of kernels: launched, and by graphs whose making was seen. `None`: rows alone do not say.
    #[must_use]
    pub(crate) fn kernel_runs(&self) -> Option<u64> {
        let runs = sum(self.kernels.iter().map(Kernel::runs));
        Some(runs).filter(|_| self.exact && !self.kernels.is_empty())
    }

    /// Bytes that were copied.
    #[must_use]
    pub(crate) fn copied_bytes(&self) -> u64 {
        sum(self.copies.iter().map(|copies| copies.bytes))
    }

    /// Time in calls that wait and say so, of all threads together, ns.
    #[must_use]
    pub(crate) fn wait_ns(&self) -> u64 {
        sum(self.waits.iter().map(|wait| wait.total_ns))
    }

    /// The layer that says what happened: the driver, where it is seen at work; else the runtime.
    #[must_use]
    pub(crate) fn cuda(&self) -> Option<&Layer> {
        let named = |name: &str| self.layers.iter().find(|layer| layer.layer == name);
        let driver = named("driver").filter(|layer| layer.functions.iter().any(works));
        driver.or_else(|| named("runtime")).or_else(|| named("driver"))
    }

    /// Time in calls that wait although nobody asked; and whether all of that was waiting. Some may be in
    /// [`Self::wait_ns`], too.
    #[must_use]
    pub(crate) fn hidden_ns(&self) -> (u64, bool) {
        let measured = self.hidden.iter().all(|wait| !wait.at_most);
        (sum(self.hidden.iter().map(|wait| wait.total_ns)), measured)
    }

    /// Calls of CUDA that failed.
    #[must_use]
    pub fn failed(&self) -> Figure {
        self.totals.failed()
    }

    /// What was not traced, as sentences.
    #[must_use]
    pub fn unseen(&self) -> &[String] {
        &self.totals.unseen
    }
}

/// Whether that gives devices work, or waits for it: what any program does that uses them.
fn works(function: &Function) -> bool {
    function.calls > 0 && matches!(function.category, "launch" | "copy" | "sync" | "memory")
}
