//! Why a GPU had nothing to do: programs that keep it waiting in one way, and that one named; what is measured is what the simulated
//! driver has run.

use crate::findings::program::Defect;
use crate::support::{Gpuscope, Trace, number, sim_cupti, text};
use crate::work_truth::log::{Log, Logs};
use serde_json::Value;

/// Others may take processors from the programs of these tests, too.
const OF_THE_MACHINE: &str = "no-processor";

/// A program with CUPTI, and its log of work.
fn watched(defect: Defect) -> (Trace, Log) {
    watched_with(defect, "")
}

/// The same with what the simulated CUPTI does beside: `GPUSIM_CUPTI`.
fn watched_with(defect: Defect, cupti: &str) -> (Trace, Log) {
    let logs = Logs::new();
    let command = defect.command();
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let gpuscope = logs.of(defect.set(Gpuscope::run(&["--stacks", "all"], &command)));
    let gpuscope = gpuscope.env("GPUSCOPE_CUPTI", sim_cupti()).env("GPUSIM_CUPTI", cupti);
    (gpuscope.finish().ok(), logs.only())
}

fn device(trace: &Trace) -> &Value {
    let devices = trace.summary()["gpu"]["devices"].as_array().expect("devices");
    assert_eq!(devices.len(), 1, "{}", trace.stderr);
    &devices[0]
}

fn causes(trace: &Trace) -> &Vec<Value> {
    device(trace)["idle_causes"].as_array().expect("causes")
}

fn ns(value: &Value) -> u64 {
    (value.as_f64().expect("a time") * 1e3).round() as u64
}

/// The cause of most of the idle time, what the machine does to the program aside.
fn planted(trace: &Trace) -> &Value {
    let mut all = causes(trace).iter();
    let most = all.find(|cause| cause["cause"] != OF_THE_MACHINE);
    most.unwrap_or_else(|| panic!("none: {}", trace.stderr))
}

/// How long the device of a log did nothing, each time.
fn gaps(log: &Log) -> Vec<u64> {
    spans(log).into_iter().map(|(since, until)| until - since).collect()
}

/// Times in which it did nothing.
fn spans(log: &Log) -> Vec<(u64, u64)> {
    let mut spans: Vec<(u64, u64)> = log.operations.iter().map(|one| (one.start_ns, one.end_ns)).collect();
    spans.sort_unstable();
    let mut until = spans[0].0;
    let mut gaps = Vec::new();
    for (start, end) in spans {
        gaps.extend(Some((until, start)).filter(|_| start > until));
        until = until.max(end);
    }
    gaps
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn the_cause_that_was_planted_is_named() {
    for (kind, setting, cause) in [
        ("late-rank", "", "blocked"),
        ("idle-gaps", "", "blocked"),
        ("launch-bound", "", "host-code"),
        ("alloc-between", "GPUSIM_ALLOC_US=3000", "memory"),
        ("host-function", "", "host-function"),
    ] {
        let (trace, _) = watched(Defect {
            setting,
            ..Defect::of(kind)
        });
        let named = planted(&trace);
        assert_eq!(named["cause"], cause, "{kind}: {}", trace.stderr);
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_host_without_a_processor_is_no_host_that_works() {
    let (trace, _) = watched(Defect {
        steps: 60,
        ..Defect::of("starved")
    });
    assert_eq!(causes(&trace)[0]["cause"], OF_THE_MACHINE, "{}", trace.stderr);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn causes_add_up_to_what_the_driver_did_not_run() {
    for kind in ["none", "idle-gaps", "launch-bound"] {
        let (trace, log) = watched(Defect::of(kind));
        let (told, truth) = (device(&trace), gaps(&log));
        assert_eq!(told["certainty"], "measured", "{}", trace.stderr);
        let idle: u64 = truth.iter().sum();
        assert_eq!(
            (ns(&told["idle_us"]), number(told, "idle_gaps")),
            (idle, truth.len() as u64),
            "{kind}"
        );
        let sums: u64 = causes(&trace).iter().map(|cause| ns(&cause["idle_us"])).sum();
        let number: u64 = causes(&trace).iter().map(|cause| number(cause, "gaps")).sum();
        assert_eq!((sums, number), (idle, truth.len() as u64), "{kind}: {}", trace.stderr);
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn idle_time_between_start_up_and_end_is_told_apart_with_its_causes() {
    // two seconds of start-up
    let (trace, log) = watched(Defect {
        steps: 300,
        ..Defect::of("host-bound")
    });
    let told = device(&trace);
    let steady = &told["steady"];
    let (from, until) = (number(steady, "from_ns"), number(steady, "until_ns"));
    let within = |(since, end): (u64, u64)| end.min(until).saturating_sub(since.max(from));
    let idle: u64 = spans(&log).into_iter().map(within).sum();
    assert_eq!(ns(&steady["idle_us"]), idle, "{told:#}");
    let causes = steady["idle_causes"].as_array().expect("causes");
    assert_eq!(causes.iter().map(|cause| ns(&cause["idle_us"])).sum::<u64>(), idle);
    let longest = |causes: &[Value]| causes.iter().map(|cause| ns(&cause["longest_us"])).max();
    assert!(longest(causes) < Some(1_000_000_000), "{steady:#}");
    assert!(longest(self::causes(&trace)) > Some(1_900_000_000), "{told:#}");
    let touched = spans(&log).into_iter().filter(|span| within(*span) > 0).count();
    let gaps: u64 = causes.iter().map(|cause| number(cause, "gaps")).sum();
    assert_eq!(gaps, touched as u64, "{steady:#}");
    assert!(touched > 250, "{touched}");
    assert!(
        trace.stderr.contains("between start-up and end: idle "),
        "{}",
        trace.stderr
    );
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn each_longer_gap_has_a_line_with_its_cause_and_none_that_follows_from_calls_alone() {
    let (trace, log) = watched(Defect::of("idle-gaps"));
    let told: Vec<&Value> = trace.of_type("idle").collect();
    let long = gaps(&log).iter().filter(|ns| **ns >= 20_000).count();
    assert_eq!(told.len(), long, "{}", trace.stderr);
    assert!(told.iter().all(|line| !text(line, "cause").is_empty()), "{told:?}");
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_report_of_a_recording_says_why_as_its_run_does() {
    let command = Defect::of("idle-gaps").command();
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let trace = Gpuscope::record(&["--summary", "json"], &command)
        .env("GPUSCOPE_CUPTI", sim_cupti())
        .finish()
        .ok();
    let file = trace.folder().join("t.arrows");
    let file = file.to_str().expect("a path");
    let report = Gpuscope::new(["report", file]).finish().ok();
    assert!(
        report.stdout.contains("Why the GPU waited, process "),
        "{}",
        report.stdout
    );
    assert!(report.stdout.contains("(blocked)"), "{}", report.stdout);
    let json = Gpuscope::new(["report", "--json", file]).finish().ok();
    let json: Value = serde_json::from_str(&json.stdout).expect("JSON");
    let line = trace
        .stderr
        .lines()
        .find(|line| line.starts_with('{'))
        .expect("a summary");
    let summary: Value = serde_json::from_str(line).expect("JSON");
    let live = summary["gpu"]["devices"][0]["idle_causes"].as_array().expect("causes");
    let kept = json["executed"]["devices"][0]["idle_causes"]
        .as_array()
        .expect("causes");
    let live: Vec<(&Value, u64)> = live.iter().map(|one| (&one["cause"], ns(&one["idle_us"]))).collect();
    let kept: Vec<(&Value, u64)> = kept.iter().map(|one| (&one["cause"], number(one, "idle_ns"))).collect();
    assert_eq!(kept, live);
    assert_eq!(json["idle"][0]["measured"], true);
    let picture = Gpuscope::new(["timeline", file]).finish().ok();
    assert!(picture.stdout.contains("idle, as measured:  "), "{}", picture.stdout);
}

/// CUPTI's numbers of kinds of overhead.
const BUFFER_FLUSH: &str = "overhead=65536";
const DRIVER_COMPILE: &str = "overhead=1";

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_gap_that_cupti_takes_for_itself_is_the_profilers() {
    let (trace, log) = watched_with(Defect::of("idle-gaps"), BUFFER_FLUSH);
    let long: Vec<u64> = gaps(&log).into_iter().filter(|ns| *ns >= 1_000_000).collect();
    let told = causes(&trace).iter().find(|cause| cause["cause"] == "profiler");
    let told = told.unwrap_or_else(|| panic!("none: {}", trace.stderr));
    assert_eq!(
        (number(told, "gaps"), ns(&told["idle_us"])),
        (long.len() as u64, long.iter().sum()),
        "{}",
        trace.stderr
    );
    let overhead = &trace.summary()["gpu"]["overheads"][0];
    assert_eq!(
        (&overhead["kind"], number(overhead, "count")),
        (&Value::from("buffer-flush"), long.len() as u64)
    );
    let lines = trace.of_type("overhead").map(|line| ns(&line["duration_us"]));
    assert_eq!(lines.sum::<u64>(), long.iter().sum::<u64>());
    assert_eq!(device(&trace)["certainty"], "measured", "overhead is no work");
    assert!(
        trace.stderr.contains("CUPTI's own overhead in process "),
        "{}",
        trace.stderr
    );
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn what_the_driver_compiles_while_the_host_is_elsewhere_is_not_the_profilers() {
    let (trace, _) = watched_with(Defect::of("idle-gaps"), DRIVER_COMPILE);
    assert_eq!(planted(&trace)["cause"], "blocked", "{}", trace.stderr);
    let overhead = &trace.summary()["gpu"]["overheads"][0];
    assert_eq!(overhead["kind"], "driver-compile");
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn overhead_is_in_recordings_reports_and_pictures() {
    let command = Defect::of("idle-gaps").command();
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let trace = Gpuscope::record(&[], &command)
        .env("GPUSCOPE_CUPTI", sim_cupti())
        .env("GPUSIM_CUPTI", BUFFER_FLUSH)
        .finish()
        .ok();
    let file = trace.folder().join("t.arrows");
    let file = file.to_str().expect("a path");
    let shown = |arguments: &[&str]| Gpuscope::new(arguments.iter().copied()).finish().ok().stdout;
    let report = shown(&["report", file]);
    assert!(report.contains("CUPTI took the time for itself (profiler)"), "{report}");
    assert!(report.contains("CUPTI's own overhead in process "), "{report}");
    let picture = shown(&["timeline", file]);
    assert!(
        picture.contains("  CUPTI itself") && picture.contains("o profiler"),
        "{picture}"
    );
    let lines = shown(&["export", file, "--to", "jsonl", "-o", "-"]);
    assert!(lines.contains("\"name\":\"buffer-flush\",\"duration_us\":"), "{lines}");
    let chrome = shown(&["export", file, "--to", "chrome", "-o", "-"]);
    assert!(chrome.contains("CUPTI's overhead"), "no lane");
}
