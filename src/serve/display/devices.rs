//! One line for each device.

use super::columns::Table;
use super::reading::{label, number, of};
use super::units::{part, percent};
use super::{Line, Look};
use crate::serve::metric::{Collector, Sample};
use crate::text::quantity::escaped;
use std::collections::{BTreeMap, BTreeSet};

/// What says that nothing holds clocks down.
const IDLE: &str = "gpu_idle";
/// What NVML said longer ago is said to be old.
const OLD_SECONDS: f64 = 10.0;

/// What is known of one device.
#[derive(Default)]
struct Device<'a> {
    values: BTreeMap<&'static str, f64>,
    name: &'a str,
    limits: BTreeSet<&'a str>,
}

/// Nothing where devices are not measured.
pub(super) fn lines(scrape: &[Sample]) -> Vec<Line> {
    let mut lines = table(scrape);
    let is = |name, wrong: fn(f64) -> bool| of(scrape, name).map(number).find(|value| wrong(*value));
    if is("gpuscope_nvml_up", |up| up == 0.0).is_some() {
        let words = "NVML does not answer: nothing is known of devices (gpuscope doctor says why)";
        lines.push((Look::Wrong, words.to_owned()));
    } else if let Some(age) = is("gpuscope_nvml_age_seconds", |age| age > OLD_SECONDS) {
        lines.push((Look::Wrong, format!("what NVML said of devices is {age:.0} s old")));
    }
    lines
}

fn table(scrape: &[Sample]) -> Vec<Line> {
    let devices = devices(scrape);
    if devices.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new(&["gpu", "util", "memory", "power", "temp", "held down", "name"]);
    for ((_, gpu), device) in &devices {
        table.add(row(gpu, device));
    }
    let look = |(index, text)| match index {
        0 => (Look::Heading, text),
        _ => (Look::Plain, text),
    };
    table.lines().into_iter().enumerate().map(look).collect()
}

/// By their number, where it is one.
fn devices(scrape: &[Sample]) -> BTreeMap<(u64, &str), Device<'_>> {
    let mut devices: BTreeMap<(u64, &str), Device<'_>> = BTreeMap::new();
    for sample in scrape
        .iter()
        .filter(|sample| sample.metric.name.starts_with("gpuscope_gpu_"))
    {
        let gpu = label(sample, "gpu");
        let of_events = sample.metric.collector == Collector::Xid;
        if gpu.is_empty() || of_events || sample.metric.by_owner {
            continue;
        }
        let device = devices.entry((gpu.parse().unwrap_or(u64::MAX), gpu)).or_default();
        match sample.metric.name {
            "gpuscope_gpu_info" => device.name = label(sample, "name"),
            "gpuscope_gpu_clocks_limited" if number(sample) > 0.0 => {
                device.limits.insert(label(sample, "reason"));
            }
            "gpuscope_gpu_temperature_celsius" if label(sample, "sensor") != "gpu" => {}
            name => drop(device.values.insert(name, number(sample))),
        }
    }
    devices
}

fn row(gpu: &str, device: &Device) -> Vec<Option<String>> {
    let value = |name| device.values.get(name).copied();
    let memory = (
        value("gpuscope_gpu_memory_used_bytes"),
        value("gpuscope_gpu_memory_total_bytes"),
    );
    let power = (
        value("gpuscope_gpu_power_watts"),
        value("gpuscope_gpu_power_limit_watts"),
    );
    let limits: Vec<&str> = device.limits.iter().copied().filter(|reason| *reason != IDLE).collect();
    vec![
        Some(escaped(gpu)),
        value("gpuscope_gpu_utilization_ratio").map(percent),
        memory.0.zip(memory.1).map(|(used, total)| part(used, total)),
        match power {
            (Some(now), Some(limit)) => Some(format!("{now:.0} / {limit:.0} W")),
            (now, _) => now.map(|now| format!("{now:.0} W")),
        },
        value("gpuscope_gpu_temperature_celsius").map(|celsius| format!("{celsius:.0} °C")),
        (!limits.is_empty()).then(|| escaped(&limits.join(","))),
        Some(escaped(device.name)).filter(|name| !name.is_empty()),
    ]
}
