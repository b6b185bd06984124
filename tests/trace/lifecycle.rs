//! However gpuscope ends, the traced program lives on unchanged and no probe stays behind.

use crate::support::{
    Ended, Gpuscope, OwnSim, Program, Running, Trace, assert_same, changed_beyond, changed_code, eventually, is_inside,
    kernel_objects_of, sim_text, still_there,
};
use serde_json::Value;
use std::collections::BTreeMap;

const RUNTIME: &str = "libcudart.so.13";

/// What a program says of itself, the ledger must say as well.
fn assert_unharmed(ended: &Ended) {
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stdout);
    let said = ended.stdout.lines().find_map(|line| line.strip_prefix("GPUSIM "));
    let said: Value = serde_json::from_str(said.expect("the program's last line")).expect("JSON");
    let calls = said["calls"].as_object().expect("calls").iter();
    let said: BTreeMap<&str, u64> = calls
        .map(|(name, count)| (name.as_str(), count.as_u64().expect("a count")))
        .collect();
    let runtime = ended.ledger.calls.iter().filter(|((layer, _), _)| layer == "runtime");
    assert_same(
        "calls",
        &said,
        &runtime.map(|((_, name), count)| (name.as_str(), *count)).collect(),
    );
    assert!(ended.ledger.errors.is_empty(), "{:?}", ended.ledger.errors);
}

/// Attaches to a program in mid-run, ends gpuscope by `signal`, and looks at what is left: no more than in a program that
/// it never knew, which only others may trace.
fn trace_ended_by(signal: i32) -> Option<Trace> {
    let (own, unknown) = (OwnSim::new(), OwnSim::new());
    let (mut program, control) = (own.program(&["train", "0"]), unknown.program(&["train", "0"]));
    let pid = program.pid().to_string();
    let running = Gpuscope::trace(&["-p", &pid]).start().until_attached();
    running.until_written("cudaLaunchKernel");
    let objects = kernel_objects_of(running.pid());
    assert!(running.probes_in(program.pid(), RUNTIME) > 400, "it is probed");
    assert!(changed_code(program.pid(), RUNTIME) > 400, "and its code is changed");
    assert!(still_there(&objects) > 1, "{objects:?}");
    running.signal(signal);
    let ended = ended(running, signal);
    eventually("every link and program is gone", || still_there(&objects) == 0);
    eventually("the code is as it was", || {
        changed_beyond(control.pid(), program.pid(), RUNTIME).is_empty()
    });
    assert!(program.is_running(), "it lives on");
    program.signal(libc::SIGTERM);
    assert_unharmed(&program.finish());
    ended
}

fn ended(running: Running, signal: i32) -> Option<Trace> {
    if signal == libc::SIGKILL {
        drop(running);
        return None;
    }
    let trace = running.finish();
    assert_eq!(trace.code(), 0, "{}", trace.stderr);
    Some(trace)
}

/// All events that are not lost are written, and the totals with them.
fn assert_complete(trace: &Trace) {
    let mut written = trace.written();
    for (key, lost) in trace.totals("lost") {
        *written.entry(key).or_default() += lost;
    }
    let counted_only: Vec<&str> = trace.summary()["counted_only"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut totals = trace.totals("calls");
    totals.retain(|(_, name), _| !counted_only.contains(&name.as_str()));
    assert_same("events and totals", &totals, &written);
}

#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn sigint_ends_a_trace_with_all_events_and_totals() {
    assert_complete(&trace_ended_by(libc::SIGINT).expect("a trace"));
}

#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn sigterm_ends_a_trace_with_all_events_and_totals() {
    assert_complete(&trace_ended_by(libc::SIGTERM).expect("a trace"));
}

#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn sigkill_leaves_no_probe_behind() {
    assert!(trace_ended_by(libc::SIGKILL).is_none());
}

/// What a process has open, by name; of one that has ended nothing.
fn open_files(pid: u32) -> Vec<String> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten()
        .flatten();
    let targets = entries.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    targets.map(|target| target.display().to_string()).collect()
}

#[test]
#[ignore = "needs root and BPF: it attaches to what runs, a probe at a time"]
fn nobody_waits_for_a_kernel_that_takes_probes_away_one_at_a_time() {
    let (own, unknown) = (OwnSim::new(), OwnSim::new());
    let (mut program, control) = (own.program(&["train", "0"]), unknown.program(&["train", "0"]));
    let pid = program.pid().to_string();
    let options = ["-p", &pid, "--filter", "cudaMemcpy", "--filter", "@memset"];
    let running = Gpuscope::trace(&options).tier("perf-link").start().until_attached();
    running.until_written("cudaMemcpy");
    assert!(changed_code(program.pid(), RUNTIME) >= 12, "each with its return");
    running.signal(libc::SIGINT);
    let trace = running.end();
    assert_eq!(trace.code(), 0, "{}", trace.stderr);
    let remover = trace.remover().expect("not all probes were gone in a moment");
    let written = trace.folder().display().to_string();
    let open = open_files(remover);
    assert!(!open.iter().any(|name| name.starts_with(&written)), "{open:?}");
    eventually("the code is as it was", || {
        changed_beyond(control.pid(), program.pid(), RUNTIME).is_empty()
    });
    eventually("it ends", || open_files(remover).is_empty());
    assert!(program.is_running(), "it lives on");
    program.signal(libc::SIGTERM);
    assert_unharmed(&program.finish());
}

/// Ends `gpuscope run` by `signal`; its command must go on to its end.
fn run_ended_by(signal: i32) {
    let command = format!("{} sync-stall 120; echo \"status $?\"", sim_text("gpusim"));
    // each step waits 50 ms for the device
    let running = Gpuscope::script(&[], &command).env("GPUSIM_KERNEL_US", "50000").start();
    running.until_written("cudaDeviceSynchronize");
    let objects = kernel_objects_of(running.pid());
    assert_eq!(still_there(&objects) > 1, !is_inside(), "{objects:?}");
    running.signal(signal);
    // SAFETY: plain numbers
    eventually(
        "gpuscope ends",
        || unsafe { libc::kill(running.pid() as i32, 0) } != 0 || is_zombie(running.pid()),
    );
    assert!(!running.stdout().contains("GPUSIM "), "the command ended first");
    eventually("every link and program is gone", || still_there(&objects) == 0);
    eventually("the command goes on to its end", || {
        running.stdout().contains("status ")
    });
    let stdout = running.stdout();
    assert!(
        stdout.contains("120 launches, each waited for") && stdout.ends_with("status 0\n"),
        "{stdout}"
    );
    if signal != libc::SIGKILL {
        let trace = running.finish();
        assert_eq!(trace.code(), 128 + signal, "{}", trace.stderr);
        assert_complete(&trace);
    }
}

fn is_zombie(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.contains(") Z ")
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn sigint_to_run_leaves_the_command_alone() {
    run_ended_by(libc::SIGINT);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn sigterm_to_run_leaves_the_command_alone() {
    run_ended_by(libc::SIGTERM);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn sigkill_to_run_leaves_the_command_alone() {
    run_ended_by(libc::SIGKILL);
}

/// The return address on the stack of a call in flight is the kernel's; it must lead home after a SIGKILL.
#[test]
#[ignore = "needs the simulated CUDA"]
fn sigkill_in_mid_call_lets_the_call_return() {
    let gpusim = sim_text("gpusim");
    let running = Gpuscope::run(&[], &[&gpusim, "sync-stall", "1"])
        .env("GPUSIM_KERNEL_US", "3000000")
        .start();
    // the launch has returned, so the device is waited for, for three seconds
    running.until_written("cudaLaunchKernel");
    running.signal(libc::SIGKILL);
    assert!(!running.stdout().contains("GPUSIM "), "the call was over");
    eventually("the program ends", || running.stdout().contains("GPUSIM "));
    assert!(
        running.stdout().contains("\"cudaDeviceSynchronize\":1"),
        "{}",
        running.stdout()
    );
}

#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn a_second_signal_ends_at_once_and_leaves_whole_lines() {
    let program = Program::sim(&["hammer", "20000", "30"]);
    let pid = program.pid().to_string();
    let running = Gpuscope::trace(&["-p", &pid]).start().until_attached();
    running.until_written("cudaStreamQuery");
    running.signal(libc::SIGHUP);
    running.signal(libc::SIGHUP);
    let trace = running.finish(); // reads every line as JSON
    assert!([0, 128 + libc::SIGHUP].contains(&trace.code()), "{}", trace.stderr);
    assert!(trace.records.len() > 1);
}

/// Two at once both see everything; when one is killed, the other one goes on.
#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn two_at_once_are_both_exact_and_the_death_of_a_third_changes_nothing() {
    let mut program = Program::held_sim(&["threads", "4", "200"]);
    let pid = program.pid().to_string();
    let start = || Gpuscope::trace(&["-p", &pid, "--chatty", "--ring-size", "64MiB"]).start();
    let (first, second, third) = (start(), start(), start());
    let (first, second, third) = (first.until_attached(), second.until_attached(), third.until_attached());
    program.go();
    third.until_written("cudaLaunchKernel");
    third.signal(libc::SIGKILL);
    let ended = program.finish();
    assert_unharmed(&ended);
    for trace in [first.finish(), second.finish()] {
        let what = format!("totals; unseen {:?}", trace.unseen());
        assert_same(&what, &ended.ledger.visible(), &trace.totals("calls"));
        assert_same("events", &ended.ledger.visible(), &trace.written());
    }
}

/// A shell that ends while what it started has not even begun.
const LEAVES_ONE: &str = "(sleep 1.5; exec gpusim train 3) >/dev/null 2>&1 &";

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_process_that_outlives_the_command_is_named() {
    let script = LEAVES_ONE.replace("gpusim", &sim_text("gpusim"));
    let trace = Gpuscope::script(&[], &script).finish().ok();
    assert!(
        trace
            .stderr
            .contains("outlives the command and is traced no longer\nhint: --follow"),
        "{}",
        trace.stderr
    );
    let unseen = trace.unseen();
    assert!(
        unseen.iter().any(|what| what.contains("outlives the command")),
        "{unseen:?}"
    );
    assert_eq!(trace.calls().count(), 0);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_process_that_outlives_the_command_is_followed_where_that_is_asked_for() {
    let script = LEAVES_ONE.replace("gpusim", &sim_text("gpusim"));
    let trace = Gpuscope::script(&["--follow"], &script).finish().ok();
    assert_eq!(trace.unseen(), [""; 0]);
    assert_eq!(trace.calls_of("cuLaunchKernel").count(), 60);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn children_that_end_with_their_parent_are_not_spoken_of() {
    let script = format!("{} train 1 >/dev/null & wait; true & exit 3", sim_text("gpusim"));
    let trace = Gpuscope::script(&["--follow"], &script).finish();
    assert_eq!(
        (trace.code(), trace.stderr.contains("outlives")),
        (3, false),
        "{}",
        trace.stderr
    );
}
