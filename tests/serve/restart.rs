//! What was there before gpuscope is no growth.

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
