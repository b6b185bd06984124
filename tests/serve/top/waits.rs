//! Waits have the lines of the program that they are at.

use super::{Machine, gpuscope, total, without_rights};
use crate::support::{Program, eventually, sim};
use serde_json::Value;
use std::process::{Command, Stdio};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/wait.py");
/// As its place is shown, but for the number of its line.
const TRAIN: [&str; 2] = ["wait.py:", " train"];

fn wait_of(process: &Value) -> Option<&Value> {
    let mut waits = process["waits"].as_array()?.iter();
    waits.find(|wait| wait["what"] == "cuCtxSynchronize")
}

/// The place of `process` that waited for longest.
fn first_place(process: &Value) -> Option<&Value> {
    wait_of(process)?["places"].as_array().expect("places").first()
}

/// Until `command`, which is `gpuscope top`, shows the line of `python`, which runs the script.
fn looked_at(command: &mut Command, python: &mut Command) {
    let machine = Machine::new();
    let program = Program::start(
        python
            .arg(SCRIPT)
            .arg(sim("libcuda.so.1"))
            .arg("1000000")
            .envs(machine.environment())
            .env("XDG_DATA_HOME", machine.folder.path())
            .stdin(Stdio::null()),
    );
    let top = machine.top(command, &["--json", "--delay", "300ms"]);
    let its = |look: &Value| {
        let mut processes = look["processes"].as_array().expect("processes").iter();
        processes.find(|process| process["pid"] == program.pid()).cloned()
    };
    let mut process = Value::Null;
    eventually("a line is shown, with a pace", || {
        process = top.looks().last().and_then(its).unwrap_or_default();
        let place = first_place(&process);
        place.is_some_and(|place| place["seconds"]["per_second"].as_f64() > Some(0.0))
    });
    let place = first_place(&process).expect("a place");
    let line = place["where"].as_str().expect("text");
    assert!(line.starts_with(TRAIN[0]) && line.ends_with(TRAIN[1]), "{process:#}");
    let of = |value: &Value| value["seconds"]["total"].as_f64().expect("a number");
    let wait = wait_of(&process).expect("a wait");
    // four of five waits are there, and few are too short for a call stack
    assert!(of(place) > 0.4 * of(wait) && of(place) < of(wait), "{wait:#?}");
    assert!(total(&process, "launches") > 0);
}

#[test]
#[ignore = "needs root, BPF and Python"]
fn lines_of_any_program_are_shown_to_root() {
    looked_at(&mut gpuscope(), &mut Command::new("python3"));
}

#[test]
#[ignore = "needs the simulated CUDA and Python"]
fn lines_of_own_programs_are_shown_without_rights() {
    let own = env!("CARGO_BIN_EXE_gpuscope");
    let mut carrier = without_rights();
    // as little as who looks at it: nobody may look at somebody with more rights
    carrier.args([own, "preload", "--", "python3"]);
    looked_at(without_rights().arg(own), &mut carrier);
}
