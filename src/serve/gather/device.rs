//! What NVML said, as samples.

mod counters;
mod engines;
mod gauges;
mod processes;

use crate::device::telemetry::{Identity, Telemetry};
use crate::owner::Owner;
use crate::serve::metric::{Metric, Sample, Value};
use crate::serve::metrics::device as table;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Answers that are older are of no use any more, however slowly NVML is asked.
const STALE: Duration = Duration::from_secs(15);
const STALE_ROUNDS: u32 = 5;

/// All samples of [`table`], in its order. `owner_of` says whom a process is counted for; where it says nobody, what
/// the process holds is in a sample without an owner.
///
/// While NVML does not answer, GPUs have no values: only that they are not up, and what was counted.
pub fn samples(
    telemetry: &Telemetry,
    now: Instant,
    owner_of: &mut dyn FnMut(u32) -> Option<Arc<Owner>>,
) -> Vec<Sample> {
    let age = now.saturating_duration_since(telemetry.at);
    let answers = telemetry.absent.is_none() && age <= STALE.max(telemetry.every * STALE_ROUNDS);
    let mut to = Samples::default();
    about_nvml(telemetry, age, answers, &mut to);
    xids(telemetry, &mut to);
    for gpu in &telemetry.lost {
        to.add(&table::GPU_UP, of(gpu), 0u64);
    }
    for gpu in &telemetry.gpus {
        to.add(&table::GPU_UP, of(&gpu.identity), u64::from(answers));
        if answers {
            gauges::add(gpu, &mut to);
            counters::add(gpu, &mut to);
            engines::add(gpu, &mut to);
        }
    }
    if answers {
        inventory(telemetry, &mut to);
        processes::add(telemetry, owner_of, &mut to);
    }
    to.in_order()
}

type Values = Vec<Cow<'static, str>>;

/// The labels that name a GPU. One that never answered has no number.
fn of(gpu: &Identity) -> Values {
    let index = if gpu.uuid.is_empty() {
        String::new()
    } else {
        gpu.index.to_string()
    };
    vec![index.into(), gpu.uuid.clone().into(), gpu.pci_bus_id.clone().into()]
}

fn and(gpu: &Identity, more: impl IntoIterator<Item = Cow<'static, str>>) -> Values {
    of(gpu).into_iter().chain(more).collect()
}

#[derive(Default)]
struct Samples(Vec<Sample>);

impl Samples {
    fn add(&mut self, metric: &'static Metric, values: Values, value: impl Into<Number>) {
        self.0.push(Sample::new(metric, values, value.into().0));
    }

    /// Nothing where nothing was told.
    fn add_known(&mut self, metric: &'static Metric, values: Values, value: Option<impl Into<Number>>) {
        if let Some(value) = value {
            self.add(metric, values, value);
        }
    }

    fn in_order(mut self) -> Vec<Sample> {
        let place = |sample: &Sample| {
            table::ALL
                .iter()
                .position(|metric| std::ptr::eq(*metric, sample.metric))
        };
        self.0.sort_by_cached_key(place);
        self.0
    }
}

struct Number(Value);

impl From<u64> for Number {
    fn from(number: u64) -> Number {
        Number(Value::Integer(number))
    }
}

impl From<u32> for Number {
    fn from(number: u32) -> Number {
        Number(Value::Integer(number.into()))
    }
}

impl From<f64> for Number {
    fn from(number: f64) -> Number {
        Number(Value::Number(number))
    }
}

fn ratio(percent: impl Into<f64>) -> f64 {
    percent.into() / 100.0
}

fn about_nvml(telemetry: &Telemetry, age: Duration, answers: bool, to: &mut Samples) {
    to.add(&table::NVML_UP, Vec::new(), u64::from(answers));
    to.add(&table::NVML_AGE_SECONDS, Vec::new(), age.as_secs_f64());
    if telemetry.absent.is_none() {
        to.add(&table::NVML_DURATION_SECONDS, Vec::new(), telemetry.took.as_secs_f64());
    }
    let gpus = telemetry.gpus.iter().map(|gpu| &gpu.identity).chain(&telemetry.lost);
    let gpus = gpus.filter(|gpu| !gpu.uuid.is_empty());
    let mut errors: std::collections::BTreeMap<u32, u64> = gpus.map(|gpu| (gpu.index, 0)).collect();
    errors.extend(&telemetry.errors);
    for (gpu, count) in errors {
        to.add(&table::NVML_ERRORS, vec![gpu.to_string().into()], count);
    }
}

fn xids(telemetry: &Telemetry, to: &mut Samples) {
    for xid in &telemetry.xids {
        let values = and(&xid.gpu, [xid.code.to_string().into()]);
        to.add(&table::GPU_XID_ERRORS, values.clone(), xid.count);
        let last = xid.last.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        to.add(&table::GPU_XID_LAST_TIMESTAMP_SECONDS, values, last.as_secs_f64());
    }
}

/// What there is, and how it is divided.
fn inventory(telemetry: &Telemetry, to: &mut Samples) {
    for device in &telemetry.devices {
        let gpu = Identity {
            index: device.index,
            uuid: device.uuid.clone(),
            pci_bus_id: device.pci_bus_id.clone(),
        };
        let minor = device.minor.map(|minor| minor.to_string()).unwrap_or_default();
        let driver = telemetry.driver.clone().unwrap_or_default();
        let about = [device.name.clone().into(), minor.into(), driver.into()];
        to.add(&table::GPU_INFO, and(&gpu, about), 1u64);
        for part in device.parts() {
            let name: [Cow<'static, str>; 3] = [
                part.uuid.clone().into(),
                part.gpu_instance.to_string().into(),
                part.compute_instance.to_string().into(),
            ];
            let profile = part
                .name
                .rsplit_once("MIG ")
                .map_or("", |(_, profile)| profile)
                .to_owned();
            let about = name.iter().cloned().chain([profile.into()]);
            to.add(&table::GPU_MIG_INFO, and(&gpu, about), 1u64);
            let total = part.memory.map(|memory| memory.total_bytes);
            to.add_known(&table::GPU_MIG_MEMORY_TOTAL_BYTES, and(&gpu, name.clone()), total);
            let used = part.memory.map(|memory| memory.used_bytes);
            to.add_known(&table::GPU_MIG_MEMORY_USED_BYTES, and(&gpu, name), used);
        }
    }
}
