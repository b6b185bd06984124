//! At which lines of programs threads wait, by owner.

use super::exporter::Exporter;
use super::support::{eventually, sim_text};
use super::workload::Workloads;
use std::process::{Command, Stdio};

const WAITED: &str = "gpuscope_wait_site_seconds_total";
const SCRIPT: &str = include_str!("../python/wait.py");
const WAIT: &str = "check(cuda.cuCtxSynchronize())";
const STEPS: u32 = 3000;

/// A line of the script that waits, as it is shown.
fn place(function: &str) -> String {
    let mut lines = SCRIPT.lines().zip(1..);
    lines.find(|(text, _)| text.starts_with(&format!("def {function}(")));
    let (_, line) = lines.find(|(text, _)| text.trim() == WAIT).expect("a wait");
    format!("waits.py:{line} {function}")
}

fn job_report(exporter: &Exporter, label: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_gpuscope"))
        .args(["job-report", "--label", label, "--from"])
        .arg(format!("http://{}/metrics", exporter.address()))
        .output()
        .expect("gpuscope runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
#[ignore = "needs root, BPF and Python"]
fn lines_that_wait_are_told_while_their_program_runs_and_after_it() {
    let exporter = Exporter::start(&["--collect", "api,sync,sites,self", "--labels", "comm,cmdline"]);
    Workloads::of(&exporter).until_seen_whole(&exporter);
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("waits.py");
    std::fs::write(&script, SCRIPT).expect("a script");
    let mut program = Command::new("python3")
        .arg(&script)
        .args([sim_text("libcuda.so.1"), STEPS.to_string()])
        .stdout(Stdio::null())
        .spawn()
        .expect("Python runs");
    let its = format!("{}", script.display());
    let waited = |parts: &[&str]| exporter.sum(WAITED, &[&[its.as_str()], parts].concat()).unwrap_or(0.0);
    let places = ["train", "validate"].map(place);
    let at = |place: &str| waited(&["wait=\"cuCtxSynchronize\"", &format!("site=\"{place}\"")]);
    eventually("both lines are known while it runs", || {
        places.iter().all(|place| at(place) > 0.0)
    });
    assert!(program.try_wait().expect("a child").is_none(), "it ran meanwhile");
    let mut before = places.each_ref().map(|place| at(place));
    let mut grow = || {
        let now = places.each_ref().map(|place| at(place));
        let falls = before.iter().zip(&now).any(|(before, now)| now < before);
        assert!(!falls, "{now:?} after {before:?}");
        before = now;
    };
    while program.try_wait().expect("a child").is_none() {
        grow();
    }
    let calls = || exporter.sum("gpuscope_sync_waits_total", &[&its]);
    eventually("all of its waits are counted", || {
        grow();
        calls() == Some(f64::from(STEPS + STEPS / 4))
    });
    grow();
    let (known, all) = (places.iter().map(|place| at(place)).sum::<f64>(), waited(&[]));
    // the first wait may have come before its interpreter was read
    assert!(
        known > 0.99 * all && known <= all + 1e-9,
        "{known} of {all} at these lines"
    );
    let asked = exporter.sum("gpuscope_sync_blocked_seconds_total", &[&its]);
    let asked = asked.expect("it waited");
    // a few are too short for a call stack
    assert!(all > 0.9 * asked && all <= asked + 1e-9, "{all} of {asked}");
    let name = exporter
        .scrape("")
        .lines()
        .find(|line| line.contains(&its))
        .map(str::to_owned);
    let command = name
        .as_deref()
        .and_then(|line| line.split("cmdline=\"").nth(1)?.split('"').next());
    let report = job_report(&exporter, &format!("cmdline={}", command.expect("a label")));
    let first = format!("{}: cuCtxSynchronize", places[0]);
    let line = report.lines().find(|line| line.contains("waiting at"));
    assert!(line.is_some_and(|line| line.ends_with(&first)), "{report}");
}
