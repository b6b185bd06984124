//! Programs that do what few programs do, in each way in which gpuscope can watch one from its start.

use crate::effort::{all_or, rounds, tried};
use crate::subject::{Subject, assert_no_probe_is_left};
use crate::tracer::Tracer;
use serde_json::Value;
use std::collections::BTreeMap;

/// All that starts a program; `OUT` is a folder for what is written.
const WAYS: [&[&str]; 5] = [
    &["run", "-q", "--summary", "none"],
    &["run", "--chatty", "-o", "OUT/t.jsonl"],
    &["run", "--stacks", "all", "-o", "OUT/t.jsonl"],
    &["record", "-o", "OUT/t.arrows"],
    &["leaks", "-o", "OUT/t.jsonl"],
];

/// Runs a program without and with gpuscope: both must be the same, and nothing may be left. How often it ran with it.
pub fn traced_in_every_way(name: &str, arguments: &[&str]) -> u64 {
    traced_by(&[], name, arguments)
}

/// With further options of gpuscope.
fn traced_by(options: &[&str], name: &str, arguments: &[&str]) -> u64 {
    let (subject, ways) = (Subject::new(name, arguments), all_or(2, &WAYS));
    for way in &ways {
        let tracer = Tracer::start(&[*way, options, &["--"], &subject.command()].concat());
        let output = tracer.finish();
        subject.assert_as_alone(&output, &format!("{way:?}"));
    }
    assert_no_probe_is_left();
    ways.len() as u64
}

fn many(name: &str, arguments: &[&str], what: &str) {
    let runs = (0..rounds(1, 1, 10, 200)).map(|_| traced_in_every_way(name, arguments));
    tried(runs.sum(), what);
}

#[test]
#[ignore = "needs root and BPF"]
fn a_storm_of_signals_in_hooked_calls_changes_nothing() {
    many("signals", &[], "programs under a storm of signals");
}

/// From inside alone: the kernel takes a return whose stack lies below that of the handler for one that was jumped over, and
/// ends the program (docs/security.md).
#[test]
#[ignore = "needs root and BPF"]
fn handlers_on_a_stack_above_interrupt_hooks_that_take_new_places() {
    let runs = (0..rounds(1, 1, 20, 400)).map(|_| traced_by(&["--engine", "inside"], "interrupting", &[]));
    tried(runs.sum(), "programs whose handlers call on a stack above");
}

#[test]
#[ignore = "needs root and BPF"]
fn ten_thousand_threads_come_and_go() {
    many("threads", &[], "programs of ten thousand threads with small stacks");
}

#[test]
#[ignore = "needs root and BPF"]
fn five_hundred_children_fork_vfork_exec_and_end_in_mid_call() {
    many("forks", &[], "programs with five hundred children");
}

#[test]
#[ignore = "needs root and BPF"]
fn filters_of_system_calls_neither_kill_nor_fail() {
    many("sandbox", &["kill"], "programs in a sandbox that kills");
    many("sandbox", &["errno"], "programs in a sandbox that refuses");
}

#[test]
#[ignore = "needs root and BPF"]
fn code_may_be_rewritten_and_the_library_unloaded() {
    many(
        "rewriting",
        &[],
        "programs that write their library's code and load it anew",
    );
}

#[test]
#[ignore = "needs root and BPF"]
fn who_dies_in_mid_call_leaves_the_same_core() {
    many("dumping", &[], "programs whose children leave cores");
}

#[test]
#[ignore = "needs root and BPF"]
fn a_program_may_follow_its_own_child() {
    many("followed", &[], "programs that follow a child by ptrace");
}

/// By process, how often it was seen to allocate.
#[test]
#[ignore = "needs root and BPF"]
fn nobody_looks_behind_handles_that_are_none() {
    many("handles", &[], "programs with handles that are none");
}

fn allocations(records: &[Value]) -> BTreeMap<u64, u64> {
    let mut counts = BTreeMap::new();
    for call in records.iter().filter(|record| record["name"] == "cuMemAlloc_v2") {
        *counts.entry(call["pid"].as_u64().expect("a number")).or_default() += 1;
    }
    counts
}

/// Processes that share their memory are told apart, and one that a thread ends has made the calls that it had made.
#[test]
#[ignore = "needs root and BPF"]
fn children_that_share_memory_or_are_ended_by_a_thread() {
    many(
        "cloned",
        &[],
        "programs whose children share memory or are ended by a thread",
    );
    let subject = Subject::new("cloned", &[]);
    let mut tracer = Tracer::start(&[&["run", "-o", "OUT/t.jsonl", "--"], &subject.command()[..]].concat());
    assert!(tracer.wait().success());
    let records = tracer.records();
    let each: Vec<u64> = allocations(&records).into_values().collect();
    let unseen = &records.last().expect("a summary")["unseen"];
    assert_eq!(each, [1; 40], "{unseen}\n{}", tracer.stderr());
}
