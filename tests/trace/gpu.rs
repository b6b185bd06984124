//! What the GPU executed: each activity that the simulated CUPTI tells of is what the simulated driver has run, by both engines, and
//! the program goes its way whatever becomes of CUPTI.

use crate::inside::{NOBODY, Public};
use crate::support::{Gpuscope, Trace, number, shell_script, sim_cupti, sim_text, text};
use crate::work_truth::log::{Log, Logs, Operation};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

pub const ENGINES: [&str; 2] = ["inside", "kernel"];

/// A program of the simulator under gpuscope, with CUPTI where it is found, and its log of work.
pub fn watched(engine: &str, options: &[&str], program: &[&str], settings: &[(&str, &str)]) -> (Trace, Log) {
    let logs = Logs::new();
    let gpusim = sim_text("gpusim");
    let command: Vec<&str> = std::iter::once(gpusim.as_str())
        .chain(program.iter().copied())
        .collect();
    let options: Vec<&str> = options.iter().copied().chain(["--engine", engine]).collect();
    let mut gpuscope = logs
        .of(Gpuscope::run(&options, &command))
        .env("GPUSCOPE_CUPTI", sim_cupti());
    for (name, value) in settings {
        gpuscope = gpuscope.env(name, value);
    }
    (gpuscope.finish().ok(), logs.only())
}

/// What CUPTI has records of.
pub fn executed(log: &Log) -> impl Iterator<Item = &Operation> {
    log.operations.iter().filter(|operation| operation.op != "prefetch")
}

/// How often each activity came: what it is, its name or direction, its bytes, and how long it took.
type Multiset = BTreeMap<(String, u64, u64), u64>;

fn of_log(log: &Log) -> Multiset {
    let mut all = Multiset::new();
    for operation in executed(log) {
        let key = (
            operation.op.clone(),
            operation.bytes,
            operation.end_ns - operation.start_ns,
        );
        *all.entry(key).or_default() += 1;
    }
    all
}

fn of_lines(trace: &Trace) -> Multiset {
    let mut all = Multiset::new();
    for line in trace.of_type("gpu") {
        let ns = (line["duration_us"].as_f64().expect("a time") * 1e3).round() as u64;
        let key = (text(line, "activity"), line["bytes"].as_u64().unwrap_or(0), ns);
        *all.entry(key).or_default() += 1;
    }
    all
}

pub fn device(trace: &Trace) -> &Value {
    let devices = trace.summary()["gpu"]["devices"].as_array().expect("devices");
    assert_eq!(devices.len(), 1, "{}", trace.stderr);
    &devices[0]
}

/// What it has copied, by direction.
pub fn copies(trace: &Trace) -> &Vec<Value> {
    device(trace)["copies"].as_array().expect("copies")
}

pub fn coverage(trace: &Trace) -> &Value {
    let coverage = trace.summary()["gpu"]["coverage"].as_array().expect("coverage");
    assert_eq!(coverage.len(), 1, "{}", trace.stderr);
    &coverage[0]
}

/// First begin, last end, and how long something of the device ran.
fn union(log: &Log) -> (u64, u64, u64) {
    let on_device = |operation: &&Operation| operation.direction.as_deref() != Some("HtoH");
    let mut spans: Vec<(u64, u64)> = executed(log)
        .filter(on_device)
        .map(|one| (one.start_ns, one.end_ns))
        .collect();
    spans.sort_unstable();
    let (mut busy, mut until) = (0, 0);
    for (start, end) in &spans {
        busy += end.saturating_sub(until.max(*start));
        until = until.max(*end);
    }
    (spans[0].0, until, busy)
}

fn ns(value: &Value) -> u64 {
    (value.as_f64().expect("a time") * 1e3).round() as u64
}

#[test]
#[ignore = "needs root and BPF: activities are told by its engine"]
fn every_activity_is_told_once_with_its_time_and_adds_up() {
    let programs: [&[&str]; 5] = [
        &["train", "30"],
        &["copies", "--seed", "7"],
        &["item", "--steps", "20"],
        &["graphs", "--seed", "5"],
        &["streams", "--seed", "2"],
    ];
    for engine in ENGINES {
        for program in programs {
            let (trace, mut log) = watched(engine, &[], program, &[]);
            let until = coverage(&trace)["no_copies_ns"].as_u64();
            assert_eq!(until.is_some(), program[0] == "graphs", "{program:?}: {}", trace.stderr);
            let is_told = |one: &Operation| one.op != "copy" || until.is_none_or(|until| one.end_ns <= until);
            log.operations.retain(is_told);
            assert_eq!(of_lines(&trace), of_log(&log), "{engine} {program:?}: {}", trace.stderr);
            let (first, last, busy) = union(&log);
            let told = device(&trace);
            assert_eq!(
                (number(told, "first_ns"), number(told, "last_ns")),
                (first, last),
                "{program:?}"
            );
            assert_eq!(ns(&told["busy_us"]), busy, "{program:?}");
            assert_eq!(ns(&told["idle_us"]), last - first - busy, "{program:?}");
            let certainty = until.map_or("measured", |_| "bound");
            assert_eq!(told["certainty"], certainty, "{program:?}: {}", coverage(&trace));
        }
    }
}

#[test]
#[ignore = "needs root and BPF: activities are told by its engine"]
fn kernels_have_the_names_and_shapes_of_their_launches() {
    let (trace, log) = watched("kernel", &["--full-names"], &["train", "10"], &[]);
    let mut runs: BTreeMap<String, u64> = BTreeMap::new();
    for operation in executed(&log).filter(|operation| operation.op == "kernel") {
        *runs.entry(operation.name.clone().expect("a name")).or_default() += 1;
    }
    let by_kernel = device(&trace)["by_kernel"].as_array().expect("kernels");
    let told: BTreeMap<String, u64> = by_kernel
        .iter()
        .map(|one| (text(one, "symbol"), number(one, "runs")))
        .collect();
    assert_eq!(told, runs);
    assert!(trace.stderr.contains("CUPTI 13.0.1 ("), "{}", trace.stderr);
    let launches: Vec<&Value> = trace.calls_of("cuLaunchKernel").collect();
    let kernels: Vec<&Value> = trace
        .of_type("gpu")
        .filter(|line| line["activity"] == "kernel")
        .collect();
    assert_eq!(launches.len(), kernels.len());
    for (launch, kernel) in launches.iter().zip(&kernels) {
        assert_eq!(launch["kernel"], kernel["name"], "a stream's work is in order");
        assert_eq!(launch["args"]["gridDimX"], kernel["grid"][0], "{launch} {kernel}");
    }
}

/// Calls that were found for activities, and those that were not: each is the one that the driver's log names, or one around it.
fn matched(trace: &Trace, log: &Log) -> (u64, u64) {
    let start = number(&trace.records[0], "start_monotonic_ns");
    let at = |line: &Value| start + (line["ts"].as_f64().expect("a time") * 1e9).round() as u64;
    let calls: BTreeMap<u64, &Value> = trace.calls().map(|call| (number(call, "event_id"), call)).collect();
    let (mut found, mut none) = (0, 0);
    for line in trace.of_type("gpu") {
        let Some(call) = line["call_id"].as_u64() else {
            none += 1;
            continue;
        };
        let (entered, begin) = (at(calls[&call]), at(line));
        let returned = entered + ns(&calls[&call]["duration_us"]);
        let is_it = |one: &&Operation| one.op == line["activity"] && one.start_ns.abs_diff(begin) <= 1;
        let mut same = executed(log).filter(is_it);
        // ts has nine decimals, which a number has room for as long as the machine is not up for months
        assert!(
            same.any(|one| entered <= one.submitted_ns + 1 && one.submitted_ns <= returned + 1),
            "{line} is not of {}",
            calls[&call]
        );
        found += 1;
    }
    (found, none)
}

#[test]
#[ignore = "needs root and BPF: activities are told by its engine"]
fn each_activity_leads_to_the_call_that_has_caused_it() {
    let programs: [(&[&str], u64); 5] = [
        (&["train", "20"], 0),
        (&["graphs", "--seed", "5"], 0),
        (&["streams", "--seed", "2"], 0),
        (&["threads", "4", "20"], 0),
        (&["backpressure", "--launches", "2000"], 0),
    ];
    for engine in ENGINES {
        for (program, unmatched) in programs {
            let (trace, log) = watched(engine, &[], program, &[]);
            let (found, none) = matched(&trace, &log);
            assert!(
                found > 0 && none == unmatched,
                "{engine} {program:?}: {found} and {none}"
            );
            assert_eq!(number(&trace.summary()["gpu"]["matched"], "ordered"), found);
        }
    }
}

#[test]
#[ignore = "needs root and BPF: activities are told by its engine"]
fn a_recording_has_them_for_reports_and_pictures() {
    let gpusim = sim_text("gpusim");
    let trace = Gpuscope::record(&["--engine", "inside"], &[gpusim.as_str(), "train", "20"])
        .env("GPUSCOPE_CUPTI", sim_cupti())
        .finish()
        .ok();
    let file = trace.folder().join("t.arrows");
    let file = file.to_str().expect("a path");
    let report = Gpuscope::new(["report", file]).finish().ok();
    assert!(report.stdout.contains("GPU, as executed"), "{}", report.stdout);
    assert!(report.stdout.contains("(measured); 400 kernels; "), "{}", report.stdout);
    let lines = Gpuscope::new(["export", file, "--to", "jsonl", "-o", "-"])
        .finish()
        .ok();
    let kernels = lines.stdout.matches("\"activity\":\"kernel\"").count();
    assert_eq!(
        (kernels, lines.stdout.matches("\"match\":\"ordered\"").count()),
        (400, 460)
    );
    let chrome = Gpuscope::new(["export", file, "--to", "chrome", "-o", "-"])
        .finish()
        .ok();
    assert!(chrome.stdout.contains("GPU 0 stream "), "a lane for each stream");
    let chrome: Value = serde_json::from_str(&chrome.stdout).expect("JSON");
    let arrows = chrome["traceEvents"].as_array().expect("events").iter();
    let arrows = arrows.filter(|event| event["ph"] == "f" && event["id"].as_u64() >= Some(1 << 49));
    assert_eq!(arrows.count(), 460, "an arrow for each whose call is known");
    let json = Gpuscope::new(["report", "--json", file]).finish().ok();
    let json: Value = serde_json::from_str(&json.stdout).expect("JSON");
    let executed = &json["executed"]["devices"][0];
    assert_eq!(
        (number(executed, "kernels"), &executed["certainty"]),
        (400, &Value::from("measured"))
    );
    let copies = executed["copies"].as_array().expect("copies").iter();
    let copies: u64 = copies.map(|copies| number(copies, "count")).sum();
    assert_eq!(copies + number(executed, "memsets"), 60);
    assert_eq!(number(&json["executed"]["matched"], "ordered"), 460);
    assert!(
        report.stdout.contains("calls found for 100.0 % of 460"),
        "{}",
        report.stdout
    );
    let picture = Gpuscope::new(["timeline", file]).finish().ok();
    assert!(picture.stdout.contains("  gpu0 stream "), "{}", picture.stdout);
    let same = Gpuscope::new(["diff", file, file]).finish().ok();
    assert!(same.stdout.contains("GPU busy, as executed"), "{}", same.stdout);
}

#[test]
#[ignore = "needs root and BPF: activities are told by its engine"]
fn a_report_of_a_recording_says_what_is_missing() {
    let gpusim = sim_text("gpusim");
    let trace = Gpuscope::record(&["--engine", "inside"], &[gpusim.as_str(), "train", "20"])
        .env("GPUSCOPE_CUPTI", sim_cupti())
        .env("GPUSIM_CUPTI", "lost=10")
        .finish()
        .ok();
    let file = trace.folder().join("t.arrows");
    let report = Gpuscope::new(["report", file.to_str().expect("a path")]).finish().ok();
    let said = &report.stdout;
    assert!(
        said.contains("46 records dropped by CUPTI") && said.contains("lost: 46 records of what the GPU executed"),
        "{said}"
    );
    assert!(!said.contains("lost: nothing"), "{said}");
}

#[test]
#[ignore = "needs root and BPF: activities are told by its engine"]
fn a_user_without_rights_gets_it_too() {
    let public = Public::new();
    let cupti = public.path("libcupti.so.13");
    std::fs::copy(sim_cupti(), &cupti).expect("a copy");
    let done = std::process::Command::new(NOBODY[0])
        .args(&NOBODY[1..])
        .arg(public.path("gpuscope"))
        .args(["run", "-q", "--summary", "json", "--", "./gpusim", "train", "20"])
        .current_dir(cupti.parent().expect("a folder"))
        .env_remove("XDG_RUNTIME_DIR")
        .env_remove("GPUSCOPE_ENGINE")
        .env("GPUSCOPE_CUPTI", &cupti)
        .output()
        .expect("setpriv");
    let stderr = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(0), "{stderr}");
    let line = stderr.lines().find(|line| line.starts_with('{')).expect("a summary");
    let summary: Value = serde_json::from_str(line).expect("JSON");
    assert_eq!(summary["gpu"]["devices"][0]["kernels"], 400);
    assert_eq!(summary["gpu"]["coverage"][0]["seen"], true);
}

#[test]
#[ignore = "needs root and BPF: activities are told by its engine"]
fn where_cupti_refuses_the_summary_says_why_and_calls_are_traced_all_the_same() {
    for (fault, words) in [
        ("held", "another tool holds CUPTI"),
        ("new", "is too new for the driver"),
    ] {
        let (trace, log) = watched("inside", &[], &["train", "5"], &[("GPUSIM_CUPTI", fault)]);
        assert_eq!(trace.of_type("gpu").count(), 0);
        assert_eq!(coverage(&trace)["seen"], false);
        assert!(text(coverage(&trace), "why").contains(words), "{}", coverage(&trace));
        assert!(trace.stderr.contains(words), "{}", trace.stderr);
        assert_eq!(trace.calls_of("cuLaunchKernel").count(), 100);
        assert_eq!(log.operations.len(), 115);
    }
    let (trace, _) = watched(
        "inside",
        &[],
        &["train", "5"],
        &[("GPUSCOPE_CUPTI", "/nowhere/libcupti.so")],
    );
    assert!(
        text(coverage(&trace), "why").contains("no CUPTI was found"),
        "{}",
        coverage(&trace)
    );
}

#[test]
#[ignore = "needs root and BPF: activities are told by its engine"]
fn records_that_make_no_sense_are_counted_and_left_out() {
    for (fault, field) in [
        ("zero=10", "invalid"),
        ("reversed=10", "invalid"),
        ("lost=10", "dropped"),
    ] {
        let (trace, log) = watched("inside", &[], &["train", "20"], &[("GPUSIM_CUPTI", fault)]);
        let told = trace.of_type("gpu").count();
        let missing = number(coverage(&trace), field);
        assert_eq!(
            (missing, told as u64 + missing),
            (46, executed(&log).count() as u64),
            "{fault}"
        );
        assert_eq!(device(&trace)["certainty"], "bound", "{fault}");
        assert!(trace.stderr.contains("at least"), "{}", trace.stderr);
        assert!(
            trace.stderr.contains("46 records of what the GPU executed") && !trace.stderr.contains("lost: nothing"),
            "{}",
            trace.stderr
        );
    }
}

#[test]
#[ignore = "needs root and BPF: activities are told by its engine"]
fn a_cupti_that_asks_nobody_for_the_time_has_its_clock_fitted() {
    let (trace, log) = watched("inside", &[], &["train", "20"], &[("GPUSIM_CUPTI", "clock")]);
    assert_eq!(coverage(&trace)["clock"], "fitted");
    let (first, last, _) = union(&log);
    let told = device(&trace);
    let apart = |what: &str, truth: u64| number(told, what).abs_diff(truth);
    // as near as two clocks can be read by a thread that others interrupt
    assert!(
        apart("first_ns", first) < 5_000_000 && apart("last_ns", last) < 5_000_000,
        "{told}"
    );
}

#[test]
#[ignore = "needs root and BPF: activities are told by its engine"]
fn the_program_ends_though_cupti_does_not() {
    let begun = Instant::now();
    let (trace, _) = watched("inside", &[], &["train", "5"], &[("GPUSIM_CUPTI", "hang")]);
    assert!(begun.elapsed() < Duration::from_secs(40), "{}", trace.stderr);
    assert_eq!(trace.calls_of("cuLaunchKernel").count(), 100);
}

#[test]
#[ignore = "needs root and BPF: activities are told by its engine"]
fn what_is_injected_already_stays() {
    let other = |options: &[&str]| {
        let gpusim = sim_text("gpusim");
        Gpuscope::run(options, &[gpusim.as_str(), "train", "5"])
            .env("CUDA_INJECTION64_PATH", "/somebody/else.so")
            .env("GPUSCOPE_CUPTI", sim_cupti())
            .finish()
    };
    let trace = other(&["--engine", "inside"]).ok();
    assert_eq!(trace.of_type("gpu").count(), 0);
    assert!(text(&trace.summary()["gpu"], "refused").contains("/somebody/else.so"));
    assert!(trace.stderr.contains("hint: unset it"), "{}", trace.stderr);
    let trace = other(&["--engine", "inside", "--gpu", "on"]);
    assert_eq!(trace.code(), 125);
    assert!(trace.stderr.contains("hint: unset it"), "{}", trace.stderr);
}

/// It ends where CUDA is to load anybody's library.
#[test]
#[ignore = "needs root and BPF: activities are told by its engine"]
fn nsight_compute_is_started_without_a_library_that_cuda_loads() {
    let folder = tempfile::tempdir().expect("a folder");
    let ncu = shell_script(folder.path(), "ncu", "[ -z \"$CUDA_INJECTION64_PATH\" ] && exec \"$@\"");
    let (ncu, gpusim) = (ncu.to_str().expect("a path"), sim_text("gpusim"));
    let run = |options: &[&str]| Gpuscope::run(options, &[ncu, gpusim.as_str(), "train", "5"]).finish();
    for engine in ENGINES {
        let trace = run(&["--engine", engine]).ok();
        assert_eq!(
            trace.calls_of("cuLaunchKernel").count(),
            100,
            "{engine}: {}",
            trace.stderr
        );
        let words = "ncu does not run where CUDA_INJECTION64_PATH is set";
        assert!(trace.stderr.contains(words), "{engine}: {}", trace.stderr);
        assert_eq!(run(&["--engine", engine, "--gpu", "on"]).code(), 125, "{engine}");
    }
}

#[test]
#[ignore = "needs root and BPF: activities are told by its engine"]
fn off_is_off() {
    let (trace, _) = watched("inside", &["--gpu", "off"], &["train", "5"], &[]);
    assert_eq!(trace.summary()["gpu"], Value::Null);
    assert_eq!(trace.of_type("gpu").count(), 0);
}

#[test]
#[ignore = "needs root and BPF: activities are told by its engine"]
fn what_was_handed_over_outlives_a_program_that_is_killed() {
    let gpusim = sim_text("gpusim");
    // a second is longer than what was done waits to be handed over
    let script = format!("{gpusim} stall --steps 100000 & sleep 2; kill -9 $!; wait");
    let trace = Gpuscope::script(&["--engine", "inside"], &script)
        .env("GPUSCOPE_CUPTI", sim_cupti())
        .finish();
    assert!(trace.of_type("gpu").count() > 0, "{}", trace.stderr);
    assert_eq!(coverage(&trace)["broken_off"], true);
    assert_eq!(device(&trace)["certainty"], "bound");
}

#[test]
#[ignore = "needs root and BPF: activities are told by both engines"]
fn what_is_handed_over_behind_later_activities_leads_to_its_calls_all_the_same() {
    let program = [
        "stall",
        "--steps",
        "600",
        "--kernels",
        "4",
        "--kernel-ns",
        "100000",
        "--host-ns",
        "1000000",
    ];
    for engine in ENGINES {
        let (trace, log) = watched(engine, &[], &program, &[("GPUSIM_CUPTI", "shuffled=5")]);
        let told: Vec<&Value> = trace.of_type("gpu").collect();
        assert_eq!(told.len(), executed(&log).count(), "{engine}");
        let unknown = told.iter().filter(|line| line["match"] != "ordered").count();
        assert_eq!(unknown, 0, "{engine}: {}", trace.stderr);
        assert_eq!(coverage(&trace)["late"], false, "{engine}: {}", trace.stderr);
    }
}
