//! Where calls come from, seen from inside: with and without frame pointers, from Python, from threads of both kinds.

use crate::support::callers::expected_python;
use crate::support::{Gpuscope, compile, sim_text};
use serde_json::Value;
use std::collections::BTreeSet;

const CALLER: &str = include_str!("../support/caller.c");
const ALLOCATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/allocate.py");

/// The stacks of what a program held at its peak, innermost first: `function file:line`. Its stdin gives it a line when it is
/// there, and one more when its names were read.
fn stacks(program: &str) -> Vec<Vec<String>> {
    let script = format!("(echo; sleep 2; echo) | {program}");
    let options = ["--engine", "inside", "--json", "--top", "50"];
    let trace = Gpuscope::leaks(&options, &["sh", "-c", &script]).finish();
    let report = trace.records.last().expect("a report").clone();
    let processes = report["processes"].as_array().expect("processes").clone();
    let sites = processes
        .iter()
        .flat_map(|process| process["sites"].as_array().cloned().unwrap_or_default());
    sites
        .map(|site| {
            site["stack"]
                .as_array()
                .map(|stack| stack.iter().map(told).collect())
                .unwrap_or_default()
        })
        .collect()
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
        let seen: BTreeSet<Vec<String>> = stacks(&format!("{} {}", program.display(), sim_text("libcuda.so.1")))
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
    let seen: BTreeSet<Vec<String>> = stacks(&format!("python3 {ALLOCATE} {} 3", sim_text("libcuda.so.1")))
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
