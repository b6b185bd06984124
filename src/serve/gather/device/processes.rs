//! What processes hold of devices and do with them, summed for each owner.

use super::{Samples, and, of, ratio};
use crate::device::telemetry::{Identity, ProcessWork, Telemetry};
use crate::owner::Owner;
use crate::serve::metric::{Metric, Sample};
use crate::serve::metrics::device as table;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Device and owner.
type Key<'a> = (&'a str, Option<Arc<Owner>>);

pub(super) fn add(telemetry: &Telemetry, owner_of: &mut dyn FnMut(u32) -> Option<Arc<Owner>>, to: &mut Samples) {
    let mut held: BTreeMap<Key, u64> = BTreeMap::new();
    for process in &telemetry.processes {
        let owner = process.pid.and_then(&mut *owner_of);
        if let Some(bytes) = process.bytes {
            let sum = held.entry((&process.device, owner)).or_default();
            *sum = sum.saturating_add(bytes);
        }
    }
    let mut work: BTreeMap<Key, Percent> = BTreeMap::new();
    for process in &telemetry.work {
        let owner = process.pid.and_then(&mut *owner_of);
        work.entry((&process.device, owner)).or_default().add(process);
    }
    for ((device, owner), bytes) in held {
        if let Some((gpu, part)) = place(telemetry, device) {
            let sample = owned(&table::GPU_PROCESS_MEMORY_BYTES, owner.as_ref());
            to.0.push(sample(and(&gpu, [part.into()]), super::Number::from(bytes)));
        }
    }
    for ((device, owner), percent) in work {
        if let Some((gpu, _)) = place(telemetry, device) {
            let sample = owned(&table::GPU_PROCESS_SM_UTILIZATION_RATIO, owner.as_ref());
            to.0.push(sample(of(&gpu), super::Number::from(ratio(percent.sm as f64))));
            let sample = owned(&table::GPU_PROCESS_ENGINE_UTILIZATION_RATIO, owner.as_ref());
            for (engine, percent) in percent.engines {
                let values = and(&gpu, [engine.into()]);
                to.0.push(sample(values, super::Number::from(ratio(percent as f64))));
            }
        }
    }
}

/// What processes used of a device.
struct Percent {
    sm: u64,
    engines: [(&'static str, u64); 3],
}

impl Default for Percent {
    fn default() -> Percent {
        Percent {
            sm: 0,
            engines: [("memory", 0), ("encoder", 0), ("decoder", 0)],
        }
    }
}

impl Percent {
    fn add(&mut self, work: &ProcessWork) {
        self.sm += u64::from(work.sm_percent);
        let more = [work.memory_percent, work.encoder_percent, work.decoder_percent];
        for ((_, sum), more) in self.engines.iter_mut().zip(more) {
            *sum += u64::from(more);
        }
    }
}

fn owned(metric: &'static Metric, owner: Option<&Arc<Owner>>) -> impl Fn(super::Values, super::Number) -> Sample {
    move |values, number| {
        let sample = Sample::new(metric, values, number.0);
        match owner {
            Some(owner) => sample.of(owner),
            None => sample,
        }
    }
}

/// The GPU of a device, and the UUID of its part or nothing.
fn place(telemetry: &Telemetry, uuid: &str) -> Option<(Identity, String)> {
    let has =
        |device: &&crate::device::Device| device.uuid == uuid || device.parts().iter().any(|part| part.uuid == uuid);
    let device = telemetry.devices.iter().find(has)?;
    let gpu = Identity {
        index: device.index,
        uuid: device.uuid.clone(),
        pci_bus_id: device.pci_bus_id.clone(),
    };
    let part = if device.uuid == uuid { "" } else { uuid };
    Some((gpu, part.to_owned()))
}
