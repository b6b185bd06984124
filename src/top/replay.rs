//! Frames of a recording: of the totals that it has of each second.
//!
//! Functions, kernels and failures are of all processes together there: they are shown as a row of their own, with the
//! process number 0. Devices are not in a recording.

use super::model::{Certainty, Closeup, Count, Failure, Findings, Frame, Function, Kernel, Process, Wait};
use crate::model::snapshot::{Snapshot, Work};
use crate::model::waiting::Waiting;
use std::collections::BTreeMap;

/// Of all processes together.
const ALL: u32 = 0;

/// Totals up to a time, ns after the start.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Totals {
    pub at: i64,
    pub snapshot: Snapshot,
}

/// One for each of the totals, in their order. `started_at`: of the recording, seconds since 1970.
pub(crate) fn frames(tape: &[Totals], started_at: f64, notes: &[String]) -> Vec<Frame> {
    let before = std::iter::once(None).chain(tape.iter().map(Some));
    let pairs = tape.iter().zip(before);
    pairs
        .map(|(now, before)| frame(now, before, started_at, notes))
        .collect()
}

fn frame(now: &Totals, before: Option<&Totals>, started_at: f64, notes: &[String]) -> Frame {
    let seconds = now.at as f64 / 1e9;
    let over = before.map(|before| (now.at - before.at) as f64 / 1e9);
    let over = over.filter(|seconds| *seconds > 0.0);
    let mut last = before.map(|before| totals(&before.snapshot)).unwrap_or_default();
    let mut processes = totals(&now.snapshot);
    for (pid, process) in &mut processes {
        let old = last.remove(pid).unwrap_or_default();
        process.each_count(&old, |count, old| {
            count.per_second = over.map(|over| (count.total - old).max(0.0) / over);
        });
    }
    Frame {
        at: started_at + seconds,
        elapsed_seconds: seconds,
        over_seconds: over,
        notes: notes.iter().chain(&now.snapshot.unseen).cloned().collect(),
        closeup: Some(functions(&now.snapshot, before.map(|before| &before.snapshot), over)),
        findings: Some(Findings::of(&now.snapshot, ALL, seconds)),
        processes: processes.into_values().collect(),
        ..Frame::default()
    }
}

/// Counts without their pace.
fn totals(snapshot: &Snapshot) -> BTreeMap<u32, Process> {
    let mut all: BTreeMap<u32, Process> = BTreeMap::from([(ALL, together(snapshot))]);
    for holder in snapshot.memory.iter().flatten() {
        let process = named(&mut all, holder.pid, &holder.comm);
        process.held_bytes = Some(holder.held_bytes as f64);
        process.ended = holder.ended;
    }
    for work in &snapshot.work {
        add_work(named(&mut all, work.pid, &work.comm), work);
    }
    all
}

fn named<'a>(all: &'a mut BTreeMap<u32, Process>, pid: u32, comm: &str) -> &'a mut Process {
    let process = all.entry(pid).or_default();
    process.pid = pid;
    process.traced = true;
    if process.comm.is_empty() {
        process.comm = comm.to_owned();
        process.command = comm.to_owned();
    }
    process
}

fn together(snapshot: &Snapshot) -> Process {
    let launches = snapshot
        .kernels
        .iter()
        .map(|kernel| kernel.launches - kernel.failed.min(kernel.launches));
    let calls = snapshot.functions.iter().map(|function| function.calls);
    let failures = snapshot.failures.iter().map(|failure| Failure {
        function: failure.name.clone(),
        error: failure.error.clone(),
        count: of(failure.count),
        last_seconds: None,
    });
    let failures: Vec<Failure> = failures.collect();
    Process {
        command: "all processes together".to_owned(),
        comm: "all".to_owned(),
        traced: true,
        launches: Some(of(launches.sum())),
        calls: Some(of(calls.sum())),
        errors: Some(of(failures.iter().map(|failure| failure.count.total as u64).sum())),
        kernels: snapshot.kernels.iter().filter_map(kernel).collect(),
        failures,
        ..Process::default()
    }
}

fn kernel(kernel: &crate::model::snapshot::Kernel) -> Option<Kernel> {
    Some(Kernel {
        name: kernel.name.clone()?,
        launches: of(kernel.launches),
    })
}

fn add_work(process: &mut Process, work: &Work) {
    for copies in &work.copies {
        process.copied(
            copies.direction.as_deref().unwrap_or("unknown"),
            copies.host.as_deref().unwrap_or_default(),
            of(copies.bytes),
        );
    }
    let asked = work
        .waits
        .iter()
        .map(|wait| (&wait.function, false, wait.count, wait.total_ns));
    let hidden = work
        .hidden
        .iter()
        .map(|wait| (&wait.kind, true, wait.count, wait.total_ns));
    for (what, hidden, count, ns) in asked.chain(hidden) {
        let wait = process.wait_named(what, hidden);
        wait.count.add(of(count));
        wait.seconds.add(seconds(ns));
    }
    process.waiting_seconds = waited(&process.waits);
    process.idle_at_least_seconds = Some(seconds(work.gpu.idle_ns));
    if work.gpu.certainty != "bound" {
        process.idle_certainty = Certainty::Inferred;
    }
}

fn waited(waits: &[Wait]) -> Option<Count> {
    let mut waiting = Waiting::default();
    for wait in waits {
        waiting.note(wait.hidden.then_some(&wait.what), Some(wait.seconds.total));
    }
    waiting.at_least().map(|total| Count {
        total,
        per_second: None,
    })
}

fn functions(now: &Snapshot, before: Option<&Snapshot>, over: Option<f64>) -> Closeup {
    let old = |layer: &str, name: &str| {
        let mut known = before.into_iter().flat_map(|before| &before.functions);
        let known = known.find(|function| function.layer == layer && function.name == name);
        known.map_or(0, |function| function.calls)
    };
    let one = |function: &crate::model::snapshot::Function| {
        let new = function.calls.saturating_sub(old(&function.layer, &function.name));
        Function {
            layer: function.layer.clone(),
            name: function.name.clone(),
            calls: Count {
                total: function.calls as f64,
                per_second: over.map(|over| new as f64 / over),
            },
            errors: function.errors.unwrap_or(0),
            seconds: function.total_ns.map(|ns| ns as f64 / 1e9),
        }
    };
    let mut functions: Vec<Function> = now.functions.iter().map(one).collect();
    functions.sort_by(|left, right| right.seconds.unwrap_or(0.0).total_cmp(&left.seconds.unwrap_or(0.0)));
    Closeup {
        pid: ALL,
        functions,
        ..Closeup::default()
    }
}

fn of(total: u64) -> Count {
    Count {
        total: total as f64,
        per_second: None,
    }
}

fn seconds(ns: u64) -> Count {
    Count {
        total: ns as f64 / 1e9,
        per_second: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn at(second: i64) -> Totals {
        let snapshot = json!({
            "functions": [{"layer": "driver", "name": "cuLaunchKernel", "calls": 100 * second, "errors": 0,
                           "total_us": 1000.0 * second as f64}],
            "failures": [{"name": "cuMemAlloc_v2", "error": "CUDA_ERROR_OUT_OF_MEMORY", "count": second}],
            "kernels": [{"kernel": "sgemm", "launches": 100 * second, "failed": second}],
            "memory": [{"pid": 7, "comm": "python", "held_bytes": 1000 * second}],
            "work": [{"pid": 7, "comm": "python",
                      "copies": [{"direction": "HtoD", "host": "pinned", "count": 1, "bytes": 500 * second}],
                      "waits": [{"function": "cuCtxSynchronize", "count": second, "total_us": 400_000.0 * second as f64}],
                      "hidden": [{"kind": "item", "count": second, "total_us": 300_000.0 * second as f64}],
                      "gpu": {"idle_at_least_us": 250_000.0 * second as f64, "certainty": "bound"}}],
            "gpu": {"devices": [{"pid": 7, "device": 0, "busy_us": 2e6, "idle_us": 1e6, "certainty": "measured",
                                 "idle_causes": [{"cause": "blocked", "idle_us": 200_000.0 * second as f64}]}]},
            "unseen": ["something"],
        });
        Totals {
            at: second * 1_000_000_000,
            snapshot: Snapshot::read(&snapshot).unwrap(),
        }
    }

    #[test]
    fn totals_of_each_second_become_frames_with_their_pace() {
        let frames = frames(&[at(1), at(3)], 1000.0, &["recorded".to_owned()]);
        assert_eq!(
            (frames.len(), frames[0].over_seconds, frames[1].over_seconds),
            (2, None, Some(2.0))
        );
        let python = frames[1].process(7).unwrap();
        let count = |total, per_second| {
            Some(Count {
                total,
                per_second: Some(per_second),
            })
        };
        assert_eq!(python.held_bytes, Some(3000.0));
        assert_eq!(python.to_device_bytes, count(1500.0, 500.0));
        assert_eq!(python.idle_at_least_seconds, count(0.75, 0.25));
        let waiting = python.waiting_seconds.unwrap();
        assert!(
            (waiting.total - 1.2).abs() < 1e-9,
            "a wait for an item counts once: {waiting:?}"
        );
        let all = frames[1].process(ALL).unwrap();
        assert_eq!((all.launches, all.errors), (count(297.0, 99.0), count(3.0, 1.0)));
        assert_eq!(frames[1].notes, ["recorded", "something"]);
        let idle = &frames[1].findings.as_ref().unwrap().idle;
        assert_eq!(
            (idle[0].device, idle[0].causes[0].idle_ns),
            (Some(0), 600_000_000),
            "measured"
        );
        assert_eq!(
            frames[1].closeup.as_ref().unwrap().functions[0].calls,
            count(300.0, 100.0).unwrap()
        );
    }

    #[test]
    fn of_a_recording_without_totals_there_is_nothing() {
        assert!(frames(&[], 0.0, &[]).is_empty());
    }
}
