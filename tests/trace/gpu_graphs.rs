//! Graphs that the GPU executed, told of as a whole: one activity for each launch, from its first node to its last.

use crate::support::{Gpuscope, Trace, number, sim_cupti, sim_text, text};
use crate::work_truth::log::{Log, Logs};
use serde_json::Value;
use std::collections::BTreeMap;

fn watched(options: &[&str]) -> (Trace, Log) {
    let logs = Logs::new();
    let gpusim = sim_text("gpusim");
    let command = [gpusim.as_str(), "graphs", "--seed", "5"];
    let gpuscope = logs.of(Gpuscope::run(options, &command));
    let trace = gpuscope.env("GPUSCOPE_CUPTI", sim_cupti()).finish().ok();
    (trace, logs.only())
}

fn graphs(trace: &Trace) -> Vec<&Value> {
    trace
        .of_type("gpu")
        .filter(|line| line["activity"] == "graph")
        .collect()
}

fn device(trace: &Trace) -> &Value {
    &trace.summary()["gpu"]["devices"][0]
}

fn ns(value: &Value) -> u64 {
    (value.as_f64().expect("a time") * 1e3).round() as u64
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_launch_of_a_graph_is_one_activity_and_leads_to_its_call() {
    let (trace, log) = watched(&["--gpu", "graphs"]);
    let launches = trace.calls_of("cuGraphLaunch").count();
    let told = graphs(&trace);
    assert!(launches > 0, "{}", trace.stderr);
    assert_eq!(told.len(), launches, "{}", trace.stderr);
    let calls: BTreeMap<u64, &Value> = trace.calls().map(|call| (number(call, "event_id"), call)).collect();
    for line in &told {
        let call = calls[&number(line, "call_id")];
        assert!(text(call, "name").ends_with("GraphLaunch"), "{line} is not of {call}");
    }
    let nodes = log.operations.iter().filter(|one| one.graph.is_some());
    let nodes_ns: u64 = nodes.map(|one| one.end_ns - one.start_ns).sum();
    let graphs_ns: u64 = told.iter().map(|line| ns(&line["duration_us"])).sum();
    // the simulator does one node after the other
    assert!(graphs_ns >= nodes_ns, "{graphs_ns} of {nodes_ns}");
    let device = device(&trace);
    assert_eq!(
        (number(device, "graphs"), number(device, "in_graphs")),
        (launches as u64, 0),
        "{device}"
    );
    assert_eq!(ns(&device["graph_us"]), graphs_ns);
    let line = format!("; {launches} graph launches ");
    let line = trace.stderr.lines().find(|text| text.contains(&line));
    assert!(
        line.is_some_and(|text| text.contains(", each as a whole")),
        "{}",
        trace.stderr
    );
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn without_a_word_graphs_are_told_of_by_node() {
    let (trace, log) = watched(&[]);
    let nodes = log
        .operations
        .iter()
        .filter(|one| one.graph.is_some() && one.op == "kernel");
    assert_eq!(graphs(&trace).len(), 0);
    assert_eq!(number(device(&trace), "in_graphs"), nodes.count() as u64);
}
