//! docs/metrics.md is written from the table of metrics: `UPDATE_DOCS=1 cargo test metrics_doc` writes it anew.

use super::metric::{Collector, Kind, Metric};
use super::metrics;
use super::otlp::name::{Instrument, name_of};

const HEAD: &str = include_str!("metrics_doc_head.md");

fn page() -> String {
    let mut page = HEAD.to_owned();
    for collector in Collector::ALL {
        let of_it = || metrics::all().filter(|metric| metric.collector == *collector);
        if of_it().next().is_none() {
            continue;
        }
        page.push_str(&format!("\n## {}\n\n{}\n\n", collector.name(), about(*collector)));
        page.push_str("| metric | kind | unit | labels | meaning | OpenTelemetry |\n|---|---|---|---|---|---|\n");
        of_it().for_each(|metric| page.push_str(&row(metric)));
    }
    page
}

fn about(collector: Collector) -> &'static str {
    match collector {
        Collector::Api => "Calls by class of function, and the time in them. Needs probes.",
        Collector::Getters => "More of `api`.",
        Collector::Buckets => "Durations of what `api` counts. Needs probes.",
        Collector::Errors => "What calls returned. Needs probes.",
        Collector::Memory => "What programs hold. Needs probes; what the driver counts needs NVML.",
        Collector::Launches => "Kernels and graphs. Needs probes.",
        Collector::Copies => "Copies and their bandwidth. Needs probes.",
        Collector::Sync => "Waiting, and idle time inferred from it. Needs probes.",
        Collector::Sites => {
            "At which lines of programs they wait. Off unless named: the call stacks of calls that copy or wait for 20 µs or longer are read, \
             five thousand a second at most. Needs probes."
        }
        Collector::Driver => {
            "What programs ask of NVIDIA's kernel driver. Off unless named: each ioctl of every program of the machine \
             takes a little longer. Needs the tracepoints of system calls; `gpuscope_api_driver_seconds_total` needs \
             probes on the functions, which `api` has."
        }
        Collector::Nvml => "Devices, as NVML sees them. Needs no privileges.",
        Collector::Reserved => {
            "What schedulers have given to pods and jobs, and whether these use it. Needs `nvml`'s answers, and the kubelet's socket \
             or Slurm's cgroups; rights to look at processes of others. `gpuscope_waste_gpu_seconds_total` with the reason `reserved-unused` \
             is its own, too."
        }
        Collector::Xid => {
            "Errors that the driver reports: to NVML, which needs no privileges, and to the kernel's log, which needs CAP_SYSLOG or root."
        }
        Collector::Own => "gpuscope itself.",
    }
}

fn row(metric: &Metric) -> String {
    let kind = match metric.kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Histogram => "histogram",
        Kind::Info => "info",
    };
    let labels = metric.labels.iter().map(|label| format!("`{label}`"));
    let owner = metric.by_owner.then(|| "*owner*".to_owned());
    let labels: Vec<String> = labels.chain(owner).collect();
    let (unit, labels) = (metric.unit(), labels.join(", "));
    format!(
        "| `{}` | {kind} | {unit} | {labels} | {} | {} |\n",
        metric.name,
        metric.help,
        opentelemetry(metric)
    )
}

fn opentelemetry(metric: &Metric) -> String {
    let name = name_of(metric);
    let kind = match name.instrument {
        Instrument::UpDownCounter => ", up-down counter",
        Instrument::OlderCounter => ", start unknown",
        Instrument::Counter | Instrument::Gauge | Instrument::Histogram => "",
    };
    let attributes: String = name
        .attributes
        .iter()
        .map(|(key, value)| format!(", `{key}={value}`"))
        .collect();
    format!("`{}` ({}{kind}){attributes}", name.name, name.unit)
}

#[test]
fn metrics_doc_is_what_the_code_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/metrics.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, page()).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap();
    assert!(
        written == page(),
        "docs/metrics.md is out of date; UPDATE_DOCS=1 cargo test metrics_doc"
    );
}

#[test]
fn metrics_doc_breaks_no_table() {
    for metric in metrics::all() {
        assert!(!metric.help.contains(['|', '<', '`', '*']), "{}", metric.help);
    }
}
