//! `gpuscope leaks`: what it says of who holds memory is what the simulated driver did, to the byte.

use crate::support::{Gpuscope, Program, Running, Trace, eventually, number, sim, sim_text, text};
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::Command;

const MIB: u64 = 1 << 20;
/// Of what the leaking scenario keeps of each step.
const KEPT: u64 = MIB;

/// `gpuscope leaks OPTIONS… -- gpusim ARGUMENTS…`.
fn watch(options: &[&str], arguments: &[&str]) -> Gpuscope {
    let gpusim = sim_text("gpusim");
    Gpuscope::leaks(options, &[&[gpusim.as_str()], arguments].concat())
}

/// Watches a program that runs.
fn attach(program: &Program, options: &[&str]) -> Running {
    let pid = program.pid().to_string();
    Gpuscope::leaks(&[&["-p", &pid], options].concat(), &[])
        .start()
        .until_attached()
}

/// The last report; the only one that says so.
fn last(trace: &Trace) -> &Value {
    let finals: Vec<bool> = trace.records.iter().map(|report| report["final"] == true).collect();
    let expected: Vec<bool> = (1..=finals.len()).map(|place| place == finals.len()).collect();
    assert_eq!(finals, expected, "{}", trace.stderr);
    trace
        .records
        .last()
        .unwrap_or_else(|| panic!("no report\n{}", trace.stderr))
}

/// The only process of the last report.
fn only(trace: &Trace) -> &Value {
    let processes = last(trace)["processes"].as_array().expect("processes");
    assert_eq!(processes.len(), 1, "{processes:?}");
    &processes[0]
}

/// The sum of a number over the devices of a process and its host memory.
fn sum(process: &Value, field: &str) -> u64 {
    let devices = process["devices"].as_array().expect("devices").iter();
    devices
        .chain([&process["host"]])
        .map(|place| number(place, field))
        .sum()
}

/// The same over its families; registered memory is the program's own, which the driver's ledger leaves out.
fn of_the_driver(process: &Value, field: &str) -> u64 {
    let families = process["families"].as_array().expect("families").iter();
    let held = families.filter(|one| !["registered", "mapped", "reserved"].contains(&text(one, "family").as_str()));
    held.map(|family| number(family, field)).sum()
}

/// Keeps more and more, on a device that has room for hours of it.
fn leaking() -> Program {
    let mut command = Command::new(sim("gpusim"));
    Program::start(command.args(["leak", "0"]).env("GPUSIM_MEMORY", "8TiB"))
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn every_byte_is_accounted_for_as_the_driver_does() {
    for arguments in [
        &["leak", "20"][..],
        &["churn", "20"],
        &["kinds"],
        &["vmm", "8"],
        &["pool", "25"],
        &["train", "5"],
    ] {
        let trace = watch(&[], arguments).finish().ok();
        let (process, ledger) = (only(&trace), &trace.ledger.bytes);
        let (got, back) = (ledger["alloc"], ledger["free"]);
        assert_eq!(of_the_driver(process, "allocated_bytes"), got, "{arguments:?}");
        assert_eq!(of_the_driver(process, "freed_bytes"), back, "{arguments:?}");
        assert_eq!(number(process, "held_bytes"), got - back, "{arguments:?}");
        let known = ["exact", "ended", "late"].map(|field| process[field] == true);
        assert_eq!(known, [true, true, false], "{arguments:?}");
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_program_that_is_started_was_not_there_before_though_gpuscope_itself_has_mapped_the_driver() {
    let preloaded = watch(&[], &["leak", "20"]).env("LD_PRELOAD", sim_text("libcuda.so.1"));
    let trace = preloaded.finish().ok();
    let process = only(&trace);
    assert_eq!((&process["late"], &process["exact"]), (&false.into(), &true.into()));
    assert_eq!(text(process, "comm"), "gpusim");
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn single_allocations_are_those_that_the_driver_still_has() {
    let trace = watch(&["--addresses"], &["leak", "30"]).finish().ok();
    let process = only(&trace);
    let all = process["allocations"].as_array().expect("allocations");
    let sum: u64 = all.iter().map(|one| number(one, "bytes")).sum();
    assert_eq!((all.len() as u64, sum), (30, number(process, "held_bytes")));
    assert_eq!(process["allocations_left_out"], 0);
    let addresses: std::collections::HashSet<String> = all.iter().map(|one| text(one, "address")).collect();
    assert_eq!(addresses.len(), 30, "each lies elsewhere");
    assert!(all.iter().all(|one| text(one, "function").starts_with("cuMemAlloc")));
    let old = watch(&["--older-than", "1h"], &["leak", "30"]).finish().ok();
    assert_eq!(only(&old)["allocations"], serde_json::json!([]), "none is that old");
    let unasked = watch(&[], &["leak", "1"]).finish().ok();
    assert_eq!(only(&unasked).get("allocations"), None);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn what_a_leaking_loop_keeps_is_held_at_its_end_and_said_with_its_age() {
    let trace = watch(&[], &["leak", "30"]).finish().ok();
    let process = only(&trace);
    assert_eq!(number(&process["devices"][0], "held_bytes"), 30 * KEPT);
    assert_eq!(number(&process["devices"][0], "outstanding"), 30);
    assert_eq!(process["devices"][0]["device"], 0);
    let sites = process["sites"].as_array().expect("sites").iter();
    let outstanding: Vec<&Value> = sites.filter(|site| number(site, "outstanding") > 0).collect();
    let held: u64 = outstanding.iter().map(|site| number(site, "held_bytes")).sum();
    assert_eq!(held, 30 * KEPT, "{outstanding:?}");
    for site in outstanding {
        let age = |field: &str| site[field].as_f64().expect("an age");
        assert!(age("oldest_seconds") >= age("newest_seconds"), "{site}");
    }
    let ended = process["ended_by"].as_array().expect("endings");
    let by_end = ended.iter().find(|ended| ended["how"] == "process ended").expect("it");
    assert_eq!((number(by_end, "count"), number(by_end, "bytes")), (30, 30 * KEPT));
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn virtual_memory_is_counted_once_and_its_addresses_apart() {
    let trace = watch(&[], &["vmm", "8"]).finish().ok();
    let process = only(&trace);
    let family = |name: &str| {
        let families = process["families"].as_array().expect("families");
        let found = families.iter().find(|family| family["family"] == name);
        number(
            found.unwrap_or_else(|| panic!("no {name} in {process}")),
            "allocated_bytes",
        )
    };
    assert_eq!(["physical", "mapped", "reserved"].map(family), [16 * MIB; 3]);
    assert_eq!(sum(process, "allocated_bytes"), 16 * MIB);
    assert_eq!(sum(process, "peak_bytes"), 16 * MIB);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn failed_calls_are_counted_and_change_nothing() {
    let trace = watch(&["--fail-on", "leak"], &["errors", "7"]).finish().ok();
    let process = only(&trace);
    let refused = trace.ledger.errors[&("cuMemAlloc_v2".to_owned(), 2)];
    assert_eq!((refused, sum(process, "failed_allocations")), (7, 7));
    assert_eq!(
        (
            number(process, "held_bytes"),
            number(&process["anomalies"], "double_frees")
        ),
        (0, 7)
    );
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn each_process_of_a_family_has_its_own_account() {
    let trace = watch(&["--fail-on", "leak"], &["fork"]).finish().ok();
    let processes = last(&trace)["processes"].as_array().expect("processes");
    let got: u64 = processes.iter().map(|process| sum(process, "allocated_bytes")).sum();
    assert_eq!(got, trace.ledger.bytes["alloc"]);
    assert!(processes.len() >= 6, "{processes:?}");
    assert!(processes.iter().all(|process| number(process, "held_bytes") == 0));
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_killed_process_held_what_it_had_not_freed() {
    let trace = watch(&["--fail-on", "leak"], &["kill"]).finish();
    assert_eq!(
        (trace.code(), number(only(&trace), "held_bytes")),
        (128 + libc::SIGKILL, MIB)
    );
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn the_exit_status_is_the_commands_and_3_for_a_leak_of_one_that_succeeded() {
    let status = |options: &[&str], command: &[&str]| {
        let trace = Gpuscope::leaks(options, command).finish();
        (trace.code(), trace.stderr.contains("--fail-on leak: gpusim"))
    };
    let gpusim = sim_text("gpusim");
    let leak = [gpusim.as_str(), "leak", "20"];
    let failing = format!("{gpusim} leak 20; exit 7");
    assert_eq!(status(&[], &leak), (0, false));
    assert_eq!(status(&["--fail-on", "leak"], &leak), (3, true));
    assert_eq!(status(&["--fail-on", "leak=19.9MiB"], &leak), (3, true));
    assert_eq!(status(&["--fail-on", "leak=20MiB"], &leak), (0, false));
    assert_eq!(status(&["--fail-on", "leak"], &[&gpusim, "churn", "3"]), (0, false));
    assert_eq!(status(&["--fail-on", "leak"], &["sh", "-c", &failing]), (7, true));
    assert_eq!(status(&[], &["/etc/passwd"]).0, 126);
    assert_eq!(status(&[], &["no-such-program-here"]).0, 127);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn run_fails_on_a_leak_too_and_its_summary_has_the_same_objects() {
    let gpusim = sim_text("gpusim");
    let trace = Gpuscope::run(&["-q", "--fail-on", "leak"], &[&gpusim, "leak", "5"]).finish();
    assert_eq!(trace.code(), 3, "{}", trace.stderr);
    assert!(
        trace.stderr.contains(", held 5.0 MiB in 5 allocations at its end\n"),
        "{}",
        trace.stderr
    );
    let trace = Gpuscope::run(&[], &[&gpusim, "leak", "5"]).finish().ok();
    let memory = &trace.summary()["memory"];
    assert_eq!(number(&memory[0], "held_bytes"), 5 * KEPT, "{memory}");
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_filter_that_hides_releases_claims_no_leak() {
    let gpusim = sim_text("gpusim");
    let trace = Gpuscope::run(&["--filter", "@alloc"], &[&gpusim, "leak", "5"])
        .finish()
        .ok();
    assert_eq!(trace.summary()["memory"], Value::Array(Vec::new()));
    assert!(!trace.stderr.contains("\nmemory"), "{}", trace.stderr);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn the_commands_output_is_left_alone_and_the_report_goes_to_stderr() {
    let gpusim = sim_text("gpusim");
    let trace = Gpuscope::new(["leaks", "--", &gpusim, "leak", "20"]).finish().ok();
    let lines: Vec<&str> = trace.stdout.lines().collect();
    assert!(lines.len() == 2 && lines[0].starts_with("leak: 20 steps") && lines[1].starts_with("GPUSIM "));
    assert!(trace.stderr.contains("device 0") && trace.stderr.contains("held 20.0 MiB in 20 allocations at its end"));
    assert!(!trace.stderr.contains('\u{1b}'));
}

#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn what_was_allocated_before_is_not_invented() {
    let program = leaking();
    let seen = Gpuscope::trace(&["-p", &program.pid().to_string()])
        .start()
        .until_attached();
    seen.until_written("cudaMalloc"); // it has its model and keeps more by now
    drop(seen.stop());
    let running = attach(&program, &["--interval", "100ms"]);
    running.until_written("\"pid\":");
    program.signal(libc::SIGTERM);
    let (trace, ended) = (running.finish(), program.finish());
    assert_eq!(trace.code(), 0, "{}", trace.stderr);
    let process = only(&trace);
    let kept = ended.ledger.bytes["alloc"] - ended.ledger.bytes["free"];
    let held = number(process, "held_bytes");
    assert_eq!((&process["late"], &process["exact"]), (&true.into(), &false.into()));
    assert!(held > 0 && held < kept && held.is_multiple_of(KEPT), "{held} of {kept}");
    assert!(sum(process, "allocated_bytes") < ended.ledger.bytes["alloc"]);
    // the model, from before, was freed at the end
    assert!(number(&process["anomalies"], "unknown_frees") > 0, "{process}");
    assert_eq!(sum(process, "allocated_bytes") - sum(process, "freed_bytes"), held);
}

#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn reports_come_at_the_interval_and_the_last_one_at_ctrl_c() {
    let mut program = Program::sim(&["train", "0"]);
    let running = attach(&program, &["--interval", "100ms", "--fail-on", "leak=1GiB"]);
    eventually("five reports", || running.lines().lines().count() >= 5);
    let trace = running.stop();
    assert_eq!(trace.code(), 0, "{}", trace.stderr);
    assert!(program.is_running(), "it lives on");
    last(&trace);
    let times: Vec<f64> = trace
        .records
        .iter()
        .map(|report| report["ts"].as_f64().expect("a time"))
        .collect();
    assert!(times.is_sorted(), "{times:?}");
    let sum: f64 = trace
        .records
        .iter()
        .map(|report| report["over_seconds"].as_f64().expect("seconds"))
        .sum();
    let all = times.last().expect("a report");
    assert!((sum - all).abs() < 1e-6, "{sum} is not {all}: rates leave no time out");
}

#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn a_live_process_that_holds_too_much_is_a_leak_when_watching_ends() {
    let program = leaking();
    let running = attach(&program, &["--fail-on", "leak", "--interval", "100ms"]);
    running.until_written("\"family\":\"device\"");
    let trace = running.stop();
    assert_eq!(trace.code(), 3, "{}", trace.stderr);
    assert_eq!(only(&trace)["ended"], false);
}

#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn watching_ends_with_the_last_of_its_processes() {
    let mut program = Program::held_sim(&["leak", "10"]);
    let running = attach(&program, &[]);
    program.go();
    let trace = running.finish().ok();
    let process = only(&trace);
    assert_eq!(
        (number(process, "held_bytes"), &process["late"]),
        (10 * KEPT, &false.into())
    );
}

#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn only_functions_about_memory_are_hooked() {
    let program = Program::sim(&["train", "0"]);
    let pid = program.pid().to_string();
    let running = Gpuscope::new(["leaks", "-p", &pid]).start().until_attached();
    // one byte for each function; all of them would be more than 400
    let hooked = running.probes_in(program.pid(), "libcudart.so.13");
    assert!((10..100).contains(&hooked), "{hooked}");
    let trace = running.stop().ok();
    // its loop allocates nothing, and what it had before is not claimed
    assert!(
        trace
            .stdout
            .contains("no call that takes or gives back memory was seen")
    );
    assert!(
        !trace.stdout.contains('\u{1b}'),
        "nothing is drawn where there is no terminal"
    );
}

/// A terminal: what programs see, and what a person would.
fn terminal() -> (OwnedFd, File) {
    let (mut ours, mut theirs) = (0, 0);
    let size = libc::winsize {
        ws_row: 12,
        ws_col: 60,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: fills two descriptors, which nobody else owns
    unsafe {
        let null = std::ptr::null_mut();
        assert_eq!(
            libc::openpty(&raw mut ours, &raw mut theirs, null, std::ptr::null(), &raw const size),
            0
        );
        (OwnedFd::from_raw_fd(theirs), File::from_raw_fd(ours))
    }
}

#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn on_a_terminal_a_table_is_drawn_in_place_and_gone_at_the_end() {
    let program = leaking();
    let (theirs, mut ours) = terminal();
    let pid = program.pid().to_string();
    let gpuscope = Gpuscope::new(["leaks", "-p", &pid, "--color", "never"]).env("TERM", "xterm");
    let running = gpuscope.stdout(theirs).start_as_set();
    let mut screen = Vec::new();
    let mut read = |until: &str| {
        while !String::from_utf8_lossy(&screen).contains(until) {
            let mut bytes = [0; 4096];
            // the end of a terminal is an error
            let count = ours.read(&mut bytes).unwrap_or(0);
            screen.extend_from_slice(&bytes[..count]);
            assert!(
                count > 0,
                "{:?} came before {until:?}",
                String::from_utf8_lossy(&screen)
            );
        }
        String::from_utf8_lossy(&screen).into_owned()
    };
    let drawn = read("A\u{1b}[J\u{1b}[?7l"); // drawn twice
    running.signal(libc::SIGINT);
    let whole = read("how allocations ended");
    assert!(drawn.contains("process") && drawn.contains("gpusim"), "{drawn:?}");
    let wide = drawn
        .split(['\n', '\r'])
        .filter(|line| !line.contains('\u{1b}'))
        .find(|line| line.chars().count() > 60);
    assert_eq!(wide, None);
    let (_, report) = whole.rsplit_once("\u{1b}[J").expect("the table is taken away");
    assert!(
        report.starts_with("── gpuscope: memory") && !report.contains('\u{1b}'),
        "{report:?}"
    );
    assert_eq!(running.finish().code(), 0);
}
