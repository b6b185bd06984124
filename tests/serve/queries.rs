//! Every query of the dashboard and every rule, asked of a Prometheus that scrapes programs of all kinds.

use super::exporter::{Exporter, LINKS};
use super::expression::metrics_of;
use super::prometheus::Prometheus;
use super::support::{Program, eventually};
use super::workload::Workloads;
use gpuscope::serve::metric::{Collector, Metric};
use gpuscope::serve::metrics::memory;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// What the names of metrics of the black box begin with.
const BLACK_BOX: &str = "gpuscope_kept_";
/// Long enough for what NVML is asked rarely, and for two scrapes of it; tenths of a second.
const TRIES: u32 = 200;

fn read(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).expect(name)
}

/// Programs that do a bit of everything until they are dropped.
pub fn every_query_gives_data(prometheus: &Prometheus, exporter: &Exporter, workloads: &Workloads) {
    let programs = [
        workloads.start("q-train", "train 0"),
        workloads.start("q-item", "item --steps 1000000 --kernel-ns 2000000 --host pageable"),
        workloads.start("q-stall", "stall --steps 1000000"),
        workloads.start("q-fails", "errors 1000000"),
        workloads.start("q-hangs", "stall --steps 1 --kernel-ns 3600000000000"),
    ];
    for (name, arguments) in [
        ("q-graph", "graph 5"),
        ("q-errors", "errors 2"),
        ("q-copies", "copies --seed 3"),
    ] {
        workloads.run(name, arguments);
    }
    let mut fatal = workloads.command("q-fatal", "train 1");
    // it ends with an error, as it should
    Program::start(fatal.env("GPUSIM_FAIL", "cuLaunchKernel:5+=719")).finish();
    happen(exporter, programs[0].pid());
    rules_are_evaluated(prometheus);
    for name in ["gpuscope", "fleet", "job", "self"] {
        dashboard(prometheus, name);
    }
    selectors_of_alerts(prometheus);
    severe_alerts_fire(prometheus);
    drop(programs);
}

/// What the simulated NVML is to report: links, a busy encoder, a hot GPU, rows to be replaced, an event and another.
fn happen(exporter: &Exporter, pid: u32) {
    // bits of NVML_CLOCKS_EVENT_REASON: software power cap, software thermal slowdown, hardware thermal slowdown
    let settings = format!(
        "{LINKS}0 encoder_percent 10\n0 decoder_percent 10\n\
         0 clock_reasons {}\n0 ecc_uncorrected.aggregate 3\n0 ecc_corrected.aggregate 7\n0 rows_corrected 1\n\
         0 rows_pending 1\n0 rows_failed 0\n0 gpm 1\n0 work {pid} 50 10 5 5\n0 xid 31\n",
        0x4 | 0x20 | 0x40
    );
    let file = exporter.state().join("nvml");
    std::fs::write(&file, &settings).expect("a file");
    eventually("the first event is told", || {
        exporter.sum("gpuscope_gpu_xid_errors_total", &["xid=\"31\""]).is_some()
    });
    std::fs::write(&file, settings + "0 xid 79\n").expect("a file");
    let told = |number: u32, code: u32| {
        format!("3,{number},2,-;NVRM: Xid (PCI:0000:01:00): {code}, pid={pid}, name=q-train, Ch 00000008\n")
    };
    std::fs::write(
        exporter.state().join("kmsg"),
        format!("6,0,1,-;boot\n{}{}", told(1, 31), told(2, 79)),
    )
    .expect("a file");
    eventually("the log is read", || {
        let labels = ["xid=\"79\"", "comm=\"q-train\"", "gpu=\"0\""];
        exporter.sum("gpuscope_gpu_xid_reports_total", &labels) == Some(1.0)
    });
}

/// Titles and queries of the panels of a dashboard.
pub fn expressions(name: &str) -> Vec<(String, String)> {
    let dashboard: Value = serde_json::from_str(&read(&format!("deploy/grafana/{name}.json"))).expect("JSON");
    let mut expressions = Vec::new();
    for panel in dashboard["panels"].as_array().expect("panels") {
        let title = panel["title"].as_str().unwrap_or_default();
        for target in panel["targets"].as_array().into_iter().flatten() {
            expressions.push((
                title.to_owned(),
                target["expr"].as_str().expect("an expression").to_owned(),
            ));
        }
    }
    expressions
}

fn dashboard(prometheus: &Prometheus, name: &str) {
    let mut missing = BTreeSet::new();
    let expressions = expressions(name);
    let asked = expressions.len();
    for (title, expression) in &expressions {
        if is_never_here(expression) {
            // wrong ones are refused
            assert!(prometheus.query(&filled_in(expression)).is_empty(), "{expression}");
        } else if !gives_data(prometheus, &filled_in(expression)) {
            missing.insert(format!("{title:?}: {expression}"));
        }
    }
    assert!(asked > 15, "{name}: {asked} queries");
    assert!(
        missing.is_empty(),
        "{name}: no data:\n{}",
        Vec::from_iter(missing).join("\n")
    );
}

/// The simulated CUDA asks no kernel driver, nobody asked for a black box (`kept` does), and no program ran before gpuscope
/// (`restart` has one that did).
fn is_never_here(expression: &str) -> bool {
    let metrics = metrics_of(expression);
    let is_not = |metric: &Metric| {
        let is_of_another = *metric == memory::MEMORY_EARLIER_BYTES || metric.name.starts_with(BLACK_BOX);
        is_of_another || metric.collector == Collector::Driver
    };
    metrics.iter().any(|(metric, _)| is_not(metric))
}

/// With everything chosen, as Grafana does.
fn filled_in(expression: &str) -> String {
    let mut filled = expression.replace("$__rate_interval", "5s").replace("$__range", "1m");
    for variable in ["instance", "gpu", "namespace", "pod", "comm", "batch_job", "user"] {
        filled = filled.replace(&format!("${variable}\""), ".*\"");
    }
    assert!(!filled.contains('$'), "{filled}");
    filled
}

/// Panels of the black box, where there is one.
pub fn those_of_the_black_box_give_data(prometheus: &Prometheus) {
    let all = expressions("self");
    let panels: Vec<_> = all
        .iter()
        .filter(|(_, expression)| expression.contains(BLACK_BOX))
        .collect();
    assert!(panels.len() > 3);
    for (title, expression) in panels {
        assert!(
            gives_data(prometheus, &filled_in(expression)),
            "{title:?}: {expression}"
        );
    }
}

fn gives_data(prometheus: &Prometheus, expression: &str) -> bool {
    (0..TRIES).any(|attempt| {
        let series = prometheus.query(expression);
        let has = !series.is_empty() && series.iter().any(|(_, value)| value.is_finite());
        if !has && attempt + 1 < TRIES {
            thread::sleep(Duration::from_millis(100));
        }
        has
    })
}

fn rules_are_evaluated(prometheus: &Prometheus) {
    let groups = prometheus.ask("rules", &[]);
    let groups = groups["groups"].as_array().expect("groups");
    let rules: Vec<&Value> = groups
        .iter()
        .flat_map(|group| group["rules"].as_array().expect("rules"))
        .collect();
    assert!(rules.len() > 25, "{} rules", rules.len());
    for rule in rules {
        assert!(rule["health"] == "ok" || rule["health"] == "unknown", "{rule}");
        if rule["type"] == "recording" {
            let name = rule["name"].as_str().expect("a name");
            assert!(gives_data(prometheus, name), "{name} records nothing");
        }
    }
}

/// A healthy machine fires nothing, so that an alert's expression is empty: what it is made of must not be.
fn selectors_of_alerts(prometheus: &Prometheus) {
    let rules: Value = serde_saphyr::from_str(&read("deploy/prometheus/gpuscope.rules.yml")).expect("YAML");
    let mut missing = BTreeSet::new();
    for rule in rules["groups"]
        .as_array()
        .expect("groups")
        .iter()
        .flat_map(|group| group["rules"].as_array().expect("rules"))
    {
        let expression = rule["expr"].as_str().expect("an expression");
        for (metric, selector) in metrics_of(expression) {
            let series = format!("{}{{{selector}}}", metric.name);
            if !gives_data(prometheus, &series) {
                missing.insert(format!("{} {}: {series}", rule["alert"], rule["record"]));
            }
        }
    }
    assert!(missing.is_empty(), "no data:\n{}", Vec::from_iter(missing).join("\n"));
}

/// What has just happened to the simulated machine fires, and says so in words.
fn severe_alerts_fire(prometheus: &Prometheus) {
    let is_firing = |name: &str| {
        let data = prometheus.ask("alerts", &[]);
        let alerts = data["alerts"].as_array().expect("alerts").clone();
        let found = alerts
            .into_iter()
            .find(|alert| alert["labels"]["alertname"] == name && alert["state"] == "firing");
        found.map(|alert| alert["annotations"].to_string())
    };
    for (name, word) in [
        ("GpuscopeXidSevere", "Xid 79 on GPU 0"),
        ("GpuscopeXid", "Xid 31 on GPU 0"),
        ("GpuscopeFatalCudaError", "q-fatal"),
    ] {
        let mut said = None;
        eventually(name, || {
            said = is_firing(name);
            said.is_some()
        });
        let said = said.unwrap_or_default();
        assert!(
            said.contains(word) && !said.contains("<no value>") && !said.contains("error expanding"),
            "{said}"
        );
    }
}
