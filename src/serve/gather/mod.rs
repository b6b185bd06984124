//! From what is known to samples. Pure.

mod api;
pub mod device;
mod driver;
mod kept;
mod memory;
mod own;
mod reserved;
mod shed;
mod work;
mod xid;

pub(crate) use kept::Kept;
pub(crate) use own::{Own, own, tracing};
pub(crate) use reserved::{Asked, reserved};
pub(crate) use shed::leave_out_unseen;
pub(crate) use xid::Xids;

use super::metric::{Collector, Sample};
use crate::catalog::Catalog;
use crate::device::telemetry::Telemetry;
use crate::tracer::Census;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

/// The value of a label.
type Label = Cow<'static, str>;

/// A device of the machine, as labels have it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gpu {
    pub index: String,
    pub pci_bus_id: String,
}

/// What traced processes did, and the words for it.
pub(crate) struct Traced<'a> {
    pub census: &'a Census,
    pub catalog: &'a Catalog,
    /// By UUID, also of MIG devices.
    pub gpus: &'a HashMap<String, Gpu>,
}

/// All devices that NVML has ever known, by UUID: a counter keeps its labels though its device has fallen off the bus, or NVML does not
/// answer for a while.
#[derive(Debug, Default)]
pub(crate) struct KnownGpus(HashMap<String, Gpu>);

/// Devices, and parts of them that are made anew again and again.
const MOST_KNOWN: usize = 4096;

impl KnownGpus {
    /// Those that NVML knows now.
    pub(crate) fn note(&mut self, telemetry: &Telemetry) {
        if self.0.len() > MOST_KNOWN {
            self.0.clear();
        }
        self.0.extend(gpus(telemetry));
    }

    #[must_use]
    pub(crate) fn all(&self) -> &HashMap<String, Gpu> {
        &self.0
    }
}

/// The devices that NVML knows, and their MIG devices, by UUID.
#[must_use]
pub(crate) fn gpus(telemetry: &Telemetry) -> HashMap<String, Gpu> {
    let mut gpus = HashMap::new();
    for device in &telemetry.devices {
        let gpu = Gpu {
            index: device.index.to_string(),
            pci_bus_id: device.pci_bus_id.clone(),
        };
        let parts = device.parts().iter().map(|part| part.uuid.clone());
        gpus.extend(parts.map(|uuid| (uuid, gpu.clone())));
        gpus.insert(device.uuid.clone(), gpu);
    }
    gpus
}

impl Traced<'_> {
    /// Samples of these collectors.
    #[must_use]
    pub(crate) fn samples(&self, collect: &BTreeSet<Collector>) -> Vec<Sample> {
        let mut samples = Vec::new();
        let wanted = |collector| collect.contains(&collector);
        for reading in &self.census.readings {
            if wanted(Collector::Api) {
                api::calls(self, reading, &mut samples);
            }
            if wanted(Collector::Buckets) {
                api::durations(self, reading, &mut samples);
            }
            if wanted(Collector::Errors) {
                api::errors(self, reading, &mut samples);
            }
            if wanted(Collector::Memory) {
                memory::held(self, reading, &mut samples);
                memory::moved(reading, &mut samples);
            }
            if wanted(Collector::Launches) {
                work::launches(reading, &mut samples);
            }
            if wanted(Collector::Copies) {
                work::copies(reading, &mut samples);
            }
            if wanted(Collector::Sync) {
                work::graphs(reading, &mut samples);
                work::open(reading, &mut samples);
                work::waits(self, reading, &mut samples);
                work::waste(self, reading, &mut samples);
            }
            if wanted(Collector::Sites) {
                work::sites(self, reading, &mut samples);
            }
            if wanted(Collector::Driver) {
                driver::calls(self, reading, &mut samples);
                driver::errors(self, reading, &mut samples);
                driver::shares(self, reading, &mut samples);
            }
        }
        samples
    }

    /// Labels `gpu`, `uuid` and `pci_bus_id` of the device with that UUID; empty: it is not known.
    fn place(&self, uuid: Option<&str>) -> [Label; 3] {
        uuid.map(|uuid| place(self.gpus, uuid)).unwrap_or_default()
    }
}

fn place(gpus: &HashMap<String, Gpu>, uuid: &str) -> [Label; 3] {
    let gpu = gpus.get(uuid).cloned().unwrap_or_default();
    [gpu.index.into(), uuid.to_owned().into(), gpu.pci_bus_id.into()]
}
