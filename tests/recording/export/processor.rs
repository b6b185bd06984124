//! Perfetto's trace processor.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Calls on tracks of threads, but for those that Chrome's format makes up.
const CALLS: &str = "select s.name, count(*), sum(s.dur) from slice s join thread_track t on s.track_id = t.id \
                     join thread using (utid) where tid < 1073741824 group by s.name";

pub const QUESTIONS: [&str; 7] = [
    CALLS,
    "select count(*) from slice",
    "select count(*) from flow",
    "select count(*) from counter",
    "select count(*) from thread where tid > 0 and tid < 1073741824",
    "select count(*) from process where pid > 0",
    "select name, value from stats where severity in ('error', 'data_loss') and value > 0",
];

/// What it found in a trace.
#[derive(Debug, PartialEq, Eq)]
pub struct Found {
    /// Count and time, ns.
    pub calls: BTreeMap<String, (u64, u64)>,
    pub slices: u64,
    pub arrows: u64,
    pub numbers: u64,
    pub threads: u64,
    pub processes: u64,
    /// What it could not make sense of.
    pub errors: Vec<String>,
}

pub type Row = Vec<serde_json::Value>;

impl Found {
    /// By the answers to `QUESTIONS`.
    pub fn of(answers: Vec<Vec<Row>>) -> Found {
        let mut answers = answers.into_iter();
        let mut next = || answers.next().expect("an answer to each question");
        let calls = next();
        let calls = calls
            .iter()
            .map(|row| (text(&row[0]), (number(&row[1]), number(&row[2]))));
        let calls = calls.collect();
        let mut one = || number(&next()[0][0]);
        Found {
            calls,
            slices: one(),
            arrows: one(),
            numbers: one(),
            threads: one(),
            processes: one(),
            errors: next().iter().map(|row| format!("{row:?}")).collect(),
        }
    }
}

/// Asks about the trace at `path`.
pub fn look_at(path: &Path) -> Found {
    Found::of(ask(path, &QUESTIONS))
}

/// The folder of its page, as `scripts/fetch-tools.sh` unpacks it.
pub fn perfetto() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target/tools/perfetto")
}

fn ask(path: &Path, questions: &[&str]) -> Vec<Vec<Row>> {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new("node")
        .arg(here.join("tests/recording/export/trace_processor.js"))
        .arg(perfetto())
        .arg(path)
        .args(questions)
        .output()
        .expect("node: scripts/setup.sh test installs it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).expect("UTF-8");
    lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

fn text(value: &serde_json::Value) -> String {
    value.as_str().expect("a text").to_owned()
}

fn number(value: &serde_json::Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}
