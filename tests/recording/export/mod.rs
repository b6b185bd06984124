//! `gpuscope export` and `timeline`: what others' tools find in the files is what was recorded.

#![allow(clippy::unwrap_used, reason = "whatever fails here fails the test")]

mod docs;
mod fleet;
mod made;
mod page;
mod processor;
mod real;
mod tables;
mod web;

use crate::support;
use made::Made;
use processor::{Found, look_at};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// `gpuscope ARGUMENTS…`.
pub fn gpuscope(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpuscope"));
    command.args(arguments).output().expect("gpuscope starts")
}

/// A folder with a recording `t.arrows`.
pub fn folder_with(recording: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.arrows");
    std::fs::write(&path, recording).expect("a file");
    (folder, path)
}

/// The recording in another format, and what is said about it.
pub fn exported(recording: &Path, name: &str) -> (PathBuf, String) {
    let path = recording.with_file_name(name);
    let output = gpuscope(&["export", recording.to_str().unwrap(), "-o", path.to_str().unwrap()]);
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(output.status.success(), "{said}");
    (path, said)
}

/// What Perfetto is to find.
pub fn seen_of(made: &Made) -> Found {
    // each wait ends one
    let (steps, _) = made.calls["cuStreamSynchronize"];
    let calls: u64 = made.calls.values().map(|(count, _)| count).sum();
    Found {
        calls: made.calls.clone(),
        slices: calls + steps + made.submissions + made.others,
        arrows: made.arrows,
        numbers: made.numbers,
        threads: 4,
        processes: 2,
        errors: Vec::new(),
    }
}

#[test]
#[ignore = "needs node and target/tools"]
fn the_trace_processor_sees_every_call_arrow_and_number() {
    let made = Made::trace(200);
    let (_folder, recording) = folder_with(&made.recording("node-7"));
    for name in ["t.pftrace", "t.json"] {
        assert_eq!(look_at(&exported(&recording, name).0), seen_of(&made), "{name}");
    }
}

#[test]
fn of_a_recording_that_was_cut_off_the_last_totals_are_exported() {
    let made = Made::trace(20);
    let bytes = made.cut_recording(r#"{"type":"snapshot","functions":[{"layer":"driver","name":"cuInit","calls":3}]}"#);
    let (_folder, recording) = folder_with(&bytes);
    let (path, said) = exported(&recording, "t.csv");
    for what in [
        "its last snapshot); 0 rows came after it",
        &format!("{} rows in ", made.rows() + 1),
    ] {
        assert!(said.contains(what), "{what}: {said}");
    }
    let table = std::fs::read_to_string(path).unwrap();
    let snapshots = table
        .lines()
        .filter(|line| line.starts_with("\"snapshot\",9000000000,"));
    assert_eq!(
        (snapshots.count(), table.lines().count() as u64),
        (1, made.rows() + 1 + 1)
    );
    let (lines, _) = exported(&recording, "t.jsonl");
    for file in [&recording, &lines] {
        let report = gpuscope(&["report", "--json", file.to_str().unwrap()]);
        let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
        assert_eq!(report["exact_until_ns"], 9_000_000_000_i64, "{}", file.display());
        let driver = report["layers"]
            .as_array()
            .unwrap()
            .iter()
            .find(|layer| layer["layer"] == "driver");
        let functions = driver.unwrap()["functions"].as_array().unwrap();
        assert!(functions.iter().any(|one| one["name"] == "cuInit" && one["calls"] == 3));
    }
}

#[test]
fn all_rows_are_told_with_that_of_the_totals() {
    let made = Made::trace(20);
    let (_folder, recording) = folder_with(&made.recording("node-7"));
    let (path, said) = exported(&recording, "t.csv");
    assert!(
        said.starts_with(&format!("gpuscope: {} rows in ", made.rows() + 1)),
        "{said}"
    );
    let header = 1;
    let lines = std::fs::read_to_string(path).unwrap().lines().count() as u64;
    assert_eq!(lines, made.rows() + 1 + header);
}

#[test]
fn a_recording_that_was_cut_off_is_exported_as_far_as_it_goes() {
    let whole = Made::trace(8000).recording("node-7");
    let (_folder, recording) = folder_with(&whole[..whole.len() - 200]);
    for (name, mark) in [
        ("t.jsonl", "\"type\":\"cut\""),
        ("t.json", "\"cut\":"),
        ("t.pftrace", "no rows behind this"),
    ] {
        let (path, said) = exported(&recording, name);
        assert!(said.contains("warning: ") && said.contains("was cut off"), "{said}");
        assert!(!said.contains("gpuscope: 0 rows"), "{said}");
        let bytes = std::fs::read(path).unwrap();
        assert!(String::from_utf8_lossy(&bytes).contains(mark), "{name}");
    }
}

#[test]
fn a_recording_of_which_nothing_is_left_is_refused_by_all_alike() {
    let whole = Made::trace(20).recording("node-7");
    let (folder, recording) = folder_with(&whole[..whole.len() / 2]);
    let path = recording.to_str().unwrap();
    let to = folder.path().join("t.csv");
    for arguments in [
        vec!["report", path],
        vec!["diff", path, path],
        vec!["timeline", path],
        vec!["export", path, "-o", to.to_str().unwrap()],
        vec!["export", path, "--to", "csv"],
    ] {
        let output = gpuscope(&arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(
            said.contains(&format!("nothing in {path} can be read: ")),
            "{arguments:?}: {said}"
        );
    }
    assert!(!to.exists());
}

#[test]
fn what_cannot_be_done_leaves_nothing_behind() {
    let (folder, recording) = folder_with(&Made::trace(2).recording("node-7"));
    let path = recording.to_str().unwrap();
    for (arguments, status, said) in [
        (vec!["export", path], 2, "which format?\nhint: --to"),
        (vec!["export", path, "-o", "/tmp/"], 2, "which format?"),
        (vec!["export", path, "--to", "csv", "-o", "/tmp/"], 2, "it is a folder"),
        (
            vec!["export", path, "--to", "csv", "-o", path],
            2,
            "this is the recording itself",
        ),
        (vec!["export", path, "-o", "/nonexistent/t.csv"], 1, "failed to create"),
        (
            vec!["export", path, "-o", "/dev/full", "--to", "csv"],
            1,
            "failed to write /dev/full",
        ),
        (
            vec!["export", "/nonexistent", "--to", "csv"],
            1,
            "failed to read /nonexistent",
        ),
        (vec!["export", "/dev/null", "--to", "csv"], 1, "it is no recording"),
        (vec!["timeline", "/dev/null"], 1, "it is no recording"),
        (
            vec!["timeline", path, "--filter", "nothing"],
            1,
            "has no call that would be shown",
        ),
        (
            vec!["timeline", path, "--from", "2s", "--to", "1s"],
            2,
            "--from is not before --to",
        ),
    ] {
        let output = gpuscope(&arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {stderr}");
        assert!(stderr.contains(said), "{arguments:?}: {stderr}");
    }
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn what_comes_from_the_program_drives_no_terminal() {
    let (_folder, recording) = folder_with(&Made::trace(2).recording("node-7"));
    let path = recording.to_str().unwrap();
    for arguments in [
        vec!["export", path, "--to", "jsonl"],
        vec!["export", path, "--to", "chrome"],
        vec!["export", path, "--to", "csv"],
        vec!["timeline", path],
    ] {
        let output = gpuscope(&arguments);
        assert!(output.status.success() && !output.stdout.is_empty());
        assert!(!output.stdout.contains(&0x1b), "{arguments:?}");
    }
}
