//! How busy the parts of a GPU were, by GPM.

use super::{Samples, and, ratio};
use crate::device::telemetry::{GpmReading, Gpu};
use crate::serve::metrics::device as table;

pub(super) fn add(gpu: &Gpu, to: &mut Samples) {
    for reading in &gpu.gpm {
        let instance = reading
            .gpu_instance
            .map(|instance| instance.to_string())
            .unwrap_or_default();
        let shares = [
            (&table::GPU_SM_ACTIVITY_RATIO, reading.sm_percent),
            (&table::GPU_SM_OCCUPANCY_RATIO, reading.occupancy_percent),
            (&table::GPU_DRAM_ACTIVITY_RATIO, reading.dram_percent),
        ];
        for (metric, percent) in shares {
            to.add_known(
                metric,
                and(&gpu.identity, [instance.clone().into()]),
                percent.map(ratio),
            );
        }
        pipes(gpu, reading, &instance, to);
    }
}

fn pipes(gpu: &Gpu, reading: &GpmReading, instance: &str, to: &mut Samples) {
    for (pipe, percent) in &reading.pipes {
        let values = and(&gpu.identity, [instance.to_owned().into(), (*pipe).into()]);
        to.add(&table::GPU_PIPE_ACTIVITY_RATIO, values, ratio(*percent));
    }
}
