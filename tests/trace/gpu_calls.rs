//! Which call has caused an activity, in whatever file it stands: exports and parts of recordings number calls anew.

use crate::support::{Gpuscope, Trace, number, sim_cupti, sim_text, text};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// How much earlier than its call an activity may begin: clocks are no more even than that, ns.
const UNEVEN_NS: i64 = 5_000;

/// Activities whose call was found: those whose call has a line, and those whose call is in another part.
#[derive(Debug, Default, PartialEq, Eq)]
struct Resolved {
    here: u64,
    elsewhere: u64,
}

fn at(line: &Value) -> i64 {
    (line["ts"].as_f64().expect("a time") * 1e9).round() as i64
}

/// Whether a call gives devices such work.
fn gives(call: &Value, activity: &Value) -> bool {
    let class = call["class"]
        .as_str()
        .unwrap_or_else(|| call["category"].as_str().expect("a category"));
    match text(activity, "activity").as_str() {
        _ if activity.get("graph").is_some() => text(call, "name").contains("GraphLaunch"),
        "kernel" => class == "launch" && call["kernel"] == activity["name"],
        what => {
            class == what
                || call["name"]
                    .as_str()
                    .is_some_and(|name| name.to_lowercase().contains(what))
        }
    }
}

/// Each call that an activity names is there, is one of its kind, and was entered before it began.
fn resolved(lines: &[Value]) -> Resolved {
    let calls = lines.iter().filter(|line| line["type"] == "userspace");
    let calls: BTreeMap<u64, &Value> = calls.map(|call| (number(call, "event_id"), call)).collect();
    let mut resolved = Resolved::default();
    for activity in lines.iter().filter(|line| line["match"] == "ordered") {
        let named = (number(activity, "call_tid"), activity["call_ts_ns"].as_i64());
        let Some(id) = activity["call_id"].as_u64() else {
            let same = |call: &&&Value| (number(call, "tid"), Some(at(call))) == named;
            assert!(calls.values().find(same).is_none(), "{activity} has a call here");
            resolved.elsewhere += 1;
            continue;
        };
        let call = calls[&id];
        assert_eq!((number(call, "tid"), Some(at(call))), named, "{activity} {call}");
        assert!(gives(call, activity), "{activity} is not of {call}");
        assert!(at(call) <= at(activity) + UNEVEN_NS, "{activity} is before {call}");
        resolved.here += 1;
    }
    resolved
}

fn exported(file: &Path) -> Vec<Value> {
    let file = file.to_str().expect("a path");
    let lines = Gpuscope::new(["export", file, "--to", "jsonl", "-o", "-"])
        .finish()
        .ok();
    let lines = lines.stdout.lines();
    lines.map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn exported_activities_name_their_calls_as_the_live_ones_do() {
    let gpusim = sim_text("gpusim");
    for program in [&["train", "20"][..], &["graphs", "--seed", "5"]] {
        let command: Vec<&str> = std::iter::once(gpusim.as_str())
            .chain(program.iter().copied())
            .collect();
        let live = Gpuscope::run(&["--phases"], &command).env("GPUSCOPE_CUPTI", sim_cupti());
        let live = live.finish().ok();
        let entries: Vec<Value> = live
            .records
            .iter()
            .filter(|line| line["phase"] != "E")
            .cloned()
            .collect();
        let found = resolved(&entries);
        assert!(found.here > 0 && found.elsewhere == 0, "{program:?}: {found:?}");
        let recorded = Gpuscope::record(&[], &command).env("GPUSCOPE_CUPTI", sim_cupti());
        let recorded = recorded.finish().ok();
        let again = resolved(&exported(&recorded.folder().join("t.arrows")));
        assert_eq!(again, found, "{program:?}");
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn parts_of_a_recording_name_calls_by_what_they_keep() {
    let gpusim = sim_text("gpusim");
    let options = ["--rotate", "1s"];
    let trace = Gpuscope::record(&options, &[&gpusim, "train", "300"])
        .env("GPUSCOPE_CUPTI", sim_cupti())
        .env("GPUSIM_KERNEL_US", "500");
    let trace = trace.finish().ok();
    let all = resolved(&exported(&trace.folder().join("t.arrows")));
    assert!(all.here > 0 && all.elsewhere == 0, "{all:?}");
    let second = trace.folder().join("t.0002.arrows");
    assert!(second.exists(), "{}", trace.stderr);
    let parts = (1..).map(|part| trace.folder().join(format!("t.{part:04}.arrows")));
    let parts = parts
        .take_while(|part| part.exists())
        .map(|part| resolved(&exported(&part)));
    let sum = parts.fold(Resolved::default(), |sum, part| Resolved {
        here: sum.here + part.here,
        elsewhere: sum.elsewhere + part.elsewhere,
    });
    assert_eq!(sum.here + sum.elsewhere, all.here);
    assert!(sum.here > 0, "{sum:?}");
}

/// Sums of `by_site`: their places, and their time with that of no place, ns.
fn by_line(gpu: &Value) -> (Vec<String>, u64) {
    let us = |value: &Value| (value.as_f64().expect("a time") * 1e3).round() as u64;
    let sites = gpu["by_site"].as_array().expect("sites");
    let places = sites.iter().map(|site| text(site, "where")).collect();
    let known: u64 = sites.iter().map(|site| us(&site["total_us"])).sum();
    (places, known + us(&gpu["unattributed_us"]))
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn the_time_of_a_device_is_that_of_the_lines_that_asked_for_it() {
    let gpusim = sim_text("gpusim");
    for program in [&["train", "20"][..], &["graphs", "--seed", "5"]] {
        let command: Vec<&str> = std::iter::once(gpusim.as_str())
            .chain(program.iter().copied())
            .collect();
        let run = Gpuscope::run(&["--stacks", "launch"], &command).env("GPUSCOPE_CUPTI", sim_cupti());
        let trace = run.finish().ok();
        let gpu = &trace.summary()["gpu"];
        let (places, ns) = by_line(gpu);
        assert!(
            places.iter().any(|place| place.contains("gpusim::")),
            "{program:?}: {places:?}"
        );
        let activities = trace
            .of_type("gpu")
            .map(|line| (line["duration_us"].as_f64().expect("a time") * 1e3).round() as u64);
        assert_eq!(ns, activities.sum::<u64>(), "{program:?}: {gpu}");
        assert!(trace.stderr.contains("by line of the program; "), "{}", trace.stderr);
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_run_without_lines_and_a_report_say_it_too() {
    let command = [&sim_text("gpusim"), "train", "20"];
    let quiet = Gpuscope::run(&["-q", "--stacks", "launch"], &command).env("GPUSCOPE_CUPTI", sim_cupti());
    let quiet = quiet.finish().ok();
    assert!(quiet.stderr.contains("by line of the program; "), "{}", quiet.stderr);
    assert!(quiet.stderr.contains("calls found for 100.0 %"), "{}", quiet.stderr);
    let recorded = Gpuscope::record(&["--stacks", "launch"], &command).env("GPUSCOPE_CUPTI", sim_cupti());
    let recorded = recorded.finish().ok();
    let file = recorded.folder().join("t.arrows");
    let report = Gpuscope::new(["report", file.to_str().expect("a path")]).finish().ok();
    assert!(
        report.stdout.contains("GPU time, by line of the program: "),
        "{}",
        report.stdout
    );
    assert!(
        report.stdout.contains("belongs to no line that is known"),
        "{}",
        report.stdout
    );
}

fn early(trace: &Trace) -> u64 {
    number(&trace.summary()["gpu"]["coverage"][0], "early")
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn activities_that_begin_before_their_calls_are_counted_and_name_none() {
    let gpusim = sim_text("gpusim");
    let watched = |fault: &str| {
        let trace = Gpuscope::run(&[], &[gpusim.as_str(), "item", "--steps", "20"])
            .env("GPUSCOPE_CUPTI", sim_cupti())
            .env("GPUSIM_CUPTI", fault);
        trace.finish().ok()
    };
    let sound = watched("");
    assert_eq!(early(&sound), 0, "{}", sound.stderr);
    let trace = watched("early=5");
    let early = early(&trace);
    let none = trace.of_type("gpu").filter(|line| line["match"] == "none").count() as u64;
    assert!(early > 0 && early <= none, "{early} of {none}: {}", trace.stderr);
    assert!(
        trace.stderr.contains("began before the call whose turn it was"),
        "{}",
        trace.stderr
    );
}
