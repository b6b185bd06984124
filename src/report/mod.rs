//! What a recording says: totals, what was slow, memory and work over time, and what is wrong.
//!
//! [`Gatherer`] takes rows, whether they come from a file or from a trace that runs, and keeps sums of bounded size;
//! [`Report`] is plain data; [`text`], [`json`], [`markdown`] and [`html`] write it, [`diff`] compares two. Diagnoses
//! are `findings`' business, files `trace`'s.

mod bins;
mod copies;
pub mod demand;
pub mod diff;
mod driver;
mod failures;
mod functions;
mod gather;
mod histogram;
pub mod html;
mod idle;
pub mod json;
mod kernels;
pub mod live;
pub mod load;
pub mod markdown;
mod memory;
mod people;
mod rates;
pub mod site;
mod slowest;
pub mod text;
mod texts;
mod waits;
pub mod words;

pub use copies::Copies;
pub use driver::DriverShare;
pub use failures::{Failure, Losses, Lost, Span, Xid};
pub use functions::{Function, Layer};
pub use gather::{Gatherer, Source};
pub use histogram::Bucket;
pub use idle::{Gap, Idle, Meanwhile};
pub use kernels::Kernel;
pub use live::Live;
pub use load::{Collector, load};
pub use memory::{Held, Memory, MemorySite, Point};
pub use people::{Process, Thread};
pub use rates::{DIRECTIONS, Rates, Step};
pub use slowest::Slow;
pub use waits::{Wait, WaitSite};

use crate::findings::{Finding, Run};
use serde_json::Value;
use std::collections::HashMap;

/// Asked for each row; what comes from the traced side cannot foresee where it lies in it.
type Map<K, V> = HashMap<K, V, ahash::RandomState>;

/// Everything that outputs say.
#[derive(Debug, Clone)]
pub struct Report {
    pub source: Source,
    /// What is grave first, then most expensive first.
    pub findings: Vec<Finding>,
    /// Why it was not looked for what is wrong, if it was not.
    pub untold: Option<String>,
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
    pub memory: Memory,
    pub kernels: Vec<Kernel>,
    pub copies: Vec<Copies>,
    pub waits: Vec<Wait>,
    pub driver: Option<DriverShare>,
    pub idle: Vec<Idle>,
    pub rates: Rates,
    pub failures: Vec<Failure>,
    pub losses: Losses,
    pub processes: Vec<Process>,
    pub xids: Vec<Xid>,
    /// The exact summary of the run, as docs/output.md has it; `None`: the recording was cut off.
    pub exact: Option<Value>,
}

impl Report {
    /// From the first to the last moment of any call, ns.
    #[must_use]
    pub fn wall_ns(&self) -> u64 {
        self.run.wall_ns
    }

    /// Successful launches, of the driver where it is seen.
    #[must_use]
    pub fn launches(&self) -> u64 {
        self.kernels.iter().map(|kernel| kernel.launches).sum()
    }

    /// Bytes that were copied.
    #[must_use]
    pub fn copied_bytes(&self) -> u64 {
        self.copies.iter().map(|copies| copies.bytes).sum()
    }

    /// Time in calls that wait, of all threads together, ns.
    #[must_use]
    pub fn wait_ns(&self) -> u64 {
        self.waits.iter().map(|wait| wait.total_ns).sum()
    }

    /// The layer that says what happened: the driver, where it is seen at work; else the runtime.
    #[must_use]
    pub fn cuda(&self) -> Option<&Layer> {
        let named = |name: &str| self.layers.iter().find(|layer| layer.layer == name);
        let driver = named("driver").filter(|layer| layer.functions.iter().any(works));
        driver.or_else(|| named("runtime")).or_else(|| named("driver"))
    }

    /// Calls of CUDA that failed.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.cuda().map_or(0, |layer| layer.errors)
    }

    /// What was not traced, as sentences.
    #[must_use]
    pub fn unseen(&self) -> Vec<&str> {
        let unseen = self.exact.as_ref().and_then(|exact| exact["unseen"].as_array());
        unseen.into_iter().flatten().filter_map(Value::as_str).collect()
    }
}

/// Whether that gives devices work, or waits for it: what any program does that uses them.
fn works(function: &Function) -> bool {
    function.calls > 0 && matches!(function.category, "launch" | "copy" | "sync" | "memory")
}
