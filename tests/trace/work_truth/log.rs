//! The logs of work that the simulated driver writes, one for each process: what really ran, and when.

use super::support::Gpuscope;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Where processes keep their logs.
pub struct Logs(TempDir);

/// What one process did. Times are CLOCK_MONOTONIC ns.
#[derive(Debug, Default)]
pub struct Log {
    pub operations: Vec<Operation>,
    pub waits: Vec<Wait>,
    pub measured: Vec<Measured>,
}

/// What a device did for a call.
#[derive(Debug, Clone, Deserialize)]
pub struct Operation {
    pub tid: u64,
    pub api: String,
    pub op: String,
    pub name: Option<String>,
    pub bytes: u64,
    pub direction: Option<String>,
    pub to: Option<String>,
    pub from: Option<String>,
    pub blocking: bool,
    pub context: u64,
    pub stream: u64,
    pub start_ns: u64,
    pub end_ns: u64,
    pub submitted_ns: u64,
    pub graph: Option<u64>,
}

/// A call that waited.
#[derive(Debug, Clone, Deserialize)]
pub struct Wait {
    #[serde(rename = "sync")]
    pub function: String,
    pub stream: Option<u64>,
    pub entered_ns: u64,
    pub returned_ns: u64,
}

/// Time between events, as the driver told the program.
#[derive(Debug, Clone, Deserialize)]
pub struct Measured {
    pub elapsed_ms: f32,
}

impl Logs {
    pub fn new() -> Logs {
        Logs(tempfile::tempdir().expect("a folder"))
    }

    /// What to set `GPUSIM_WORK` to.
    pub fn setting(&self) -> PathBuf {
        self.0.path().join("%p")
    }

    /// Has the command of a run keep logs here.
    pub fn of(&self, gpuscope: Gpuscope) -> Gpuscope {
        gpuscope.env("GPUSIM_WORK", self.setting())
    }

    /// What they say, by process.
    pub fn read(&self) -> BTreeMap<u64, Log> {
        let files = std::fs::read_dir(self.0.path()).expect("a folder").flatten();
        let log = |path: &Path| (pid_of(path), Log::read(path));
        files.map(|entry| log(&entry.path())).collect()
    }

    /// The log of the only process that keeps one here.
    pub fn only(&self) -> Log {
        let logs = self.read();
        assert_eq!(logs.len(), 1, "{:?}", logs.keys());
        logs.into_values().next().expect("one")
    }

    /// Bytes of all logs until now: they grow as work is done.
    pub fn written_bytes(&self) -> u64 {
        self.lengths().sum()
    }

    /// How many programs have done any work.
    pub fn begun(&self) -> usize {
        self.lengths().filter(|bytes| *bytes > 0).count()
    }

    fn lengths(&self) -> impl Iterator<Item = u64> {
        let files = std::fs::read_dir(self.0.path()).expect("a folder").flatten();
        files.flat_map(|entry| entry.metadata()).map(|file| file.len())
    }
}

fn pid_of(path: &Path) -> u64 {
    let name = path.file_name().and_then(|name| name.to_str());
    name.expect("a name").parse().expect("a process id")
}

fn take<T: for<'a> Deserialize<'a>>(value: Value) -> T {
    T::deserialize(&value).unwrap_or_else(|error| panic!("{error} in {value}"))
}

impl Log {
    fn read(path: &Path) -> Log {
        let text = std::fs::read_to_string(path).expect("a log");
        let mut log = Log::default();
        for line in text.lines() {
            let entry: Value = line.parse().expect("a line of a log");
            if entry["op"].is_string() {
                log.operations.push(take(entry));
            } else if entry["sync"].is_string() {
                log.waits.push(take(entry));
            } else if !entry["elapsed_ms"].is_null() {
                log.measured.push(take(entry));
            }
        }
        log
    }

    /// Copies that calls made; those of graphs are not among them.
    pub fn copies(&self) -> impl Iterator<Item = &Operation> {
        let is_called = |operation: &&Operation| operation.op == "copy" && operation.graph.is_none();
        self.operations.iter().filter(is_called)
    }

    /// The process was alive then.
    pub fn last_call_ns(&self) -> u64 {
        let submitted = self.operations.iter().map(|operation| operation.submitted_ns);
        let returned = self.waits.iter().map(|wait| wait.returned_ns);
        submitted.chain(returned).max().expect("work")
    }
}

impl Operation {
    /// What tells the calls of a process apart.
    pub fn call(&self) -> (u64, u64) {
        (self.tid, self.submitted_ns)
    }
}
