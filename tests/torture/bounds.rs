//! Very many of everything: gpuscope's own memory has a limit, and what lies beyond it is said.

use crate::effort::{all_or, rounds, tried};
use crate::subject::Subject;
use crate::tracer::Tracer;
use serde_json::Value;
use std::thread::JoinHandle;
use std::time::Duration;

/// Of a program with all its names, in a build that is not optimised.
const MOST_BYTES: u64 = 512 << 20;

/// Of gpuscope itself, beside three for each process that lives.
const MOST_DESCRIPTORS: usize = 512;
const MOST_THREADS: usize = 64;

const WAYS: [&[&str]; 2] = [
    &["run", "-q", "--summary", "json"],
    &["run", "--summary", "json", "-o", "OUT/t.arrows"],
];

/// The most that gpuscope had at a time.
#[derive(Default, Clone, Copy)]
struct Peak {
    rss_mib: u64,
    descriptors: usize,
    threads: usize,
}

impl Peak {
    fn take(&mut self, now: Peak) {
        self.rss_mib = self.rss_mib.max(now.rss_mib);
        self.descriptors = self.descriptors.max(now.descriptors);
        self.threads = self.threads.max(now.threads);
    }

    /// `None`: it has ended.
    fn now(pid: u32) -> Option<Peak> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let number = |name: &str| {
            let value = status.lines().find_map(|line| line.strip_prefix(name))?;
            value.split_whitespace().next()?.parse::<u64>().ok()
        };
        Some(Peak {
            rss_mib: number("VmHWM:")? >> 10,
            descriptors: std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count(),
            threads: number("Threads:")? as usize,
        })
    }

    /// Looks at it until it ends.
    fn of(pid: u32) -> JoinHandle<Peak> {
        std::thread::spawn(move || {
            let mut peak = Peak::default();
            while let Some(now) = Peak::now(pid) {
                peak.take(now);
                std::thread::sleep(Duration::from_millis(20));
            }
            peak
        })
    }
}

fn summary_of(way: &[&str], thing: &str, count: u64) -> (Value, Peak) {
    let subject = Subject::new("many", &[thing, &count.to_string()]);
    let tracer = Tracer::start(&[way, &["--"], &subject.command()].concat());
    let peak = Peak::of(tracer.pid());
    let output = tracer.finish();
    subject.assert_as_alone(&output, &format!("{way:?}"));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = stderr
        .lines()
        .find(|line| line.starts_with('{') && line.contains("\"summary\""));
    let summary = serde_json::from_str(line.unwrap_or_else(|| panic!("no summary: {stderr}"))).expect("JSON");
    (summary, peak.join().expect("a thread"))
}

/// Programs of which no call is seen, from inside, as they were not answered in time; each makes one.
fn unanswered(summary: &Value) -> u64 {
    let unseen = summary["unseen"].as_array().expect("a list").iter();
    let words = unseen.filter_map(|text| text.as_str()?.split_once(" programs went on before "));
    words.map(|(number, _)| number.parse::<u64>().expect("a number")).sum()
}

/// What gpuscope has is bounded, and each call is in the totals, or is said to be missing there.
fn bounded(thing: &str, name: &str, count: u64) {
    for way in all_or(1, &WAYS) {
        let (summary, peak) = summary_of(way, thing, count);
        let functions = summary["functions"].as_array().expect("functions");
        let of = functions.iter().filter(|function| function["name"] == name);
        let calls: u64 = of.map(|function| function["calls"].as_u64().expect("a number")).sum();
        let cost = &summary["cost"];
        let bytes = cost["tracer_rss_bytes"].as_u64().expect("a number");
        println!(
            "MEASURED {count} {thing}\t{}\t{} MiB\t{} descriptors\t{} threads\t{:.1} s of CPU\tunseen {}, {} without a row",
            if way.contains(&"-o") { "recorded" } else { "run -q" },
            peak.rss_mib.max(bytes >> 20),
            peak.descriptors,
            peak.threads,
            cost["tracer_cpu_seconds"].as_f64().unwrap_or_default(),
            summary["unseen"],
            summary["lost_events"]
        );
        let told = calls + if thing == "alive" { unanswered(&summary) } else { 0 };
        assert!(told >= count, "{name}: {told} of {count}; {}", summary["unseen"]);
        assert!(bytes < MOST_BYTES, "{count} {thing}: {bytes} bytes");
        let alive = if thing == "alive" { count as usize } else { 0 };
        assert!(
            peak.descriptors < MOST_DESCRIPTORS + 3 * alive,
            "{} descriptors",
            peak.descriptors
        );
        assert!(peak.threads < MOST_THREADS, "{} threads", peak.threads);
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

#[test]
#[ignore = "needs root and BPF"]
fn five_thousand_processes_that_live_at_once() {
    bounded("alive", "cuMemAlloc_v2", rounds(50, 200, 5_000, 5_000));
}
