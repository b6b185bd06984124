//! What a GPU is like at one moment.

use super::{Samples, and, of, ratio};
use crate::device::telemetry::{Gpu, REASONS};
use crate::serve::metrics::device as table;

const WATTS_PER_MW: f64 = 1e-3;
const HERTZ_PER_MHZ: u64 = 1_000_000;

pub(super) fn add(gpu: &Gpu, to: &mut Samples) {
    shares(gpu, to);
    memory(gpu, to);
    heat_and_power(gpu, to);
    clocks(gpu, to);
    rows(gpu, to);
    pcie(gpu, to);
}

fn shares(gpu: &Gpu, to: &mut Samples) {
    let shares = [
        (&table::GPU_UTILIZATION_RATIO, gpu.gpu_percent),
        (&table::GPU_MEMORY_UTILIZATION_RATIO, gpu.memory_percent),
        (&table::GPU_ENCODER_UTILIZATION_RATIO, gpu.encoder_percent),
        (&table::GPU_DECODER_UTILIZATION_RATIO, gpu.decoder_percent),
        (&table::GPU_FAN_SPEED_RATIO, gpu.fan_percent),
    ];
    for (metric, percent) in shares {
        to.add_known(metric, of(&gpu.identity), percent.map(ratio));
    }
}

fn memory(gpu: &Gpu, to: &mut Samples) {
    let memory = gpu.memory.as_ref();
    let amounts = [
        (&table::GPU_MEMORY_TOTAL_BYTES, memory.map(|memory| memory.total_bytes)),
        (&table::GPU_MEMORY_USED_BYTES, memory.map(|memory| memory.used_bytes)),
        (&table::GPU_MEMORY_FREE_BYTES, gpu.free_bytes),
        (
            &table::GPU_MEMORY_RESERVED_BYTES,
            memory.and_then(|memory| memory.reserved_bytes),
        ),
    ];
    for (metric, bytes) in amounts {
        to.add_known(metric, of(&gpu.identity), bytes);
    }
}

fn heat_and_power(gpu: &Gpu, to: &mut Samples) {
    for (sensor, celsius) in [("gpu", gpu.gpu_celsius), ("memory", gpu.memory_celsius)] {
        to.add_known(
            &table::GPU_TEMPERATURE_CELSIUS,
            and(&gpu.identity, [sensor.into()]),
            celsius,
        );
    }
    let watts = |mw: u32| f64::from(mw) * WATTS_PER_MW;
    to.add_known(&table::GPU_POWER_WATTS, of(&gpu.identity), gpu.power_mw.map(watts));
    to.add_known(
        &table::GPU_POWER_LIMIT_WATTS,
        of(&gpu.identity),
        gpu.power_limit_mw.map(watts),
    );
}

fn clocks(gpu: &Gpu, to: &mut Samples) {
    for clock in &gpu.clocks {
        let values = and(&gpu.identity, [clock.domain.into()]);
        let hertz = |mhz: u32| u64::from(mhz) * HERTZ_PER_MHZ;
        to.add_known(&table::GPU_CLOCK_HERTZ, values.clone(), clock.now_mhz.map(hertz));
        to.add_known(&table::GPU_CLOCK_LIMIT_HERTZ, values, clock.highest_mhz.map(hertz));
    }
    for (bit, reason) in REASONS {
        let holds = gpu.clock_reasons.map(|reasons| u64::from(reasons & bit != 0));
        to.add_known(&table::GPU_CLOCKS_LIMITED, and(&gpu.identity, [reason.into()]), holds);
    }
    to.add_known(&table::GPU_PERFORMANCE_STATE, of(&gpu.identity), gpu.performance_state);
}

fn rows(gpu: &Gpu, to: &mut Samples) {
    let Some(rows) = gpu.remapped_rows else { return };
    for (cause, count) in [("corrected", rows.corrected), ("uncorrected", rows.uncorrected)] {
        to.add(&table::GPU_REMAPPED_ROWS, and(&gpu.identity, [cause.into()]), count);
    }
    to.add(
        &table::GPU_ROW_REMAP_PENDING,
        of(&gpu.identity),
        u64::from(rows.pending),
    );
    to.add(&table::GPU_ROW_REMAP_FAILED, of(&gpu.identity), u64::from(rows.failed));
}

fn pcie(gpu: &Gpu, to: &mut Samples) {
    let speeds = [
        ("sent", gpu.pcie.sent_bytes_per_second),
        ("received", gpu.pcie.received_bytes_per_second),
    ];
    for (direction, speed) in speeds {
        to.add_known(
            &table::GPU_PCIE_BYTES_PER_SECOND,
            and(&gpu.identity, [direction.into()]),
            speed,
        );
    }
    to.add_known(&table::GPU_PCIE_GENERATION, of(&gpu.identity), gpu.pcie.generation);
    to.add_known(&table::GPU_PCIE_LANES, of(&gpu.identity), gpu.pcie.lanes);
}
