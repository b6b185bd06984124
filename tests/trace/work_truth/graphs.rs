//! What graphs ran, and what only went into them.

use super::log::Log;
use super::run::{Run, watch};
use super::seed::seed;
use super::support::{assert_same, number, text};
use super::told::{assert_complete, list};
use std::collections::BTreeMap;

type Counts = BTreeMap<String, u64>;

/// Launches several kernels by a list behind a pointer: not among those that are told apart by kernel.
const BY_LIST: &str = "cuLaunchCooperativeKernelMultiDevice";

fn kernels_of(log: &Log, in_graphs: bool) -> Counts {
    let mut counts = Counts::new();
    let kernels = log
        .operations
        .iter()
        .filter(|operation| operation.op == "kernel" && operation.api != BY_LIST);
    for kernel in kernels.filter(|kernel| kernel.graph.is_some() == in_graphs) {
        *counts.entry(kernel.name.clone().expect("a name")).or_default() += 1;
    }
    counts
}

/// A number of each kernel, where it is not 0.
fn told(run: &Run, count: impl Fn(&serde_json::Value) -> u64) -> Counts {
    let kernels = list(&run.trace.summary()["kernels"]).iter();
    let counts = kernels.map(|kernel| (text(kernel, "symbol"), count(kernel)));
    counts.filter(|(_, count)| *count > 0).collect()
}

fn graphs_of(replays: u64) -> Run {
    watch(
        &format!("gpusim graphs --seed {} --replays {replays}", seed()),
        &[],
        &[],
    )
}

fn planted(run: &Run, what: &str) -> u64 {
    let own = run.own();
    number(&own["planted"], what)
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn every_launch_of_a_graph_is_counted_with_what_it_ran() {
    for replays in [1, 10, 50] {
        let run = graphs_of(replays);
        assert_complete(&run.name, run.report());
        let graphs = &run.report()["graphs"];
        let launches = planted(&run, "graph_launches");
        let ran = |op: &str| {
            let operations = run.log.operations.iter();
            let ran = operations.filter(|operation| operation.graph.is_some() && operation.op == op);
            ran.count() as u64
        };
        let fields = ["launches", "known_launches", "kernels", "copies", "memsets"];
        let expected = [launches, launches, ran("kernel"), ran("copy"), ran("memset")];
        assert_eq!(fields.map(|field| number(graphs, field)), expected, "{}", run.name);
        assert_eq!(number(graphs, "captured"), 3, "{}", run.name);
    }
}

/// The program changes one node of a runnable graph: what that graph runs afterwards is in the sum alone.
const AFTER_THE_CHANGE: (&str, u64) = ("_Z8reluGradPfPKfi", 3);

#[test]
#[ignore = "needs the simulated CUDA"]
fn kernels_that_graphs_ran_are_known_by_name() {
    let run = graphs_of(10);
    let captured = told(&run, |kernel| number(kernel, "captured"));
    assert_eq!(captured.values().collect::<Vec<&u64>>(), [&1; 3], "{}", run.name);
    let mut ran = kernels_of(&run.log, true);
    assert_eq!(ran.remove(AFTER_THE_CHANGE.0), Some(AFTER_THE_CHANGE.1), "{}", run.name);
    assert_same(&run.name, &ran, &told(&run, |kernel| number(kernel, "in_graphs")));
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn launches_less_those_that_went_into_a_graph_are_those_that_ran() {
    let mut runs = vec![graphs_of(10), watch("gpusim train 20", &[], &[])];
    runs.push(watch(&format!("gpusim copies --seed {}", seed()), &[], &[]));
    for run in runs {
        let ran = told(&run, |kernel| number(kernel, "launches") - number(kernel, "captured"));
        assert_same(&run.name, &kernels_of(&run.log, false), &ran);
    }
}
