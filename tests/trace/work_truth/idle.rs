//! Time without work, and with it: never more idle, never less busy than the device was.

use super::log::{Log, Operation};
use super::run::{Run, watch};
use super::seed::seed;
use super::support::number;
use super::told::{assert_complete, handle, list, ns};
use serde_json::Value;
use std::collections::BTreeMap;

/// Spans in which at least one of these ran, up to `until`; none touches another.
fn union<'a>(operations: impl Iterator<Item = &'a Operation>, until: u64) -> Vec<(u64, u64)> {
    let mut spans: Vec<(u64, u64)> = operations
        .map(|operation| (operation.start_ns, operation.end_ns.min(until)))
        .filter(|(start, end)| start < end)
        .collect();
    spans.sort_unstable();
    let mut union = Vec::<(u64, u64)>::new();
    for (start, end) in spans {
        match union.last_mut().filter(|last| start <= last.1) {
            Some(last) => last.1 = last.1.max(end),
            None => union.push((start, end)),
        }
    }
    union
}

fn union_ns<'a>(operations: impl Iterator<Item = &'a Operation>, until: u64) -> u64 {
    union(operations, until).iter().map(|(start, end)| end - start).sum()
}

/// Time between the first submission and `until` in which nothing ran: all of it, and the longest piece.
fn idle_ns(log: &Log, until: u64) -> (u64, u64) {
    let first = log.operations.iter().map(|operation| operation.submitted_ns).min();
    let mut since = first.expect("work");
    let mut gaps = Vec::new();
    for (start, end) in union(log.operations.iter(), until) {
        gaps.push(start.saturating_sub(since));
        since = end;
    }
    gaps.push(until.saturating_sub(since));
    (gaps.iter().sum(), gaps.into_iter().max().unwrap_or(0))
}

/// Most calls of a stream at one time whose work had not ended.
fn depth<'a>(operations: impl Iterator<Item = &'a Operation>) -> u64 {
    let mut calls = BTreeMap::<(u64, u64), u64>::new();
    for operation in operations {
        let end = calls.entry(operation.call()).or_default();
        *end = operation.end_ns.max(*end);
    }
    let mut changes: Vec<(u64, i64)> = calls
        .iter()
        .flat_map(|((_, submitted), end)| [(*submitted, 1), (*end, -1)])
        .collect();
    changes.sort_unstable(); // an end before a submission at the same time
    let running = changes.iter().scan(0, |running, (_, change)| {
        *running += change;
        Some(*running)
    });
    running.max().unwrap_or(0).unsigned_abs()
}

/// Handle, and of a default stream its context and thread. A handle may stand for one stream after another.
type Name = (u64, u64, u64);

fn name(stream: u64, context: u64, tid: u64) -> Name {
    match stream {
        0 => (0, context, 0),
        2 => (2, context, tid),
        _ => (stream, 0, 0),
    }
}

fn of_log(log: &Log) -> BTreeMap<Name, Vec<&Operation>> {
    let mut streams = BTreeMap::<Name, Vec<&Operation>>::new();
    for operation in &log.operations {
        let name = name(operation.stream, operation.context, operation.tid);
        streams.entry(name).or_default().push(operation);
    }
    streams
}

/// Busy at most, and the greatest depth.
fn of_report(report: &Value) -> BTreeMap<Name, (u64, u64)> {
    let mut streams = BTreeMap::<Name, (u64, u64)>::new();
    for stream in list(&report["streams"]) {
        let thread = stream["thread"].as_u64().unwrap_or(0);
        let name = name(handle(stream, "stream"), handle(stream, "context"), thread);
        let (busy, depth) = streams.entry(name).or_default();
        *busy += ns(stream, "busy_at_most_us");
        *depth = number(stream, "depth_at_most").max(*depth);
    }
    streams
}

/// Of each stream.
pub fn assert_streams(run: &Run) {
    let (told, until) = (of_report(run.report()), run.log.last_call_ns());
    for (name, operations) in of_log(&run.log) {
        let operations = || operations.iter().copied();
        let of = told.get(&name);
        let (busy, most) = *of.unwrap_or_else(|| panic!("{}: nothing of {name:?}", run.name));
        let (truly_busy, truly_most) = (union_ns(operations(), until), depth(operations()));
        assert!(
            busy >= truly_busy,
            "{}: {name:?} busy {busy}, truly {truly_busy}",
            run.name
        );
        assert!(
            most >= truly_most,
            "{}: {name:?} depth {most}, truly {truly_most}",
            run.name
        );
    }
}

/// Of all streams together.
pub fn assert_bounds(run: &Run) {
    let gpu = &run.report()["gpu"];
    let [window, busy, idle] = ["window_us", "busy_at_most_us", "idle_at_least_us"].map(|field| ns(gpu, field));
    assert_eq!(window, busy + idle, "{}: {gpu}", run.name);
    let until = number(gpu, "window_end_ns");
    let (truly_idle, truly_longest) = idle_ns(&run.log, until);
    assert!(
        idle <= truly_idle,
        "{}: idle {idle}, truly {truly_idle}: {gpu}",
        run.name
    );
    let longest = ns(gpu, "longest_idle_us");
    assert!(
        longest <= truly_longest,
        "{}: longest {longest}, truly {truly_longest}",
        run.name
    );
    let truly_busy = union_ns(run.log.operations.iter(), run.log.last_call_ns());
    assert!(
        busy >= truly_busy,
        "{}: busy {busy}, truly {truly_busy}: {gpu}",
        run.name
    );
}

fn assert_all(run: &Run) {
    assert_complete(&run.name, run.report());
    assert_bounds(run);
    assert_streams(run);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn no_time_is_called_idle_in_which_something_ran() {
    for text in [
        "gpusim item --steps 50",
        "gpusim item --steps 50 --host pinned",
        "gpusim graphs --replays 20",
        "gpusim backpressure --launches 3000",
        "gpusim train 20",
    ] {
        assert_all(&watch(text, &[], &[]));
    }
    for _ in 0..3 {
        assert_all(&watch(&format!("gpusim graphs --seed {}", seed()), &[], &[]));
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn so_it_is_with_streams_that_wait_for_each_other() {
    for seed in [1, 2, 3, seed(), seed(), seed()] {
        let text = format!("gpusim streams --seed {seed} --steps 1000 --kernel-ns 200000");
        assert_all(&watch(&text, &[], &[]));
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn so_it_is_with_copies_of_every_kind() {
    for devices in ["1", "2"] {
        for seed in [1, seed(), seed()] {
            let text = format!("gpusim copies --seed {seed} --bytes 1048576");
            assert_all(&watch(&text, &[], &[("GPUSIM_DEVICES", devices)]));
        }
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn of_the_time_that_a_device_waits_for_its_host_most_is_seen() {
    for (how, kernels) in [("device", 1), ("stream", 1), ("event", 1), ("device", 4), ("event", 4)] {
        let kernel_ns = 2_000_000 / kernels;
        let text = format!(
            "gpusim stall --steps 30 --kernels {kernels} --kernel-ns {kernel_ns} --host-ns 10000000 --sync {how}"
        );
        let run = watch(&text, &[], &[]);
        assert_all(&run);
        let gpu = &run.report()["gpu"];
        let truly = idle_ns(&run.log, number(gpu, "window_end_ns")).0;
        let idle = ns(gpu, "idle_at_least_us");
        assert!(idle * 10 >= truly * 8, "{text}: idle {idle}, truly {truly}");
        assert_eq!(number(&run.report()["gpu"], "idle_gaps"), 29, "{text}");
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn what_the_program_measured_is_what_it_was_told() {
    for seed in [1, seed(), seed()] {
        let run = watch(&format!("gpusim streams --seed {seed} --steps 500"), &[], &[]);
        let elapsed = &run.report()["gpu"]["elapsed"];
        assert_eq!(number(elapsed, "count"), run.log.measured.len() as u64, "{}", run.name);
        let told = run
            .log
            .measured
            .iter()
            .map(|time| (f64::from(time.elapsed_ms) * 1e6) as u64);
        assert_eq!(ns(elapsed, "total_us"), told.sum::<u64>(), "{}", run.name);
    }
}
