//! Very many of everything: gpuscope's own memory has a limit, and what lies beyond it is said.

use crate::effort::{all_or, rounds, tried};
use crate::subject::Subject;
use crate::tracer::Tracer;
use serde_json::Value;

/// Of a program with all its names, in a build that is not optimised.
const MOST_BYTES: u64 = 512 << 20;

const WAYS: [&[&str]; 2] = [
    &["run", "-q", "--summary", "json"],
    &["run", "--summary", "json", "-o", "OUT/t.arrows"],
];

fn summary_of(way: &[&str], thing: &str, count: u64) -> (Value, u64) {
    let subject = Subject::new("many", &[thing, &count.to_string()]);
    let tracer = Tracer::start(&[way, &["--"], &subject.command()].concat());
    let output = tracer.finish();
    subject.assert_as_alone(&output, &format!("{way:?}"));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = stderr
        .lines()
        .find(|line| line.starts_with('{') && line.contains("\"summary\""));
    let summary = serde_json::from_str(line.unwrap_or_else(|| panic!("no summary: {stderr}"))).expect("JSON");
    (summary, count)
}

/// Its memory is bounded, and each call is in the totals.
fn bounded(thing: &str, name: &str, count: u64) {
    for way in all_or(1, &WAYS) {
        let (summary, count) = summary_of(way, thing, count);
        let functions = summary["functions"].as_array().expect("functions");
        let of = functions.iter().filter(|function| function["name"] == name);
        let calls: u64 = of.map(|function| function["calls"].as_u64().expect("a number")).sum();
        let bytes = summary["cost"]["tracer_rss_bytes"].as_u64().expect("a number");
        println!("{count} {thing}: {} MiB, unseen {}", bytes >> 20, summary["unseen"]);
        assert!(calls >= count, "{name}: {calls} of {count}; {}", summary["unseen"]);
        assert!(bytes < MOST_BYTES, "{count} {thing}: {bytes} bytes");
    }
    tried(count, &format!("{thing} in one run"));
}

#[test]
#[ignore = "needs root and BPF"]
fn a_million_streams() {
    bounded("streams", "cuStreamCreate", rounds(5_000, 20_000, 1_000_000, 5_000_000));
}

#[test]
#[ignore = "needs root and BPF"]
fn a_hundred_thousand_kernels() {
    bounded("kernels", "cuLaunchKernel", rounds(5_000, 20_000, 100_000, 1_000_000));
}

#[test]
#[ignore = "needs root and BPF"]
fn a_million_live_allocations() {
    bounded(
        "allocations",
        "cuMemAlloc_v2",
        rounds(5_000, 20_000, 1_000_000, 3_000_000),
    );
}

#[test]
#[ignore = "needs root and BPF"]
fn a_million_failures() {
    bounded("failures", "cuInit", rounds(5_000, 20_000, 1_000_000, 5_000_000));
}

#[test]
#[ignore = "needs root and BPF"]
fn five_thousand_processes() {
    bounded("processes", "cuMemAlloc_v2", rounds(100, 300, 5_000, 100_000));
}
