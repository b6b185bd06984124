//! Where the host is while it keeps its device waiting is named: file, line, function.

use super::program::findings;
use super::support::{Gpuscope, Trace, compile, eventually, number, sim_cupti, sim_text, text};
use gpuscope::findings::Examiner;
use gpuscope::trace::Reader;
use serde_json::Value;

const LOAD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/load.py");
const ASLEEP: &str = "load.py:21 load_batch";

fn command<'a>(driver: &'a str, how: &'a str) -> [&'a str; 5] {
    ["python3", LOAD, driver, "200", how]
}

fn run(options: &[&str], how: &str) -> Trace {
    Gpuscope::run(options, &command(&sim_text("libcuda.so.1"), how))
        .finish()
        .ok()
}

fn host_bound(findings: &[Value]) -> &Value {
    let found = findings.iter().find(|finding| finding["rule"] == "host-bound");
    found.unwrap_or_else(|| panic!("{findings:#?}"))
}

/// Per cent of the samples that lie in places whose name ends so.
fn percent(places: &Value, end: &str) -> u64 {
    let places = places.as_array().expect("places").iter();
    let there = places.filter(|place| text(place, "where").ends_with(end));
    there.map(|place| number(place, "percent")).sum()
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_host_that_sleeps_is_named_by_the_line_it_sleeps_in() {
    let trace = run(&[], "sleep");
    let finding = host_bound(findings(trace.summary()));
    assert!(percent(&finding["places"], ASLEEP) >= 80, "{finding:#}");
    assert_eq!(finding["where"], ASLEEP);
    assert!(
        text(finding, "what").contains(&format!(" % in {ASLEEP}")),
        "{finding:#}"
    );
    let outside = &trace.summary()["outside_cuda"];
    assert_eq!(outside.as_array().map(Vec::len), Some(1), "{outside:#}");
    assert!(percent(&outside[0]["places"], ASLEEP) >= 50, "{outside:#}");
    assert!(trace.stderr.contains(&format!(" % in {ASLEEP}")), "{}", trace.stderr);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_host_that_works_is_named_by_its_function() {
    let trace = run(&[], "work");
    let finding = host_bound(findings(trace.summary()));
    assert!(percent(&finding["places"], " load_batch") >= 80, "{finding:#}");
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_host_that_the_kernel_fetches_pages_for_is_named_by_its_function() {
    const FAULTING: &str = include_str!("../../support/faulting_user.c");
    let folder = tempfile::tempdir().expect("a folder");
    let flags = ["-O1", "-g", "-fno-omit-frame-pointer", "-ldl"];
    let program = compile(folder.path(), "faulting", FAULTING, &flags);
    let command = [program.display().to_string(), sim_text("libcuda.so.1"), "30".to_owned()];
    let trace = Gpuscope::run(&[], &command.each_ref().map(String::as_str))
        .finish()
        .ok();
    let outside = &trace.summary()["outside_cuda"][0];
    let [touch, compute] = [" touch", " compute"].map(|place| percent(&outside["places"], place));
    assert!(touch >= 40 && compute >= 10, "{outside:#}");
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn without_stacks_no_place_is_named_and_that_is_said() {
    let trace = run(&["--stacks", "none"], "sleep");
    let finding = host_bound(findings(trace.summary()));
    assert_eq!(finding["places"], Value::Array(Vec::new()));
    assert!(text(finding, "what").contains("not sampled"), "{finding:#}");
    assert_eq!(trace.summary()["outside_cuda"], Value::Null);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_recording_names_the_places_of_its_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("t.arrows");
    let path = file.to_str().expect("UTF-8");
    let driver = sim_text("libcuda.so.1");
    let words = ["run", "-o", path, "--"].into_iter().chain(command(&driver, "sleep"));
    let trace = Gpuscope::new(words).finish();
    assert_eq!(trace.code(), 0, "{}", trace.stderr);
    let mut engine = Examiner::new();
    let end = Reader::open(&file).expect("a recording").read(&mut engine);
    let summary: Value = end.summary.expect("a summary").parse().expect("JSON");
    let again = engine.findings();
    let again = again
        .iter()
        .find(|finding| finding.rule == "host-bound")
        .expect("the finding");
    let live = host_bound(findings(&summary));
    assert_eq!(again.places[0].place, ASLEEP);
    assert_eq!(live["places"][0]["where"], ASLEEP);
    assert_eq!(number(&live["places"][0], "ns"), again.places[0].ns);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_call_that_hangs_says_the_line_of_python_that_waits() {
    let driver = sim_text("libcuda.so.1");
    let words = ["run", "--"].into_iter().chain(command(&driver, "sleep"));
    let run = Gpuscope::new(words).env("GPUSIM_KERNEL_US", "600000000").start();
    eventually("a line of the call, and where it is", || {
        let told = run.stdout();
        let below = told.split_once("cuCtxSynchronize() … has not returned after ");
        below.is_some_and(|(_, below)| below.contains("load.py:39 train"))
    });
    run.signal(libc::SIGTERM);
}

const LAUNCHING: &str = include_str!("../../support/launching_thread.c");
const WAITS: &str = "eager.py:36 backward";
const EAGER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/eager.py");

/// A device that told what it did, and a host that is never outside CUDA for a millisecond.
fn eager(options: &[&str], thread: &[&str]) -> Trace {
    let driver = sim_text("libcuda.so.1");
    let command = [&["python3", EAGER, &driver, "300"], thread].concat();
    Gpuscope::run(options, &command)
        .env("GPUSCOPE_CUPTI", sim_cupti())
        .finish()
        .ok()
}

fn launch_bound(trace: &Trace) -> &Value {
    let mut all = findings(trace.summary()).iter();
    let found = all.find(|finding| finding["rule"] == "launch-bound");
    found.unwrap_or_else(|| panic!("{}", trace.stderr))
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_host_that_works_a_little_between_launches_is_named_by_looks_at_it() {
    let trace = eager(&[], &[]);
    let finding = launch_bound(&trace);
    assert!(percent(&finding["places"], " work") >= 80, "{finding:#}");
    assert!(text(finding, "where").ends_with(" work"), "{finding:#}");
    let outside = &trace.summary()["outside_cuda"][0];
    assert!(number(outside, "looks_between") >= 20, "{outside:#}");
    assert!(percent(&outside["places_between"], " work") >= 80, "{outside:#}");
    let causes = trace.summary()["gpu"]["devices"][0]["idle_causes"].as_array();
    let cause = causes.into_iter().flatten().find(|cause| cause["cause"] == "host-code");
    let cause = cause.unwrap_or_else(|| panic!("{}", trace.stderr));
    assert!(text(cause, "where").ends_with(" work"), "{cause:#}");
    assert_eq!(cause["where_estimated"], true);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn without_stacks_nobody_looks_between_calls() {
    let trace = eager(&["--stacks", "none"], &[]);
    let causes = trace.summary()["gpu"]["devices"][0]["idle_causes"].as_array();
    for cause in causes.into_iter().flatten() {
        assert_eq!(
            (&cause["where"], &cause["where_estimated"]),
            (&Value::Null, &Value::Bool(false))
        );
    }
}

/// The same where a thread beside Python launches, so often at once, while Python waits.
fn beside(at_once: &str) -> Trace {
    let folder = tempfile::tempdir().expect("a folder");
    let library = compile(folder.path(), "thread.so", LAUNCHING, &["-O2", "-shared", "-fPIC"]);
    eager(&[], &[&library.display().to_string(), at_once])
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_thread_beside_python_is_named_by_the_line_that_waits_for_it() {
    // for 12 ms, and for less than one
    for at_once in ["40", "2"] {
        let trace = beside(at_once);
        let finding = launch_bound(&trace);
        assert!(percent(&finding["places"], WAITS) >= 80, "{at_once}: {finding:#}");
        assert_eq!(finding["where"], WAITS, "{at_once}: {finding:#}");
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_thread_beside_python_that_waits_for_work_is_named_by_the_line_that_works() {
    let trace = beside("0");
    let mut all = findings(trace.summary()).iter();
    let gaps = all.find(|finding| finding["rule"] == "idle-gaps" || finding["rule"] == "host-bound");
    let gaps = gaps.unwrap_or_else(|| panic!("{}", trace.stderr));
    assert!(percent(&gaps["places"], " work") >= 60, "{gaps:#}");
    assert!(text(gaps, "where").ends_with(" work"), "{gaps:#}");
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_thread_that_nobody_waits_for_step_by_step_is_named_by_its_own_name() {
    let trace = beside("6000");
    let finding = launch_bound(&trace);
    assert!(percent(&finding["places"], "thread backward") >= 80, "{finding:#}");
}
