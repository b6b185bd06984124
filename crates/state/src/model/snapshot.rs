//! What is exactly true of a run up to its end, as its summary says it: what a gate judges and a report shows.
//!
//! Read from the summary's own JSON (docs/output.md), by the run itself and by whoever has its recording: both then go
//! by the same numbers. Plain data. Of a recording without a summary the report fills it from rows.

pub mod executed;
mod figure;
mod work;

pub use figure::{Figure, View};
pub use work::{Copies, Gpu, Graphs, Work};

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// What is exactly true of a run up to its end. What a summary does not have is empty.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Snapshot {
    pub functions: Vec<Function>,
    /// Most first.
    pub failures: Vec<Failure>,
    pub kernels: Vec<Kernel>,
    /// What processes hold; `None`: it cannot be told.
    pub memory: Option<Vec<Holder>>,
    pub work: Vec<Work>,
    /// What devices have executed; `None`: that was not asked.
    pub gpu: Option<executed::Executed>,
    pub xids: Vec<Xid>,
    /// Faults of yet other kinds.
    pub more_xids: u64,
    /// `None`: it was not looked for what is wrong.
    pub findings: Option<Vec<Finding>>,
    /// Why not.
    pub no_findings: Option<String>,
    /// What was not traced, as sentences.
    pub unseen: Vec<String>,
    /// Functions whose calls have no rows.
    pub counted_only: Vec<String>,
    /// What took calls; `None`: it is not said.
    pub engine: Option<Engine>,
    /// What tracing cost, as docs/output.md has it; null: that is not known.
    pub cost: Value,
}

/// What took calls.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Engine {
    /// `inside` or `kernel`.
    pub name: String,
}

/// Totals of one function, over all processes.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Function {
    /// Label of the library.
    pub layer: String,
    pub name: String,
    pub category: String,
    pub calls: u64,
    /// `None`: its return is not hooked.
    pub errors: Option<u64>,
    /// Entered, and not returned to their caller.
    pub unfinished: u64,
    pub bytes: u64,
    #[serde(rename = "total_us", deserialize_with = "optional_ns")]
    pub total_ns: Option<u64>,
    #[serde(rename = "max_us", deserialize_with = "optional_ns")]
    pub max_ns: Option<u64>,
    #[serde(rename = "p50_us", deserialize_with = "optional_ns")]
    pub p50_ns: Option<u64>,
    #[serde(rename = "p99_us", deserialize_with = "optional_ns")]
    pub p99_ns: Option<u64>,
    /// In calls of the kernel driver; `None`: these were not followed.
    #[serde(rename = "driver_us", deserialize_with = "optional_ns")]
    pub driver_ns: Option<u64>,
}

/// Calls of one function that failed in one way.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Failure {
    pub name: String,
    pub error: String,
    pub count: u64,
}

/// Launches of one kernel.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Kernel {
    /// `None`: it has none; see `reason`.
    #[serde(rename = "kernel")]
    pub name: Option<String>,
    pub reason: Option<String>,
    pub launches: u64,
    pub failed: u64,
    /// Of the launches, those that only went into a graph.
    pub captured: u64,
    /// Runs by launches of graphs, beside the launches.
    pub in_graphs: u64,
    #[serde(rename = "total_us", deserialize_with = "optional_ns")]
    pub total_ns: Option<u64>,
    #[serde(rename = "max_us", deserialize_with = "optional_ns")]
    pub max_ns: Option<u64>,
    #[serde(rename = "p50_us", deserialize_with = "optional_ns")]
    pub p50_ns: Option<u64>,
    #[serde(rename = "p99_us", deserialize_with = "optional_ns")]
    pub p99_ns: Option<u64>,
    /// Most frequent first.
    pub shapes: Vec<Shape>,
}

/// Grid, block and dynamic shared memory of launches.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Shape {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared_bytes: u64,
}

/// What one process holds, of devices and in pinned host memory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Holder {
    pub pid: u32,
    /// Name of its main thread; empty: not known.
    pub comm: String,
    /// It is what it held at its end.
    pub ended: bool,
    /// It ran before it was watched: what it held then is not known, and is in no number.
    pub late: bool,
    pub held_bytes: u64,
}

/// Faults of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Xid {
    /// `Xid 31`.
    pub name: String,
    pub pci: String,
    pub pid: Option<u32>,
    pub count: u64,
}

/// Something that is wrong.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, serde::Serialize)]
#[serde(default)]
pub struct Finding {
    pub rule: String,
    pub title: String,
    pub what: String,
    pub cost_ns: u64,
    /// Of the steady part of the run, at most 1.
    pub share: f64,
    pub grave: bool,
    /// As `model::work::Certainty` names it.
    pub certainty: String,
    /// The line of the program that it is about.
    #[serde(rename = "where")]
    pub place: Option<String>,
    #[serde(rename = "do")]
    pub cure: String,
}

impl Snapshot {
    /// What a summary says. Where memory was not followed it says nothing of who took any, and has no holders.
    ///
    /// # Errors
    /// It is none.
    pub fn read(summary: &Value) -> Result<Snapshot, serde_json::Error> {
        let mut read = Snapshot::deserialize(summary)?;
        let is_followed = summary["totals"]
            .get("device_memory")
            .is_none_or(|taken| !taken.is_null());
        read.memory.take_if(|holders| !is_followed && holders.is_empty());
        Ok(read)
    }

    /// What graphs did, of all processes.
    #[must_use]
    pub fn graphs(&self) -> Graphs {
        self.work
            .iter()
            .fold(Graphs::default(), |sum, work| sum.and(&work.graphs))
    }
}

/// Microseconds with three decimals.
fn optional_ns<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let us: Option<f64> = Option::deserialize(from)?;
    Ok(us.map(nanoseconds))
}

fn ns<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    optional_ns(from).map(Option::unwrap_or_default)
}

fn nanoseconds(us: f64) -> u64 {
    (us * 1e3).round() as u64
}
