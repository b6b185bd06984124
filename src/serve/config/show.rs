//! A configuration as a file that says the same.

use super::Config;
use super::words::{OFF, percent_text, size_text, time_text};
use crate::text::quantity::harmless;
use std::fmt::{Display, Write};

/// Each key that is no table, and its value in TOML, always in the same order.
pub(super) fn lines(config: &Config) -> Vec<(&'static str, String)> {
    let path = |path: &std::path::PathBuf| path.display().to_string();
    let off = |value: Option<String>| quoted(value.as_deref().unwrap_or(OFF));
    vec![
        ("collect", list(config.collect.iter().map(|collector| collector.name()))),
        ("layer", list(&config.layer)),
        ("hooks", list(config.hooks.iter().map(path))),
        ("nvml_interval", quoted(&time_text(config.nvml_interval))),
        ("budget", off(config.budget.map(percent_text))),
        ("budget_except", list(&config.budget_except)),
        ("listen", list(&config.listen)),
        ("health_listen", list(&config.health_listen)),
        ("telemetry_path", quoted(&config.telemetry_path)),
        ("web_config", off(config.web_config.as_ref().map(path))),
        ("display_interval", off(config.display_interval.map(time_text))),
        ("labels", list(&config.labels)),
        ("kubelet", off(config.kubelet.clone())),
        ("pod_resources", off(config.pod_resources.as_ref().map(path))),
        ("top_kernels", config.top_kernels.to_string()),
        ("max_series", config.max_series.to_string()),
        ("max_owners", config.max_owners.to_string()),
        ("retain", quoted(&time_text(config.retain))),
        ("keep", off(config.keep.time.map(time_text))),
        ("keep_memory", quoted(&size_text(config.keep.memory))),
        ("keep_folder", off(config.keep.folder.as_ref().map(path))),
        ("keep_disk", quoted(&size_text(config.keep.disk))),
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
        let _ = writeln!(out, "interval = {}", quoted(&time_text(otlp.interval)));
        let _ = writeln!(out, "timeout = {}", quoted(&time_text(otlp.timeout)));
        let names: Vec<String> = otlp
            .headers
            .iter()
            .map(|(name, _)| format!("{} = \"…\"", quoted(name)))
            .collect();
        let _ = writeln!(out, "headers = {{ {} }}", names.join(", "));
    }
    out
}

fn list(values: impl IntoIterator<Item = impl Display>) -> String {
    let values: Vec<String> = values.into_iter().map(|value| quoted(&value.to_string())).collect();
    format!("[{}]", values.join(", "))
}

/// A text of JSON is one of TOML, too, where it holds no control character as it is.
fn quoted(text: &str) -> String {
    harmless(&serde_json::Value::from(text).to_string())
}
