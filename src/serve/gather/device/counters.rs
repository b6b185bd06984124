//! What a GPU counts itself, with the time at which it was read: NVML is not asked for everything in each round, and a
//! rate needs to know when.

use super::{Number, Samples, Values, and, of};
use crate::device::telemetry::Gpu;
use crate::serve::metric::{Metric, Sample};
use crate::serve::metrics::device as table;
use std::time::SystemTime;

const JOULES_PER_MJ: f64 = 1e-3;

pub(super) fn add(gpu: &Gpu, to: &mut Samples) {
    let name = &gpu.identity;
    let mut put = |metric: &'static Metric, values: Values, count: Option<Number>, at: Option<SystemTime>| {
        to.0.extend(count.map(|count| Sample::new(metric, values, count.0).read_at(at)));
    };
    let joules = gpu.energy_mj.map(|mj| Number::from(mj as f64 * JOULES_PER_MJ));
    put(&table::GPU_ENERGY_JOULES, of(name), joules, gpu.totals_at);
    for (kind, count) in [("corrected", gpu.ecc_corrected), ("uncorrected", gpu.ecc_uncorrected)] {
        put(
            &table::GPU_ECC_ERRORS,
            and(name, [kind.into()]),
            count.map(Number::from),
            gpu.read_at,
        );
    }
    let replays = gpu.pcie.replays.map(Number::from);
    put(&table::GPU_PCIE_REPLAYS, of(name), replays, gpu.totals_at);
    for (direction, bytes) in [("sent", gpu.nvlink.sent_bytes), ("received", gpu.nvlink.received_bytes)] {
        let values = and(name, [direction.into()]);
        put(&table::GPU_NVLINK_BYTES, values, bytes.map(Number::from), gpu.totals_at);
    }
    for error in &gpu.nvlink.errors {
        let values = and(name, [error.link.to_string().into(), error.kind.into()]);
        put(
            &table::GPU_NVLINK_ERRORS,
            values,
            Some(error.count.into()),
            gpu.links_at,
        );
    }
}
