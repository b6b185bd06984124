//! Which engine a command gets where none is asked for, and what is said of it.

use crate::inside::Public;
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

/// Where root's own folder for such things is closed to others, the program finds the agent elsewhere.
#[test]
#[ignore = "needs root, and the simulated CUDA"]
fn so_do_programs_of_other_users_whom_root_starts() {
    let (public, own) = (Public::new(), tempfile::tempdir().expect("a folder"));
    let program = public.path("gpusim");
    let command = [program.to_str().expect("UTF-8"), "train", "5"];
    let trace = Gpuscope::run(&["--user", "65534"], &command)
        .env("XDG_RUNTIME_DIR", own.path())
        .env("LD_LIBRARY_PATH", public.path(""))
        .under(&["env", "-u", ENGINE])
        .finish()
        .ok();
    let (name, because) = engine_of(&trace);
    assert_eq!(
        (name.as_str(), because.as_str()),
        ("inside", "gpuscope starts the program")
    );
    assert_eq!(
        trace.totals("calls")[&("runtime".to_owned(), "cudaLaunchKernel".to_owned())],
        100
    );
}

/// In memory, others do not reach it.
#[test]
#[ignore = "needs root and BPF: where nothing can be loaded into programs of others, it is all there is"]
fn where_no_folder_lets_code_be_run_programs_of_others_are_traced_from_the_kernel() {
    let public = Public::new();
    // what cannot be written is no place for it, either
    let script = format!(
        "for place in /dev/shm /tmp /var/tmp; do mount --bind $place $place && mount -o remount,bind,noexec $place || exit 99; done;
         mount -t tmpfs -o mode=755 none /mnt && cp {0}/* /mnt && cd /mnt && unset TMPDIR XDG_RUNTIME_DIR {ENGINE}
         for user in 0 65534; do
             LD_LIBRARY_PATH=/mnt ./gpuscope run --user $user -q --summary json -- ./gpusim train 5 2>&1 >/dev/null | grep '^{{'
         done",
        public.path("").display()
    );
    let done = std::process::Command::new("unshare")
        .args(["-m", "sh", "-c", &script])
        .output();
    let done = done.expect("unshare runs");
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    let summaries = said
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let engines: Vec<Value> = summaries.map(|summary| summary["engine"].clone()).collect();
    let [own, others] = &engines[..] else {
        panic!("{said}{}", String::from_utf8_lossy(&done.stderr))
    };
    assert_eq!(own["name"], "inside", "{own}");
    assert_eq!(others["name"], "kernel", "{others}");
    let because = others["because"].as_str().unwrap_or_default();
    assert!(because.contains("lies in memory"), "{because}");
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
fn an_option_of_the_kernels_engine_alone_is_said_to_have_no_effect_from_inside() {
    let gpusim = sim_text("gpusim");
    let said = |options: &[&str]| {
        let trace = Gpuscope::run(options, &[&gpusim, "train", "1"]).finish().ok();
        let unseen = trace.summary()["unseen"].as_array().expect("unseen").clone();
        let lines = unseen.iter().filter_map(Value::as_str);
        lines.filter(|line| line.contains(" has no effect: ")).count()
    };
    assert_eq!(said(&["--engine", "inside", "--ring-size", "64MiB", "--no-hold"]), 1);
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
