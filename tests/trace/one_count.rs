//! A run that begins and ends amid calls counts all layers over the same time.

use crate::support::{Gpuscope, Program, TIERS, Tier, Trace, number, text};
use serde_json::Value;

const THREADS: u64 = 4;

fn trace(pid: u32, tier: &str, options: &[&str]) -> Trace {
    let pid = pid.to_string();
    let arguments = [&["-p", &pid, "--duration", "100ms"], options].concat();
    Gpuscope::trace(&arguments).tier(tier).finish().ok()
}

fn launches(trace: &Trace, layer: &str, name: &str) -> u64 {
    let calls = trace.totals("calls");
    calls.get(&(layer.to_owned(), name.to_owned())).copied().unwrap_or(0)
}

/// Of the layer: calls under way at the begin, and at the end.
fn under_way(trace: &Trace, layer: &str) -> (u64, u64) {
    let layers = trace.summary()["under_way"].as_array().expect("layers").iter();
    let found = layers.filter(|entry| text(entry, "layer") == layer);
    let ends = found.map(|entry| (number(entry, "at_begin"), number(entry, "at_end")));
    ends.fold((0, 0), |sum, ends| (sum.0 + ends.0, sum.1 + ends.1))
}

fn assert_one_count(trace: &Trace) {
    let kernels = trace.summary()["kernels"].as_array().expect("kernels").iter();
    let kernels: u64 = kernels.map(|kernel: &Value| number(kernel, "launches")).sum();
    let (runtime, driver) = (
        launches(trace, "runtime", "cudaLaunchKernel"),
        launches(trace, "driver", "cuLaunchKernel"),
    );
    let (begun, left) = under_way(trace, "runtime");
    let said = format!("runtime {runtime} + {begun} + {left}, driver {driver}, kernels {kernels}");
    assert!(runtime > 0, "{said}");
    assert_eq!(kernels, driver, "{said}");
    // each thread can be in one call of the runtime at a time
    assert!(begun <= THREADS && left <= THREADS, "{said}");
    assert!(runtime <= driver && driver <= runtime + begun + left, "{said}");
}

/// Traces a loop of calls in mid-run, again and again.
fn counts_agree(tier: &Tier, times: usize, options: &[&str]) {
    let program = Program::sim(&["threads", &THREADS.to_string(), "0"]);
    for _ in 0..times {
        assert_one_count(&trace(program.pid(), tier.name, options));
    }
}

#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn runtime_driver_and_kernels_agree_but_for_calls_under_way() {
    counts_agree(&TIERS[0], 20, &[]);
}

#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn they_agree_however_functions_are_hooked() {
    // one probe after the other is slow
    let launches = ["--filter", "cudaLaunchKernel", "--filter", "cuLaunchKernel"];
    for tier in &TIERS[1..] {
        counts_agree(tier, 5, &launches);
    }
}
