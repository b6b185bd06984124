//! Reports of programs that really ran, against the simulator's own ledger.

use super::support::{Counts, Gpuscope, Program, assert_same, sim_text};
use gpuscope::sink::quantity::plural;
use serde_json::Value;
use std::process::Command;

/// Calls by layer and function.
fn calls(report: &Value) -> Counts {
    let mut counts = Counts::new();
    for layer in report["layers"].as_array().expect("layers") {
        for function in layer["functions"].as_array().expect("functions") {
            let word = |of: &Value| of.as_str().expect("a name").to_owned();
            let calls = function["calls"].as_u64().expect("calls");
            counts.insert((word(&layer["layer"]), word(&function["name"])), calls);
        }
    }
    counts
}

#[test]
#[ignore = "needs root and BPF"]
fn a_live_report_has_every_call_of_the_ledger() {
    let mut program = Program::held_sim(&["train", "100"]);
    let pid = program.pid().to_string();
    let arguments = ["report", "--live", "-p", &pid, "--json"];
    let running = Gpuscope::new(arguments).start().until_attached();
    program.go();
    let ledger = program.finish().ledger;
    let trace = running.finish().ok();
    let report: Value = serde_json::from_str(&trace.stdout).expect("JSON");
    assert_same("the ledger and the report", &ledger.visible(), &calls(&report));
    assert_eq!(
        (&report["live"], &report["exact"]),
        (&Value::Bool(true), &Value::Bool(true))
    );
    assert_eq!(report["file"], Value::from(format!("process {pid}")));
}

#[test]
#[ignore = "needs root and BPF"]
fn a_recording_is_reported_as_the_ledger_has_it() {
    let gpusim = sim_text("gpusim");
    let trace = Gpuscope::record(&[], &[&gpusim, "train", "100"]).finish().ok();
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpuscope"));
    let output = command
        .args(["report", "--json"])
        .arg(trace.folder().join("t.arrows"))
        .output();
    let output = output.expect("gpuscope runs");
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_same("the ledger and the report", &trace.ledger.visible(), &calls(&report));
    assert_eq!((&report["cut"], &report["exact"]), (&Value::Null, &Value::Bool(true)));
    let rows = plural(report["rows"].as_u64().expect("rows"), "row");
    assert!(
        trace.stderr.contains(&format!("gpuscope: {rows}, ")),
        "{rows}: {}",
        trace.stderr
    );
}
