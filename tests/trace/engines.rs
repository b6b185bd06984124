//! Which engine a command gets where none is asked for, and what is said of it.

use crate::support::{ENGINE, Gpuscope, Trace, compile, sim_text};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;

/// `gpuscope run OPTIONS… -- COMMAND…` of whoever chooses no engine.
fn run(options: &[&str], command: &[&str]) -> Trace {
    Gpuscope::run(options, command)
        .under(&["env", "-u", ENGINE])
        .finish()
        .ok()
}

/// Its name, and why.
fn engine_of(trace: &Trace) -> (String, String) {
    let engine = &trace.summary()["engine"];
    let text = |key: &str| engine[key].as_str().unwrap_or_default().to_owned();
    (text("name"), text("because"))
}

fn assert_kernel(trace: &Trace, why: &str) {
    let (name, because) = engine_of(trace);
    assert!(name == "kernel" && because.ends_with(why), "{name}, because {because}");
}

#[test]
#[ignore = "needs root, and the simulated CUDA"]
fn root_too_gets_the_engine_inside_for_what_is_started() {
    let gpusim = sim_text("gpusim");
    let trace = run(&[], &[&gpusim, "train", "5"]);
    let (name, because) = engine_of(&trace);
    assert_eq!(
        (name.as_str(), because.as_str()),
        ("inside", "gpuscope starts the program")
    );
    assert_eq!(trace.summary()["attach"], "inside");
    assert_eq!(trace.entered(), trace.ledger.visible());
}

#[test]
#[ignore = "needs root, and the simulated CUDA"]
fn text_says_it_in_a_line() {
    let gpusim = sim_text("gpusim");
    let done = Gpuscope::new(["run", "-q", "--", gpusim.as_str(), "train", "1"])
        .under(&["env", "-u", ENGINE])
        .finish();
    let line = "\nengine: inside, because gpuscope starts the program\n";
    assert!(done.stderr.contains(line), "{}", done.stderr);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn options_of_the_kernels_engine_alone_are_said_to_have_no_effect_from_inside() {
    let gpusim = sim_text("gpusim");
    let said = |options: &[&str]| {
        let trace = Gpuscope::run(options, &[&gpusim, "train", "1"]).finish().ok();
        let unseen = trace.summary()["unseen"].as_array().expect("unseen").clone();
        let lines = unseen.iter().filter_map(Value::as_str);
        lines.filter(|line| line.contains(" has no effect: ")).count()
    };
    assert_eq!(said(&["--engine", "inside", "--ring-size", "64MiB", "--no-hold"]), 2);
    assert_eq!(said(&["--engine", "inside"]), 0);
}

#[test]
#[ignore = "needs root and BPF: which options ask for the kernel's engine"]
fn options_that_ask_for_the_kernel_get_it() {
    let gpusim = sim_text("gpusim");
    let trace = run(&["--comm", "gpusim"], &[&gpusim, "train", "1"]);
    assert_kernel(&trace, "select whom the kernel lets through");
    assert!(trace.entered().values().sum::<u64>() > 0);
}

#[test]
#[ignore = "needs root and BPF: what the engine inside does not reach"]
fn programs_that_load_no_agent_are_traced_from_the_kernel() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile(folder.path(), "static", "int main(void) { return 0; }", &["-static"]);
    let program = program.to_str().expect("UTF-8");
    assert_kernel(&run(&[], &[program]), "static is linked statically");
    let script = folder.path().join("script");
    std::fs::write(&script, format!("#!/usr/bin/env {program}\n")).expect("a file");
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).expect("a mode");
    let script = script.to_str().expect("UTF-8");
    assert_kernel(&run(&[], &[script]), "static is linked statically");
    let cleared = run(&[], &["env", "-i", "/bin/true"]);
    assert_kernel(&cleared, "env leaves out what has programs load the agent");
}
