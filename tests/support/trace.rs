//! What gpuscope wrote: its JSON lines, its summary, its messages.

use super::ledger::{Counts, Ledger};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitStatus;
use std::sync::Arc;
use tempfile::TempDir;

/// A run of gpuscope that has ended.
pub struct Trace {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    /// The JSON lines; empty where it wrote none.
    pub records: Vec<Value>,
    /// What the simulated libraries did in the command that it started.
    pub ledger: Ledger,
    folder: Arc<TempDir>,
}

impl Trace {
    pub(super) fn read(status: ExitStatus, stdout: String, stderr: String, folder: Arc<TempDir>) -> Trace {
        let lines = std::fs::read(folder.path().join("lines.jsonl")).unwrap_or_default();
        Trace {
            status,
            stdout,
            stderr,
            records: records(&lines),
            ledger: Ledger::read(&folder.path().join("ledger")),
            folder,
        }
    }

    /// The same, with JSON lines that went elsewhere.
    pub fn with_lines(self, lines: &[u8]) -> Trace {
        let records = records(lines);
        Trace { records, ..self }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The exit status; fails the test if a signal ended it.
    pub fn code(&self) -> i32 {
        self.status
            .code()
            .unwrap_or_else(|| panic!("{}\n{}", self.status, self.stderr))
    }

    /// The process that takes probes away after gpuscope, where it says that one does.
    pub fn remover(&self) -> Option<u32> {
        let (_, behind) = self.stderr.split_once("takes probes away one at a time: process ")?;
        behind.split(' ').next()?.parse().ok()
    }

    /// Fails the test unless gpuscope and its command ended well.
    pub fn ok(self) -> Trace {
        assert_eq!(self.code(), 0, "{}", self.stderr);
        self
    }

    /// The last record.
    pub fn summary(&self) -> &Value {
        let last = self.records.last();
        let summary = last.filter(|last| last["type"] == "summary");
        summary.unwrap_or_else(|| panic!("the last record is no summary: {last:?}\n{}", self.stderr))
    }

    /// Records of calls.
    pub fn calls(&self) -> impl Iterator<Item = &Value> {
        self.of_type("userspace")
    }

    pub fn of_type<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.records.iter().filter(move |record| record["type"] == kind)
    }

    /// Records of calls of one function.
    pub fn calls_of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Value> {
        self.calls().filter(move |record| record["name"] == name)
    }

    /// Calls written, by layer and function, of the processes in `pids`.
    pub fn written_by(&self, pids: &BTreeSet<u64>) -> Counts {
        let mut counts = Counts::new();
        for call in self.calls().filter(|call| pids.contains(&number(call, "pid"))) {
            *counts.entry((text(call, "layer"), text(call, "name"))).or_default() += 1;
        }
        counts
    }

    /// Calls written, by layer and function.
    pub fn written(&self) -> Counts {
        self.written_by(&self.calls().map(|call| number(call, "pid")).collect())
    }

    /// A number of each function in the summary, where it is not 0.
    pub fn totals(&self, field: &str) -> Counts {
        // seen where a test fails: what was missed, gpuscope may have said
        println!("said to be unseen: {:#?}", self.summary()["unseen"]);
        let functions = self.summary()["functions"].as_array().expect("functions");
        let total = |function: &Value| {
            let key = (text(function, "layer"), text(function, "name"));
            (key, number(function, field))
        };
        functions.iter().map(total).filter(|(_, count)| *count > 0).collect()
    }

    /// Calls that were entered, returned or not.
    pub fn entered(&self) -> Counts {
        let mut counts = self.totals("calls");
        for (key, unfinished) in self.totals("unfinished") {
            *counts.entry(key).or_default() += unfinished;
        }
        counts
    }

    /// Failed calls by function and error code.
    pub fn failures(&self) -> BTreeMap<(String, u64), u64> {
        let failures = self.summary()["failures"].as_array().expect("failures");
        let entry = |failure: &Value| {
            (
                (text(failure, "name"), number(failure, "code")),
                number(failure, "count"),
            )
        };
        failures.iter().map(entry).collect()
    }

    /// What gpuscope says that it has not seen.
    pub fn unseen(&self) -> Vec<String> {
        unseen_of(self.summary())
    }
}

/// The same of a summary, without what no trace from inside sees.
pub fn unseen_of(summary: &Value) -> Vec<String> {
    let unseen = summary["unseen"].as_array().expect("unseen");
    let lines = unseen.iter().map(|line| line.as_str().expect("text").to_owned());
    lines.filter(|line| !line.starts_with("from inside: ")).collect()
}

fn records(lines: &[u8]) -> Vec<Value> {
    let parse = |line: &[u8]| {
        serde_json::from_slice(line).unwrap_or_else(|error| panic!("{error} in {}", String::from_utf8_lossy(line)))
    };
    let lines = lines.split_inclusive(|byte| *byte == b'\n');
    lines
        .inspect(|line| assert!(line.ends_with(b"\n"), "cut: {}", String::from_utf8_lossy(line)))
        .map(parse)
        .collect()
}

/// A field that must be there.
pub fn text(record: &Value, field: &str) -> String {
    let value = record[field].as_str();
    value
        .unwrap_or_else(|| panic!("no text {field:?} in {record}"))
        .to_owned()
}

/// A field that must be there.
pub fn number(record: &Value, field: &str) -> u64 {
    record[field]
        .as_u64()
        .unwrap_or_else(|| panic!("no number {field:?} in {record}"))
}
