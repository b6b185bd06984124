//! Libraries that no process has mapped before, and programs that nobody announced: what of them is counted, and what is
//! said where something is missing.

#![allow(clippy::expect_used, reason = "whatever fails here fails the test")]

mod support;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{Counts, Ended, Gpuscope, Program, Running, Trace, number, sim_folder, text};
use tempfile::TempDir;

/// The simulated program and its libraries, in files that nobody has ever mapped.
struct Fresh(TempDir);

impl Fresh {
    fn new() -> Fresh {
        let folder = tempfile::tempdir().expect("a folder");
        for file in std::fs::read_dir(sim_folder()).expect("a folder") {
            let file = file.expect("a file").path();
            let name = file.file_name().expect("a name").to_string_lossy().into_owned();
            if name.contains(".so.") || name == "gpusim" {
                std::fs::copy(&file, folder.path().join(&name)).expect("a copy");
            }
        }
        Fresh(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn program(&self) -> PathBuf {
        self.path().join("gpusim")
    }

    /// `gpusim ARGUMENTS…` with its own libraries, from its first instruction to its end.
    fn run(&self, arguments: &[&str]) -> (u32, Ended) {
        let script = "exec env LD_LIBRARY_PATH=\"$0\" \"$@\"";
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).arg(self.path()).arg(self.program());
        let program = Program::start(shell.args(arguments));
        let pid = program.pid();
        let ended = program.finish();
        assert!(ended.status.success(), "{}", ended.status);
        (pid, ended)
    }
}

/// The process of the last report of `leaks`, if it was seen at all.
fn held_by(trace: &Trace, pid: u32) -> Option<&Value> {
    let last = trace.records.last().expect("a report");
    let processes = last["processes"].as_array().expect("processes");
    processes
        .iter()
        .find(|process| number(process, "pid") == u64::from(pid))
}

/// What the driver was asked for and what it was given back, as far as was seen.
fn allocated(process: &Value) -> (u64, u64) {
    let families = process["families"].as_array().expect("families").iter();
    let own: Vec<&Value> = families
        .filter(|one| !["registered", "mapped", "reserved"].contains(&text(one, "family").as_str()))
        .collect();
    let sum = |field| own.iter().map(|family| number(family, field)).sum();
    (sum("allocated_bytes"), sum("freed_bytes"))
}

fn is_said_to_be_early(trace: &Trace) -> bool {
    let last = trace.records.last().expect("a report").to_string();
    last.contains("before its libraries were probed") && last.contains("did not wait until their probes")
}

fn watching(running: Gpuscope) -> Running {
    running.start().until_attached()
}

/// Bytes in and out, and what is said of a process whose libraries nobody had mapped before.
fn leaks_of_all(options: &[&str]) -> (Trace, u32, Ended) {
    let running = watching(Gpuscope::leaks(&[&["--all"], options].concat(), &[]));
    let (pid, ended) = Fresh::new().run(&["leak", "20"]);
    (running.stop().ok(), pid, ended)
}

#[test]
#[ignore = "needs root and BPF"]
fn what_a_process_holds_is_exact_or_said_not_to_be() {
    let (trace, pid, ended) = leaks_of_all(&[]);
    let truth = (ended.ledger.bytes["alloc"], ended.ledger.bytes["free"]);
    let process = held_by(&trace, pid);
    if process.map(allocated) != Some(truth) {
        assert!(is_said_to_be_early(&trace), "{}", trace.stderr);
        if let Some(process) = process {
            assert_eq!((&process["late"], &process["exact"]), (&true.into(), &false.into()));
        }
    }
}

#[test]
#[ignore = "needs root and BPF"]
fn calls_are_all_counted_or_said_to_be_missing() {
    let running = watching(Gpuscope::trace(&["--all"]));
    let (pid, ended) = Fresh::new().run(&["leak", "20"]);
    let trace = running.stop().ok();
    let seen: Counts = trace.written_by(&[u64::from(pid)].into());
    if seen != ended.ledger.visible() {
        assert!(is_said_to_be_early(&trace), "{}", trace.stderr);
    }
}
