//! What was there before gpuscope is no growth, and what the last one counted goes on.

use super::exporter::Exporter;
use super::support::eventually;
use super::workload::Workloads;

const OPTIONS: [&str; 2] = ["--collect", "memory,nvml,self"];

#[test]
#[ignore = "needs root and BPF"]
fn memory_that_programs_had_before_a_restart_is_no_growth_of_theirs() {
    let exporter = Exporter::start(&OPTIONS);
    let workloads = Workloads::of(&exporter);
    let program = workloads.start("r-holds", "train 0");
    let of = |exporter: &Exporter, metric: &str| exporter.sum(metric, &["comm=\"r-holds\""]);
    eventually("the driver counts its memory", || {
        of(&exporter, "gpuscope_gpu_process_memory_bytes") > Some(0.0)
    });
    assert_eq!(of(&exporter, "gpuscope_memory_earlier_bytes"), None, "it came later");

    let exporter = exporter.restarted(&OPTIONS);
    eventually("what it had is told apart", || {
        of(&exporter, "gpuscope_memory_earlier_bytes") > Some(0.0)
    });
    let of_driver = of(&exporter, "gpuscope_memory_driver_bytes");
    let earlier = of(&exporter, "gpuscope_memory_earlier_bytes");
    assert!(earlier <= of_driver, "{earlier:?} of {of_driver:?}");
    assert_eq!(of(&exporter, "gpuscope_memory_unattributed_bytes"), Some(0.0));
    drop(program);
}

/// A supervisor's way: it is asked to end, and another takes its place, while programs work.
#[test]
#[ignore = "needs root and BPF: serve traces the whole machine"]
fn counters_go_on_when_gpuscope_is_replaced_under_load() {
    let options = ["--collect", "api,launches,sync,self"];
    let exporter = Exporter::remembering(&options);
    let workloads = Workloads::of(&exporter);
    workloads.until_seen_whole(&exporter);
    let launches = |exporter: &Exporter, name: &str| {
        let label = format!("comm=\"{name}\"");
        exporter.sum("gpuscope_launches_total", &[&label]).unwrap_or(0.0)
    };
    workloads.run("r-ended", "train 20");
    let program = workloads.start("r-works", "train 0");
    eventually("both have launched", || {
        launches(&exporter, "r-ended") > 0.0 && launches(&exporter, "r-works") > 100.0
    });
    let before = ["r-ended", "r-works"].map(|name| launches(&exporter, name));

    let exporter = exporter.restarted(&options);
    eventually("what has ended is as it was", || {
        launches(&exporter, "r-ended") == before[0]
    });
    let after = launches(&exporter, "r-works");
    assert!(after >= before[1], "{after} after {}", before[1]);
    eventually("what works goes on", || launches(&exporter, "r-works") > after);

    let exporter = exporter.crashed(&options);
    assert_eq!(launches(&exporter, "r-ended"), 0.0, "after a crash counters begin anew");
    drop(program);
}
