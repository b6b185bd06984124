//! Reports of programs that really ran, against the simulator's own ledger.

use super::support::{Counts, Gpuscope, Ledger, Program, assert_same, sim_text};
use gpuscope::catalog::{Catalog, Row};
use gpuscope::filter::Filter;
use gpuscope::text::quantity::plural;
use serde_json::{Value, json};
use std::path::Path;
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

/// What is traced where getters are not asked for.
fn hooked(ledger: &Ledger) -> Counts {
    let catalog = Catalog::builtin().expect("the catalogue");
    let filter = Filter::parse(&[], &["runtime".to_owned(), "driver".to_owned()]).expect("a filter");
    let filter = filter.without_queries();
    ledger.visible_where(|layer, name| {
        let is_it = |row: &&Row| {
            let library = catalog.library_with(row.library);
            row.symbol == name && library.is_some_and(|library| library.name == layer)
        };
        let row = catalog.rows.iter().find(is_it);
        row.is_some_and(|row| filter.selects(&catalog, row))
    })
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
    assert_same("the ledger and the report", &hooked(&ledger), &calls(&report));
    assert_eq!(
        (&report["live"], &report["exact"]),
        (&Value::Bool(true), &Value::Bool(true))
    );
    assert_eq!(report["file"], Value::from(format!("process {pid}")));
}

#[test]
#[ignore = "needs root and BPF"]
fn a_program_that_ran_a_loop_has_as_many_steps() {
    let gpusim = sim_text("gpusim");
    let trace = Gpuscope::record(&[], &[&gpusim, "train", "100"]).finish().ok();
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpuscope"));
    command.args(["report", "--json"]).arg(trace.folder().join("t.arrows"));
    let output = command.output().expect("gpuscope runs");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let steps = &report["steps"][0];
    assert_eq!(
        (&steps["count"], &steps["launches"]),
        (&json!(100), &json!(20)),
        "{steps}"
    );
    let anchor = json!({"name": "cuStreamSynchronize", "after": null, "at": "end"});
    assert_eq!(steps["anchor"], anchor);
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

fn report_of(file: &Path) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpuscope"));
    let output = command
        .args(["report", "--json"])
        .arg(file)
        .output()
        .expect("gpuscope runs");
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Sum of a number of all objects in `of`; microseconds as ns.
fn sum(of: &Value, key: &str) -> u64 {
    let all = of.as_array().expect("an array").iter();
    let scale = if key.ends_with("_us") { 1e3 } else { 1.0 };
    all.map(|one| (one[key].as_f64().expect("a number") * scale).round() as u64)
        .sum()
}

fn rules(findings: &Value) -> Vec<Value> {
    let findings = findings.as_array().into_iter().flatten();
    findings.map(|finding| finding["rule"].clone()).collect()
}

/// What both say: failures, launches by kernel, graphs, waits, hidden waits, idle time and its window, findings.
fn told_by_summary(summary: &Value) -> Value {
    let work = &summary["work"][0];
    json!({
        "kernels": [sum(&summary["kernels"], "launches"), sum(&summary["kernels"], "in_graphs")],
        "graphs": work["graphs"],
        "waits": [sum(&work["waits"], "count"), sum(&work["waits"], "total_us")],
        "hidden": [sum(&work["hidden"], "count"), sum(&work["hidden"], "total_us")],
        "idle": sum(&json!([work["gpu"]]), "idle_at_least_us"),
        "failures": sum(&summary["failures"], "count"),
        "findings": rules(&summary["findings"]),
    })
}

fn told_by_report(report: &Value) -> Value {
    json!({
        "kernels": [sum(&report["kernels"], "launches"), sum(&report["kernels"], "in_graphs")],
        "graphs": report["graphs"],
        "waits": [sum(&report["waits"], "calls"), sum(&report["waits"], "total_ns")],
        "hidden": [sum(&report["hidden"], "calls"), sum(&report["hidden"], "total_ns")],
        "idle": sum(&report["idle"], "total_ns"),
        "failures": sum(&report["failures"], "count"),
        "findings": rules(&report["findings"]),
    })
}

#[test]
#[ignore = "needs root and BPF"]
fn a_report_and_its_gate_say_what_the_summary_of_the_run_said() {
    let gpusim = sim_text("gpusim");
    let commands: [&[&str]; 5] = [
        &["graph", "50"],
        &["errors", "3"],
        &["train", "60"],
        &["stall", "--steps", "40", "--sync", "stream"],
        &["defect", "--kind", "alloc-churn", "--steps", "60"],
    ];
    let rules = ["error", "launches>5", "leak", "finding"];
    for command in commands {
        let gates: Vec<&str> = rules.iter().flat_map(|rule| ["--fail-on", rule]).collect();
        let options = [&["--summary", "json"][..], &gates].concat();
        let trace = Gpuscope::record(&options, &[&[gpusim.as_str()], command].concat()).finish();
        let lines: Vec<&str> = trace.stderr.lines().collect();
        let summary = lines.iter().find(|line| line.starts_with('{')).expect("a summary");
        let summary: Value = serde_json::from_str(summary).expect("JSON");
        let file = trace.folder().join("t.arrows");
        let report = report_of(&file);
        assert_eq!(told_by_summary(&summary), told_by_report(&report), "{command:?}");
        let said = |text: &str| -> Vec<String> {
            let lines = text.lines().filter(|line| line.contains("--fail-on"));
            lines.map(str::to_owned).collect()
        };
        let mut again = Command::new(env!("CARGO_BIN_EXE_gpuscope"));
        let again = again
            .arg("report")
            .args(&gates)
            .arg(&file)
            .output()
            .expect("gpuscope runs");
        assert_eq!(again.status.code(), Some(trace.code()), "{command:?}");
        assert_eq!(
            said(&String::from_utf8_lossy(&again.stderr)),
            said(&trace.stderr),
            "{command:?}"
        );
    }
}

#[test]
#[ignore = "needs root and BPF"]
fn idle_time_of_a_flight_recorder_lies_within_what_it_covers() {
    let gpusim = sim_text("gpusim");
    let command = [
        "stall",
        "--steps",
        "300",
        "--kernel-ns",
        "5000000",
        "--host-ns",
        "10000000",
        "--sync",
        "stream",
    ];
    let trace = Gpuscope::record(&["--ring", "1s"], &[&[gpusim.as_str()][..], &command].concat())
        .finish()
        .ok();
    let report = report_of(&trace.folder().join("t.dump-0001.arrows"));
    let number = |of: &Value| of.as_f64().expect("a number");
    let idle = &report["idle"][0];
    let (total, window) = (number(&idle["total_ns"]), number(&idle["window_ns"]));
    assert!(window <= number(&report["wall_ns"]), "{idle}");
    // 5 ms at work, 10 ms of the host and what waking up takes
    assert!(total < window * 0.9 && total > window * 0.4, "{total} of {window}");
    let notes = report["notes"].to_string();
    assert!(notes.contains("it covers the "), "{notes}");
    let findings = report["findings"].as_array().expect("findings");
    let gaps = findings
        .iter()
        .find(|one| one["rule"] == "idle-gaps")
        .expect("idle gaps");
    let share = number(&gaps["share"]);
    assert!(
        (share - total / window).abs() < 0.05,
        "{share} of the time, {total} of {window}"
    );
}
