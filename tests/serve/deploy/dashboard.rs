//! The dashboard of Grafana.

use super::{expression, file, read, run, strings, succeeded};
use gpuscope::serve::metrics;
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;

/// Metrics that no panel shows: facts about devices that do not change, or that nobody follows over time.
const NOT_SHOWN: [&str; 25] = [
    "gpuscope_memory_allocations",
    "gpuscope_memory_age_allocations",
    "gpuscope_memory_allocated_total",
    "gpuscope_memory_freed_total",
    "gpuscope_nvml_up",
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
    "gpuscope_xid_log_up",
    "process_start_time_seconds",
    "gpuscope_otlp_exports_total",
];

fn dashboard() -> Value {
    serde_json::from_str(&read("deploy/grafana/gpuscope.json")).expect("JSON")
}

fn panels(dashboard: &Value) -> Vec<Value> {
    let panels = dashboard["panels"].as_array().expect("panels").iter();
    panels.filter(|panel| panel["type"] != "row").cloned().collect()
}

fn expressions() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for panel in panels(&dashboard()) {
        let title = panel["title"].as_str().expect("a title").to_owned();
        for expression in strings(&panel["targets"], "expr") {
            found.push((title.clone(), expression.to_owned()));
        }
    }
    found
}

#[test]
fn it_is_what_its_script_writes() {
    let written = succeeded(&run(Command::new("python3").arg("scripts/generate_dashboard.py")));
    assert!(
        written == read("deploy/grafana/gpuscope.json"),
        "run: scripts/generate_dashboard.py > deploy/grafana/gpuscope.json"
    );
}

#[test]
fn every_panel_says_what_it_shows_and_in_which_unit() {
    let panels = panels(&dashboard());
    assert!(panels.len() > 50, "{} panels", panels.len());
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
    let mut taken = BTreeSet::new();
    for panel in dashboard()["panels"].as_array().expect("panels") {
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
fn its_queries_name_metrics_and_labels_that_there_are() {
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
    assert!(file("deploy/grafana/gpuscope.json").exists());
}
