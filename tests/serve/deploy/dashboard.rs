//! The dashboards of Grafana.

use super::{expression, read, run, strings, succeeded};
use gpuscope::serve::metrics;
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;

/// Metrics that no panel shows: facts about devices that do not change, or that nobody follows over time.
const NOT_SHOWN: [&str; 23] = [
    "gpuscope_memory_allocations",
    "gpuscope_memory_age_allocations",
    "gpuscope_memory_allocated_total",
    "gpuscope_memory_freed_total",
    "gpuscope_nvml_errors_total",
    "gpuscope_gpu_memory_utilization_ratio",
    "gpuscope_gpu_memory_free_bytes",
    "gpuscope_gpu_memory_reserved_bytes",
    "gpuscope_gpu_energy_joules_total",
    "gpuscope_gpu_clock_limit_hertz",
    "gpuscope_gpu_fan_speed_ratio",
    "gpuscope_gpu_performance_state",
    "gpuscope_gpu_pcie_replays_total",
    "gpuscope_gpu_pcie_generation",
    "gpuscope_gpu_pcie_lanes",
    "gpuscope_gpu_nvlink_errors_total",
    "gpuscope_gpu_mig_info",
    "gpuscope_attached_functions",
    "gpuscope_gpu_xid_last_timestamp_seconds",
    "gpuscope_gpu_xid_report_timestamp_seconds",
    "gpuscope_nvswitch_sxid_reports_total",
    "process_start_time_seconds",
    "gpuscope_otlp_exports_total",
];

/// All dashboards; the first is of a node, with everything that there is.
pub const NAMES: [&str; 4] = ["gpuscope", "fleet", "job", "self"];

/// What lines may be told apart by without being chosen from: values of these do not grow with the fleet.
const FEW: [&str; 19] = [
    "cause",
    "result",
    "reason",
    "certainty",
    "error",
    "layer",
    "class",
    "direction",
    "host_memory",
    "kind",
    "family",
    "age",
    "le",
    "missing",
    "calls",
    "function",
    "call",
    "code",
    "xid",
];

fn dashboards() -> impl Iterator<Item = Value> {
    let of = |name: &&str| read(&format!("deploy/grafana/{name}.json"));
    NAMES
        .iter()
        .map(of)
        .map(|text| serde_json::from_str(&text).expect("JSON"))
}

fn panels(dashboard: &Value) -> Vec<Value> {
    let panels = dashboard["panels"].as_array().expect("panels").iter();
    panels.filter(|panel| panel["type"] != "row").cloned().collect()
}

fn expressions() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for panel in dashboards().flat_map(|dashboard| panels(&dashboard)) {
        let title = panel["title"].as_str().expect("a title").to_owned();
        for expression in strings(&panel["targets"], "expr") {
            found.push((title.clone(), expression.to_owned()));
        }
    }
    found
}

#[test]
fn each_is_what_its_script_writes() {
    for name in NAMES {
        let mut script = Command::new("python3");
        let written = succeeded(&run(script.args(["-B", "scripts/generate_dashboard.py", name])));
        assert!(
            written == read(&format!("deploy/grafana/{name}.json")),
            "run: scripts/generate_dashboard.py {name} > deploy/grafana/{name}.json"
        );
    }
}

/// Of 2,000 nodes with eight GPUs, a line for each would be 16,000.
#[test]
fn no_panel_draws_more_lines_by_default_than_one_can_tell_apart() {
    for dashboard in dashboards() {
        let variables = dashboard["templating"]["list"].as_array().expect("variables");
        let one_node = variables
            .iter()
            .any(|variable| variable["name"] == "instance" && variable["includeAll"] == false);
        for panel in panels(&dashboard).iter().filter(|_| !one_node) {
            for expression in strings(&panel["targets"], "expr") {
                assert!(is_bounded(expression), "{}: {expression}", panel["title"]);
            }
        }
    }
}

/// The largest, or one value, or one for each of few.
fn is_bounded(expression: &str) -> bool {
    let whole = ["topk(", "quantile(", "sum(", "count(", "count_values("];
    let by = expression
        .strip_prefix("sum by (")
        .and_then(|rest| rest.split_once(')'));
    let few = by.is_some_and(|(labels, _)| labels.split(", ").all(|label| FEW.contains(&label)));
    few || whole.iter().any(|start| expression.starts_with(start))
}

#[test]
fn a_line_for_each_gpu_is_unbounded() {
    assert!(!is_bounded("gpuscope_gpu_up{}") && !is_bounded("sum by (instance, reason) (x)"));
}

#[test]
fn every_panel_says_what_it_shows_and_in_which_unit() {
    let panels: Vec<Value> = dashboards().flat_map(|dashboard| panels(&dashboard)).collect();
    assert!(panels.len() > 100, "{} panels", panels.len());
    for panel in panels {
        let has = |pointer: &str| {
            panel
                .pointer(pointer)
                .and_then(Value::as_str)
                .is_some_and(|text| !text.is_empty())
        };
        assert!(has("/description") && has("/fieldConfig/defaults/unit"), "{panel}");
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{panel}");
    }
}

#[test]
fn panels_do_not_overlap() {
    dashboards().for_each(|dashboard| no_panel_overlaps(&dashboard));
}

fn no_panel_overlaps(dashboard: &Value) {
    let mut taken = BTreeSet::new();
    for panel in dashboard["panels"].as_array().expect("panels") {
        let at = |name: &str| panel["gridPos"][name].as_u64().expect("a place");
        assert!(at("x") + at("w") <= 24, "{}", panel["title"]);
        for x in at("x")..at("x") + at("w") {
            for y in at("y")..at("y") + at("h") {
                assert!(taken.insert((x, y)), "{} lies on another panel", panel["title"]);
            }
        }
    }
}

#[test]
fn their_queries_name_metrics_and_labels_that_there_are() {
    for (title, expression) in expressions() {
        expression::check(&title, &expression);
    }
}

/// A metric that is new must be shown, or be named as not shown.
#[test]
fn every_metric_is_shown_or_named_as_not_shown() {
    let shown: BTreeSet<&str> = expressions()
        .iter()
        .flat_map(|(_, expression)| expression::metrics_of(expression))
        .map(|(metric, _)| metric.name)
        .collect();
    for name in NOT_SHOWN {
        assert!(!shown.contains(name), "{name} is shown");
        assert!(metrics::all().any(|metric| metric.name == name), "there is no {name}");
    }
    let missing: Vec<&str> = metrics::all()
        .map(|metric| metric.name)
        .filter(|name| !shown.contains(name) && !NOT_SHOWN.contains(name))
        .collect();
    assert!(missing.is_empty(), "shown by no panel: {missing:?}");
}

#[test]
fn grafana_is_told_where_it_lies() {
    for name in ["datasources", "dashboards"] {
        let provisioned = super::yaml(&read(&format!("deploy/grafana/provisioning/{name}.yaml")));
        assert_eq!(provisioned["apiVersion"], 1, "{name}");
    }
}
