//! Where calls come from, seen from inside: with and without frame pointers, from Python, from threads of both kinds.

use crate::support::callers::expected_python;
use crate::support::{Gpuscope, compile, sim_text};
use serde_json::Value;
use std::collections::BTreeSet;
use tempfile::TempDir;

const CALLER: &str = include_str!("../support/caller.c");
const FOREIGN: &str = include_str!("../support/foreign_thread.c");
const FOREIGN_SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/foreign_thread.py");
const ALLOCATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/allocate.py");

/// The call sites of what a program held at its peak. Its stdin gives it a line when it is there, and one more when its names were read.
fn sites(program: &str) -> Vec<Value> {
    let script = format!("(echo; sleep 2; echo) | {program}");
    let options = ["--engine", "inside", "--json", "--top", "50"];
    let trace = Gpuscope::leaks(&options, &["sh", "-c", &script]).finish();
    let report = trace.records.last().expect("a report").clone();
    let processes = report["processes"].as_array().expect("processes").clone();
    processes
        .iter()
        .flat_map(|process| process["sites"].as_array().cloned().unwrap_or_default())
        .collect()
}

/// The driver in a file of its own: a return probe of another test beside this one would hide callers.
fn own_driver(folder: &TempDir) -> String {
    let copy = folder.path().join("libcuda.so.1");
    std::fs::copy(sim_text("libcuda.so.1"), &copy).expect("a copy");
    copy.into_os_string().into_string().expect("UTF-8")
}

/// Innermost first: `function file:line`.
fn stack_of(site: &Value) -> Vec<String> {
    site["stack"]
        .as_array()
        .map(|stack| stack.iter().map(told).collect())
        .unwrap_or_default()
}

fn stacks(program: &str) -> Vec<Vec<String>> {
    sites(program).iter().map(stack_of).collect()
}

fn told(frame: &Value) -> String {
    let file = frame["file"].as_str().and_then(|file| file.rsplit('/').next());
    let function = frame["function"].as_str().unwrap_or_default();
    match (file, frame["line"].as_u64()) {
        (Some(file), Some(line)) => format!("{function} {file}:{line}"),
        _ => function.to_owned(),
    }
}

/// Frame pointers or not, compiled for speed or for size: the functions are those that the program was written with.
#[test]
#[ignore = "needs the simulated CUDA"]
fn native_callers_need_no_frame_pointers() {
    for how in ["-fomit-frame-pointer", "-fno-omit-frame-pointer", "-Os"] {
        let folder = tempfile::tempdir().expect("a folder");
        let program = compile(
            folder.path(),
            "caller",
            CALLER,
            &["-g", "-O2", how, "-fno-optimize-sibling-calls", "-ldl"],
        );
        let seen: BTreeSet<Vec<String>> = stacks(&format!("{} {}", program.display(), own_driver(&folder)))
            .into_iter()
            .map(|stack| stack.into_iter().filter(|frame| frame.contains("caller.c:")).collect())
            .collect();
        let expected = [
            ["grow caller.c:16", "reserve caller.c:21", "main caller.c:49"],
            ["grow caller.c:16", "reserve caller.c:21", "work caller.c:27"],
        ];
        let expected: BTreeSet<Vec<String>> = expected.iter().map(|stack| stack.map(str::to_owned).to_vec()).collect();
        assert_eq!(seen, expected, "{how}");
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn python_callers_are_named_to_the_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let seen: BTreeSet<Vec<String>> = stacks(&format!("python3 {ALLOCATE} {} 3", own_driver(&folder)))
        .into_iter()
        .map(|stack| {
            stack
                .into_iter()
                .filter(|frame| frame.contains("allocate.py:"))
                .collect()
        })
        .collect();
    assert_eq!(seen, expected_python(true));
}

/// The state that such a thread has of Python's is made for each call into Python, and freed behind it.
#[test]
#[ignore = "needs the simulated CUDA"]
fn a_thread_that_python_has_not_started_has_its_frames_only_while_it_runs_them() {
    const TIMES: u64 = 300;
    let folder = tempfile::tempdir().expect("a folder");
    let library = compile(folder.path(), "thread.so", FOREIGN, &["-g", "-O2", "-shared", "-fPIC"]);
    let cuda = own_driver(&folder);
    let found = sites(&format!(
        "python3 {FOREIGN_SCRIPT} {cuda} {} {TIMES}",
        library.display()
    ));
    let held = |function: &str, python: bool| -> u64 {
        let here = |stack: &[String]| {
            stack.iter().any(|frame| frame.starts_with(function))
                && stack.iter().any(|frame| frame.contains(".py:")) == python
        };
        let own = found.iter().filter(|site| here(&stack_of(site)));
        own.filter_map(|site| site["bytes_at_peak"].as_u64()).sum()
    };
    assert_eq!(held("called foreign_thread.py:", true), 1000 * TIMES, "{found:#?}");
    assert_eq!(held("allocate_own ", false), 3000 * TIMES, "{found:#?}");
}
