//! A program that has stopped to call: how long its devices have had nothing to do is known all the same.

use super::exporter::Exporter;
use super::support::eventually;
use super::workload::Workloads;
use std::time::Instant;

const IDLE: &str = "gpuscope_gpu_idle_at_least_seconds_total";
const WASTE: &str = "gpuscope_waste_gpu_seconds_total";
const BUSY: &str = "gpuscope_gpu_busy_at_most_seconds_total";

fn of(exporter: &Exporter, metric: &str, name: &str) -> f64 {
    let label = format!("comm=\"{name}\"");
    exporter.sum(metric, &[&label]).unwrap_or(0.0)
}

#[test]
#[ignore = "needs root and BPF"]
fn idle_time_goes_on_while_nothing_is_called() {
    let exporter = Exporter::start(&["--collect", "sync,self"]);
    let workloads = Workloads::of(&exporter);
    let forgotten = workloads.start("i-forgotten", "stall --steps 1 --host-ns 600000000000");
    let works = workloads.start("i-works", "stall --steps 1 --kernel-ns 600000000000 --sync device");
    eventually("both have worked", || {
        of(&exporter, BUSY, "i-forgotten") > 0.0 && of(&exporter, BUSY, "i-works") > 0.0
    });
    let begun = Instant::now();
    eventually("it is idle for three seconds", || {
        of(&exporter, IDLE, "i-forgotten") > 3.0
    });
    let (idle, passed) = (of(&exporter, IDLE, "i-forgotten"), begun.elapsed().as_secs_f64());
    assert!(idle < passed + 2.0, "{idle} s of idle time in {passed} s");
    let busy = of(&exporter, BUSY, "i-forgotten");
    assert!(busy < 1.0, "its kernel took 2 ms: {busy}");
    assert_eq!(of(&exporter, IDLE, "i-works"), 0.0, "its kernel runs");
    let before = of(&exporter, IDLE, "i-forgotten");
    drop(forgotten);
    eventually("it has ended", || {
        exporter.sum("gpuscope_traced_processes", &[]) == Some(1.0)
    });
    assert!(of(&exporter, IDLE, "i-forgotten") >= before);
    drop(works);
}

#[test]
#[ignore = "needs root and BPF: serve traces the whole machine"]
fn reasons_of_waste_add_up_to_the_idle_time_of_the_gpu() {
    let exporter = Exporter::start(&["--collect", "memory,sync,nvml,self"]);
    let workloads = Workloads::of(&exporter);
    let pauses = workloads.start("w-pauses", "train 0");
    let on_gpu = ["comm=\"w-pauses\"", ",gpu=\"0\"", "certainty=\"bound\""];
    eventually("the device is known, and was idle", || {
        exporter.sum(WASTE, &on_gpu).unwrap_or(0.0) > 0.01
    });
    drop(pauses);
    let sums = || [IDLE, WASTE].map(|metric| of(&exporter, metric, "w-pauses"));
    eventually("both stand still, and are the same", || {
        let [idle, waste] = sums();
        (idle - waste).abs() < 1e-6
    });
    let on_gpu = exporter.sum(WASTE, &on_gpu).unwrap_or(0.0);
    assert!((on_gpu - sums()[1]).abs() < 1e-6, "{on_gpu} of {:?} on its GPU", sums());
}
