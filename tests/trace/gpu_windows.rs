//! What the GPU executed in windows: all of it within them, nothing between, and which part that is, is said.

use crate::findings::program::Defect;
use crate::support::{Gpuscope, Trace, number, sim_cupti};
use crate::work_truth::log::{Log, Logs, Operation};
use serde_json::Value;

/// Some four seconds of steps of 8 ms with pauses of 5 ms.
const PROGRAM: Defect = Defect {
    steps: 300,
    ..Defect::of("idle-gaps")
};
/// Between two windows of this pass 700 ms.
const WINDOWS: [&str; 2] = ["--gpu", "window=300ms/1s"];
const APART_NS: u64 = 400_000_000;

fn watched() -> (Trace, Log) {
    let logs = Logs::new();
    let command = PROGRAM.command();
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let gpuscope = logs.of(Gpuscope::run(&WINDOWS, &command));
    let trace = gpuscope.env("GPUSCOPE_CUPTI", sim_cupti()).finish().ok();
    (trace, logs.only())
}

fn ns(value: &Value) -> u64 {
    (value.as_f64().expect("a time") * 1e3).round() as u64
}

fn device(trace: &Trace) -> &Value {
    &trace.summary()["gpu"]["devices"][0]
}

fn windows(trace: &Trace) -> &Value {
    &trace.summary()["gpu"]["coverage"][0]["windows"]
}

/// When a line is about, CLOCK_MONOTONIC ns.
fn at(trace: &Trace, line: &Value) -> u64 {
    let start = number(&trace.records[0], "start_monotonic_ns");
    start + (line["ts"].as_f64().expect("a time") * 1e9).round() as u64
}

/// When activities of lines began and ended, CLOCK_MONOTONIC ns, as the driver's log has them: ascending.
fn told(trace: &Trace) -> Vec<(u64, u64)> {
    let spans = trace.of_type("gpu").map(|line| {
        let begin = at(trace, line);
        (begin, begin + ns(&line["duration_us"]))
    });
    let mut spans: Vec<(u64, u64)> = spans.collect();
    spans.sort_unstable();
    spans
}

/// What was told of window by window: from the first begin to the last, and how many.
fn bursts(spans: &[(u64, u64)]) -> Vec<(u64, u64, usize)> {
    let mut bursts: Vec<(u64, u64, usize)> = Vec::new();
    for (begin, _) in spans {
        match bursts.last_mut().filter(|last| begin - last.1 < APART_NS) {
            Some(last) => (last.1, last.2) = (*begin, last.2 + 1),
            None => bursts.push((*begin, *begin, 1)),
        }
    }
    bursts
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn within_windows_everything_is_told_and_between_them_nothing() {
    let (trace, log) = watched();
    let bursts = bursts(&told(&trace));
    assert!(bursts.len() >= 3, "{bursts:?}: {}", trace.stderr);
    // a tick of a number that has nine decimals
    let is_within = |one: &&Operation, from: u64, to: u64| (from - 1..=to + 1).contains(&one.start_ns);
    for (from, to, count) in &bursts {
        let ran = log.operations.iter().filter(|one| is_within(one, *from, *to)).count();
        assert_eq!(*count, ran, "{bursts:?}");
        assert!(to - from < 600_000_000, "{bursts:?}");
    }
    let all: usize = bursts.iter().map(|burst| burst.2).sum();
    assert!(all < log.operations.len() / 2, "{all} of {}", log.operations.len());
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn between_windows_there_is_the_idle_time_that_calls_prove() {
    let (trace, _) = watched();
    let begins: Vec<u64> = trace.of_type("idle").map(|line| at(&trace, line)).collect();
    let bursts = bursts(&told(&trace));
    for pair in bursts.windows(2) {
        let between = pair[0].1..pair[1].0;
        let number = begins.iter().filter(|begin| between.contains(begin)).count();
        assert!(number > 10, "{number} between {pair:?}: {}", trace.stderr);
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn which_part_was_measured_is_said_and_idle_time_is_of_that_part() {
    let (trace, _) = watched();
    let (told, spans) = (device(&trace), told(&trace));
    assert_eq!(told["certainty"], "measured", "{}", trace.stderr);
    let busy: u64 = spans.iter().map(|span| span.1 - span.0).sum();
    let (is_busy, idle, unmeasured) = (ns(&told["busy_us"]), ns(&told["idle_us"]), ns(&told["unmeasured_us"]));
    assert!(
        is_busy <= busy && is_busy + 10_000_000 * number(windows(&trace), "number") >= busy,
        "{told}"
    );
    assert_eq!(
        is_busy + idle + unmeasured,
        number(told, "last_ns") - number(told, "first_ns"),
        "{told}"
    );
    assert!(unmeasured > 2 * APART_NS, "{told}");
    let causes = told["idle_causes"].as_array().expect("causes").iter();
    assert_eq!(causes.map(|cause| ns(&cause["idle_us"])).sum::<u64>(), idle);
    assert!(
        ns(&told["longest_idle_us"]) < APART_NS,
        "a time between windows is no gap: {told}"
    );
    let words = "of 300.0 ms, one each 1.00 s; between them nothing is known but what calls prove";
    assert!(trace.stderr.contains(words), "{}", trace.stderr);
    assert_eq!(ns(&windows(&trace)["length_us"]), 300_000_000);
    assert_eq!(number(windows(&trace), "unopened"), 0);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn findings_that_rest_on_idle_time_say_which_part_was_measured() {
    let (trace, _) = watched();
    let all = crate::findings::program::findings(trace.summary());
    let finding = all.iter().find(|finding| finding["rule"] == "idle-gaps");
    let finding = finding.unwrap_or_else(|| panic!("none: {}", trace.stderr));
    assert_eq!(finding["certainty"], "bound");
    let weakened = finding["weakened"].as_str().expect("a note");
    assert!(
        weakened.starts_with("idle time is measured ") && weakened.contains(" of "),
        "{weakened}"
    );
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_report_of_a_recording_says_it_as_its_run_does() {
    let command = PROGRAM.command();
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let trace = Gpuscope::record(&WINDOWS, &command)
        .env("GPUSCOPE_CUPTI", sim_cupti())
        .finish()
        .ok();
    let file = trace.folder().join("t.arrows");
    let file = file.to_str().expect("a path");
    let report = Gpuscope::new(["report", file]).finish().ok().stdout;
    assert!(report.contains(" of 300.0 ms, one each 1.00 s"), "{report}");
    assert!(report.contains("but: idle time is measured "), "{report}");
    let json = Gpuscope::new(["report", "--json", file]).finish().ok();
    let json: Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!(json["idle"][0]["measured"], false, "of the whole time calls tell");
    let executed = &json["executed"];
    assert!(number(&executed["devices"][0], "unmeasured_ns") > 2 * APART_NS);
    assert!(number(&executed["coverage"][0]["windows"], "number") >= 3);
}
