//! GPU performance monitoring (Hopper and later): what happened between two rounds.

use super::answer::{Answers, is_unsupported};
use super::gpu::GpmReading;
use crate::device::ask::Gpu;
use nvml_wrapper::Nvml;
use nvml_wrapper::enums::gpm::GpmMetricId;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::gpm::{GpmSample, gpm_metrics_get};
use std::collections::{BTreeSet, HashMap, HashSet};

const MIB: f64 = 1_048_576.0;
const PIPES: [(GpmMetricId, &str); 5] = [
    (GpmMetricId::AnyTensorUtil, "tensor"),
    (GpmMetricId::Fp64Util, "fp64"),
    (GpmMetricId::Fp32Util, "fp32"),
    (GpmMetricId::Fp16Util, "fp16"),
    (GpmMetricId::IntegerUtil, "integer"),
];
const OTHERS: [GpmMetricId; 5] = [
    GpmMetricId::SmUtil,
    GpmMetricId::SmOccupancy,
    GpmMetricId::DramBwUtil,
    GpmMetricId::PcieTxPerSec,
    GpmMetricId::PcieRxPerSec,
];

/// UUID of the GPU, and the GPU instance in MIG mode.
type Place = (String, Option<u32>);

/// The samples of the round before.
pub(super) struct Gpm<'a> {
    nvml: &'a Nvml,
    before: HashMap<Place, GpmSample<'a>>,
    without: HashSet<String>,
}

impl<'a> Gpm<'a> {
    pub(super) fn new(nvml: &'a Nvml) -> Gpm<'a> {
        Gpm {
            nvml,
            before: HashMap::new(),
            without: HashSet::new(),
        }
    }

    /// Readings since the last time this was asked; none the first time. `instances`: those of a GPU in MIG mode.
    pub(super) fn read(
        &mut self,
        gpu: &Gpu<'a>,
        uuid: &str,
        instances: Option<&BTreeSet<u32>>,
        answers: &mut Answers,
    ) -> Vec<GpmReading> {
        if !self.has(gpu, uuid) {
            return Vec::new();
        }
        let places: Vec<Option<u32>> = match instances {
            Some(instances) => instances.iter().copied().map(Some).collect(),
            None => vec![None],
        };
        let gone = |(other, instance): &Place| other == uuid && !places.contains(instance);
        self.before.retain(|place, _| !gone(place));
        let readings = places.iter().map(|instance| {
            let reading = self.place(gpu, (uuid.to_owned(), *instance));
            answers.told("GPM", reading).flatten()
        });
        readings.collect::<Vec<_>>().into_iter().flatten().collect()
    }

    fn has(&mut self, gpu: &Gpu<'a>, uuid: &str) -> bool {
        if self.without.contains(uuid) {
            return false;
        }
        let has = gpu.gpm_support();
        if has.as_ref().map_or_else(is_unsupported, |has| !has) {
            self.without.insert(uuid.to_owned());
        }
        has.unwrap_or(false)
    }

    fn place(&mut self, gpu: &Gpu<'a>, place: Place) -> Result<Option<GpmReading>, NvmlError> {
        let sample = match place.1 {
            Some(instance) => gpu.gpm_mig_sample(instance),
            None => gpu.gpm_sample(),
        };
        let sample = match sample {
            Ok(sample) => sample,
            Err(error) => {
                self.before.remove(&place);
                return Err(error);
            }
        };
        let reading = match self.before.get(&place) {
            Some(before) => between(self.nvml, before, &sample, place.1).map(Some),
            None => Ok(None),
        };
        self.before.insert(place, sample);
        reading
    }
}

fn between<'a>(
    nvml: &'a Nvml,
    before: &GpmSample<'a>,
    now: &GpmSample<'a>,
    gpu_instance: Option<u32>,
) -> Result<GpmReading, NvmlError> {
    let pipes = PIPES.iter().map(|(id, _)| *id);
    let ids: Vec<GpmMetricId> = OTHERS.into_iter().chain(pipes).collect();
    let told = gpm_metrics_get(nvml, before, now, &ids)?;
    let told: Vec<Option<f64>> = told
        .into_iter()
        .map(|one| {
            one.ok()
                .map(|one| one.value)
                .filter(|value| value.is_finite() && *value >= 0.0)
        })
        .collect();
    let pipes = PIPES.iter().zip(&told[OTHERS.len()..]);
    Ok(GpmReading {
        gpu_instance,
        sm_percent: told[0],
        occupancy_percent: told[1],
        dram_percent: told[2],
        pipes: pipes.filter_map(|((_, name), told)| Some((*name, (*told)?))).collect(),
        pcie_sent_bytes_per_second: told[3].map(|speed| speed * MIB),
        pcie_received_bytes_per_second: told[4].map(|speed| speed * MIB),
    })
}
