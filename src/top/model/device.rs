//! One device, as the driver sees it, and what gpuscope knows beside that.

use super::count::optional_whole;
use crate::serve::display::Rates;
use crate::serve::display::reading::{label, number};
use crate::serve::metric::{Collector, Sample};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// What says that nothing holds clocks down.
const IDLE: &str = "gpu_idle";

/// One device, as the driver sees it. `None`: nobody says.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Device {
    /// Its number.
    pub gpu: String,
    pub uuid: String,
    pub pci_bus_id: String,
    pub name: String,
    /// It answers.
    pub up: bool,
    /// Share of time with any kernel running, as the driver samples it.
    pub utilization: Option<f64>,
    /// At most this share of time it had anything to do, as far as all that its processes do is known.
    pub busy_at_most: Option<f64>,
    /// That is no bound: something was inferred.
    pub busy_is_inferred: bool,
    pub sm_activity: Option<f64>,
    pub tensor_activity: Option<f64>,
    #[serde(serialize_with = "optional_whole")]
    pub used_bytes: Option<f64>,
    #[serde(serialize_with = "optional_whole")]
    pub total_bytes: Option<f64>,
    /// Of these, what was seen allocated.
    #[serde(serialize_with = "optional_whole")]
    pub tracked_bytes: Option<f64>,
    /// What no allocation of traced processes explains: contexts, code, what was there before.
    #[serde(serialize_with = "optional_whole")]
    pub unattributed_bytes: Option<f64>,
    pub power_watts: Option<f64>,
    pub power_limit_watts: Option<f64>,
    pub celsius: Option<f64>,
    #[serde(serialize_with = "optional_whole")]
    pub sm_hertz: Option<f64>,
    #[serde(serialize_with = "optional_whole")]
    pub memory_hertz: Option<f64>,
    /// What holds clocks down.
    pub held_down_by: BTreeSet<String>,
    pub pcie_sent_per_second: Option<f64>,
    pub pcie_received_per_second: Option<f64>,
    pub nvlink_sent_per_second: Option<f64>,
    pub nvlink_received_per_second: Option<f64>,
    /// Since gpuscope came, by code.
    pub xids: BTreeMap<String, u64>,
    /// Its MIG devices.
    pub parts: Vec<Part>,
}

/// A MIG device.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Part {
    pub uuid: String,
    pub profile: String,
    /// Its number among the instances of its GPU; compute instances in it share that.
    pub gpu_instance: String,
    /// That hold memory of it, as the driver says.
    pub processes: u64,
    pub(crate) sm_activity: Option<f64>,
    pub(crate) tensor_activity: Option<f64>,
    #[serde(serialize_with = "optional_whole")]
    pub used_bytes: Option<f64>,
    #[serde(serialize_with = "optional_whole")]
    pub total_bytes: Option<f64>,
}

/// By their number, where it is one. A fault or an allocation on a device that NVML does not tell of makes none.
pub(super) fn devices(samples: &[Sample], rates: &Rates) -> Vec<Device> {
    let key = |sample: &Sample| {
        let gpu = label(sample, "gpu").to_owned();
        (gpu.parse().unwrap_or(u64::MAX), gpu)
    };
    let mut devices: BTreeMap<(u64, String), Device> = BTreeMap::new();
    for sample in samples.iter().filter(|sample| tells_of_device(sample)) {
        devices.entry(key(sample)).or_default().take(sample, rates);
    }
    for sample in samples.iter().filter(|sample| is_memory(sample) || is_fault(sample)) {
        if let Some(device) = devices.get_mut(&key(sample)) {
            device.take(sample, rates);
        }
    }
    for sample in samples.iter().filter(|sample| tells_of_device(sample)) {
        if let Some(device) = devices.get_mut(&key(sample)) {
            device.measure_parts(sample);
        }
    }
    let named = devices.into_iter().map(|((_, gpu), device)| Device { gpu, ..device });
    named.collect()
}

fn tells_of_device(sample: &Sample) -> bool {
    let is_of_gpu = sample.metric.name.starts_with("gpuscope_gpu_") && !label(sample, "gpu").is_empty();
    is_of_gpu && !sample.metric.by_owner && !is_fault(sample)
}

fn is_fault(sample: &Sample) -> bool {
    sample.metric.collector == Collector::Xid
}

fn is_memory(sample: &Sample) -> bool {
    is_unattributed(sample) || sample.metric.name == "gpuscope_memory_held_bytes"
}

fn is_unattributed(sample: &Sample) -> bool {
    ["gpuscope_memory_unattributed_bytes", "gpuscope_memory_earlier_bytes"].contains(&sample.metric.name)
}

impl Device {
    fn take(&mut self, sample: &Sample, rates: &Rates) {
        let value = number(sample);
        match sample.metric.name {
            "gpuscope_gpu_info" => self.name_by(sample),
            "gpuscope_gpu_up" => self.up = value > 0.0,
            "gpuscope_gpu_clocks_limited" => self.hold_down(label(sample, "reason"), value),
            "gpuscope_gpu_xid_errors_total" => {
                *self.xids.entry(label(sample, "xid").to_owned()).or_default() += value as u64;
            }
            "gpuscope_gpu_mig_info" => {
                let part = self.part(sample);
                part.profile = label(sample, "profile").to_owned();
                part.gpu_instance = label(sample, "gpu_instance").to_owned();
            }
            "gpuscope_gpu_mig_memory_used_bytes" => self.part(sample).used_bytes = Some(value),
            "gpuscope_gpu_mig_memory_total_bytes" => self.part(sample).total_bytes = Some(value),
            "gpuscope_memory_held_bytes" => *self.tracked_bytes.get_or_insert_default() += value,
            _ if is_unattributed(sample) => *self.unattributed_bytes.get_or_insert_default() += value,
            "gpuscope_gpu_nvlink_bytes_total" => match label(sample, "direction") {
                "sent" => self.nvlink_sent_per_second = rates.per_second(sample),
                _ => self.nvlink_received_per_second = rates.per_second(sample),
            },
            _ => self.measure(sample, value),
        }
    }

    /// What is one number.
    fn measure(&mut self, sample: &Sample, value: f64) {
        let whole = label(sample, "gpu_instance").is_empty();
        let place = match (sample.metric.name, sample.values.last().map_or("", AsRef::as_ref)) {
            ("gpuscope_gpu_utilization_ratio", _) => &mut self.utilization,
            ("gpuscope_gpu_memory_used_bytes", _) => &mut self.used_bytes,
            ("gpuscope_gpu_memory_total_bytes", _) => &mut self.total_bytes,
            ("gpuscope_gpu_power_watts", _) => &mut self.power_watts,
            ("gpuscope_gpu_power_limit_watts", _) => &mut self.power_limit_watts,
            ("gpuscope_gpu_temperature_celsius", "gpu") => &mut self.celsius,
            ("gpuscope_gpu_clock_hertz", "sm") => &mut self.sm_hertz,
            ("gpuscope_gpu_clock_hertz", "memory") => &mut self.memory_hertz,
            ("gpuscope_gpu_pcie_bytes_per_second", "sent") => &mut self.pcie_sent_per_second,
            ("gpuscope_gpu_pcie_bytes_per_second", _) => &mut self.pcie_received_per_second,
            ("gpuscope_gpu_sm_activity_ratio", _) if whole => &mut self.sm_activity,
            ("gpuscope_gpu_pipe_activity_ratio", "tensor") if whole => &mut self.tensor_activity,
            _ => return,
        };
        *place = Some(value);
    }

    /// What GPM says of a GPU instance is of all its parts; these are known by now.
    fn measure_parts(&mut self, sample: &Sample) {
        let instance = label(sample, "gpu_instance");
        let parts = self.parts.iter_mut();
        for part in parts.filter(|part| !instance.is_empty() && part.gpu_instance == instance) {
            match (sample.metric.name, sample.values.last().map_or("", AsRef::as_ref)) {
                ("gpuscope_gpu_sm_activity_ratio", _) => part.sm_activity = Some(number(sample)),
                ("gpuscope_gpu_pipe_activity_ratio", "tensor") => part.tensor_activity = Some(number(sample)),
                _ => {}
            }
        }
    }

    fn name_by(&mut self, sample: &Sample) {
        self.name = label(sample, "name").to_owned();
        self.uuid = label(sample, "uuid").to_owned();
        self.pci_bus_id = label(sample, "pci_bus_id").to_owned();
    }

    fn hold_down(&mut self, reason: &str, holds: f64) {
        if holds > 0.0 && reason != IDLE {
            self.held_down_by.insert(reason.to_owned());
        }
    }

    fn part(&mut self, sample: &Sample) -> &mut Part {
        let uuid = label(sample, "mig_uuid");
        let place = self.parts.iter().position(|part| part.uuid == uuid);
        let place = place.unwrap_or_else(|| {
            self.parts.push(Part {
                uuid: uuid.to_owned(),
                ..Part::default()
            });
            self.parts.len() - 1
        });
        &mut self.parts[place]
    }
}
