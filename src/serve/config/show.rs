//! A configuration as a file that says the same.

use super::Config;
use super::words::OFF;
use crate::text::quantity::harmless;
use std::fmt::{Display, Write};
use std::time::Duration;

/// Each key that is no table, and its value in TOML, always in the same order.
pub(super) fn lines(config: &Config) -> Vec<(&'static str, String)> {
    let path = |path: &std::path::PathBuf| path.display().to_string();
    let off = |value: Option<String>| quoted(value.as_deref().unwrap_or(OFF));
    vec![
        ("collect", list(config.collect.iter().map(|collector| collector.name()))),
        ("layer", list(&config.layer)),
        ("hooks", list(config.hooks.iter().map(path))),
        ("nvml_interval", quoted(&time(config.nvml_interval))),
        ("listen", list(&config.listen)),
        ("health_listen", list(&config.health_listen)),
        ("telemetry_path", quoted(&config.telemetry_path)),
        ("web_config", off(config.web_config.as_ref().map(path))),
        ("display_interval", off(config.display_interval.map(time))),
        ("labels", list(&config.labels)),
        ("kubelet", off(config.kubelet.clone())),
        ("top_kernels", config.top_kernels.to_string()),
        ("max_series", config.max_series.to_string()),
        ("max_owners", config.max_owners.to_string()),
        ("retain", quoted(&time(config.retain))),
    ]
}

/// All of it; what headers say is secret and left out.
pub(super) fn text(config: &Config) -> String {
    let mut out = String::new();
    for (key, value) in lines(config) {
        let _ = writeln!(out, "{key} = {value}");
    }
    if let Some(otlp) = &config.otlp {
        let _ = writeln!(out, "\n[otlp]\nurl = {}", quoted(&otlp.url));
        let _ = writeln!(out, "interval = {}", quoted(&time(otlp.interval)));
        let _ = writeln!(out, "timeout = {}", quoted(&time(otlp.timeout)));
        let names: Vec<String> = otlp
            .headers
            .iter()
            .map(|(name, _)| format!("{} = \"…\"", quoted(name)))
            .collect();
        let _ = writeln!(out, "headers = {{ {} }}", names.join(", "));
    }
    out
}

/// In the largest unit that is exact.
pub(super) fn time(time: Duration) -> String {
    let ns = time.as_nanos();
    let units = [
        ("h", 3_600_000_000_000),
        ("min", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1000),
    ];
    let exact = units.iter().find(|(_, unit)| ns >= *unit && ns.is_multiple_of(*unit));
    match exact {
        Some((name, unit)) => format!("{}{name}", ns / unit),
        None => format!("{ns}ns"),
    }
}

fn list(values: impl IntoIterator<Item = impl Display>) -> String {
    let values: Vec<String> = values.into_iter().map(|value| quoted(&value.to_string())).collect();
    format!("[{}]", values.join(", "))
}

/// A text of JSON is one of TOML, too, where it holds no control character as it is.
fn quoted(text: &str) -> String {
    harmless(&serde_json::Value::from(text).to_string())
}
