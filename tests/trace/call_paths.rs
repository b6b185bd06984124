//! Time by call path of a recording: what profilers get of it, and what the report says, are the same time.

use crate::support::{Gpuscope, Trace, sim_cupti, sim_text};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn recorded(options: &[&str], program: &[&str]) -> (Trace, PathBuf) {
    let gpusim = sim_text("gpusim");
    let command: Vec<&str> = std::iter::once(gpusim.as_str())
        .chain(program.iter().copied())
        .collect();
    let trace = Gpuscope::record(options, &command).env("GPUSCOPE_CUPTI", sim_cupti());
    let trace = trace.finish().ok();
    let file = trace.folder().join("t.arrows");
    (trace, file)
}

fn exported(file: &Path, format: &str, weight: &str) -> Trace {
    let file = file.to_str().expect("a path");
    Gpuscope::new(["export", file, "--to", format, "--weight", weight]).finish()
}

fn report(file: &Path) -> Value {
    let trace = Gpuscope::new(["report", file.to_str().expect("a path"), "--json"]).finish();
    serde_json::from_str(&trace.ok().stdout).expect("JSON")
}

fn sum<'a>(rows: &'a Value, fields: &'a [&str]) -> u64 {
    let rows = rows.as_array().expect("rows").iter();
    rows.flat_map(|row| fields.iter().map(|field| row[*field].as_u64().expect("ns")))
        .sum()
}

/// Time of lines that end with a number, and of those with `word` in them.
fn weighed(lines: &str, word: &str) -> (u64, u64) {
    let ns = |line: &&str| {
        line.rsplit(' ')
            .next()
            .and_then(|ns| ns.parse::<u64>().ok())
            .expect("ns")
    };
    let with = lines.lines().filter(|line| line.contains(word));
    (
        lines.lines().map(|line| ns(&line)).sum(),
        with.map(|line| ns(&line)).sum(),
    )
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn profiles_have_all_time_of_the_report_by_the_functions_that_took_it() {
    for program in [&["train", "20"][..], &["graphs", "--seed", "5"]] {
        let (_trace, file) = recorded(&["--stacks", "all"], program);
        let report = report(&file);
        let devices = &report["executed"]["devices"];
        let copies: u64 = devices
            .as_array()
            .expect("devices")
            .iter()
            .map(|device| sum(&device["copies"], &["total_ns"]))
            .sum();
        let executed = sum(devices, &["kernel_ns", "memset_ns"]) + copies;
        let lines = exported(&file, "collapsed", "gpu").ok().stdout;
        let (all, placed) = weighed(&lines, "gpusim::");
        assert_eq!((all, placed), (executed, executed), "{program:?}: {lines}");
        let lines = exported(&file, "collapsed", "wait").ok().stdout;
        assert_eq!(
            weighed(&lines, "").0,
            sum(&report["waits"], &["total_ns"]),
            "{program:?}: {lines}"
        );
        let profile: Value = serde_json::from_str(&exported(&file, "speedscope", "gpu").ok().stdout).expect("JSON");
        assert_eq!(sum(&profile["profiles"], &["endValue"]), executed, "{program:?}");
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_page_draws_both_times_and_says_what_is_missing() {
    let page = |file: &Path| {
        let file = file.to_str().expect("a path");
        Gpuscope::new(["report", file, "--html", "-"]).finish().ok().stdout
    };
    let (_trace, file) = recorded(&["--stacks", "all"], &["train", "20"]);
    let with = page(&file);
    assert!(
        with.contains("id=\"flame-gpu\"") && with.contains("id=\"flame-wait\""),
        "{with}"
    );
    // a thread that was outside CUDA for long is sampled at its next call, without the option, too
    let (_trace, file) = recorded(&["--stacks", "none"], &["train", "20"]);
    let without = page(&file);
    assert!(
        without.contains("No call path of what GPUs executed is known"),
        "{without}"
    );
    let said = exported(&file, "pprof", "gpu").stderr;
    assert!(said.contains("hint: record with --stacks all"), "{said}");
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn without_activities_their_time_is_refused() {
    let (_trace, file) = recorded(&["--gpu", "off"], &["train", "20"]);
    let refused = exported(&file, "collapsed", "gpu");
    assert_eq!(refused.code(), 1, "{}", refused.stderr);
    assert!(refused.stderr.contains("hint: --weight wait"), "{}", refused.stderr);
    assert!(weighed(&exported(&file, "collapsed", "wait").ok().stdout, "").0 > 0);
}
