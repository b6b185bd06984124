//! What a GPU counts itself.

use super::{Samples, and, of};
use crate::device::telemetry::Gpu;
use crate::serve::metrics::device as table;

const JOULES_PER_MJ: f64 = 1e-3;

pub(super) fn add(gpu: &Gpu, to: &mut Samples) {
    let name = &gpu.identity;
    let joules = gpu.energy_mj.map(|mj| mj as f64 * JOULES_PER_MJ);
    to.add_told(&table::GPU_ENERGY_JOULES, of(name), joules);
    for (kind, count) in [("corrected", gpu.ecc_corrected), ("uncorrected", gpu.ecc_uncorrected)] {
        to.add_told(&table::GPU_ECC_ERRORS, and(name, [kind.into()]), count);
    }
    to.add_told(&table::GPU_PCIE_REPLAYS, of(name), gpu.pcie.replays);
    for (direction, bytes) in [("sent", gpu.nvlink.sent_bytes), ("received", gpu.nvlink.received_bytes)] {
        to.add_told(&table::GPU_NVLINK_BYTES, and(name, [direction.into()]), bytes);
    }
    for error in &gpu.nvlink.errors {
        let values = and(name, [error.link.to_string().into(), error.kind.into()]);
        to.add(&table::GPU_NVLINK_ERRORS, values, error.count);
    }
}
