//! The questions about one GPU.

use super::answer::Answers;
use super::gpu::{Clock, Gpu, Identity, Pcie, RemappedRows};
use super::kept::Kept;
use super::link;
use crate::device::Device;
use crate::device::ask::Gpu as Handle;
use nvml_wrapper::enum_wrappers::device::{
    Clock as Domain, EccCounter, MemoryError, PcieUtilCounter, TemperatureSensor,
};
use nvml_wrapper::error::{NvmlError, nvml_sym, nvml_try};
use std::time::{Instant, SystemTime};

const KIB: f64 = 1024.0;
const DOMAINS: [(Domain, &str); 4] = [
    (Domain::Graphics, "graphics"),
    (Domain::SM, "sm"),
    (Domain::Memory, "memory"),
    (Domain::Video, "video"),
];

/// Asks everything but GPM. `slow`: also what NVML measures for 20 ms first.
pub(super) fn read(gpu: &Handle, device: &Device, slow: bool, kept: &mut Kept, answers: &mut Answers) -> Gpu {
    refresh(gpu, kept, answers);
    let mut told = Gpu {
        identity: Identity {
            index: device.index,
            uuid: device.uuid.clone(),
            pci_bus_id: device.pci_bus_id.clone(),
        },
        memory: device.memory,
        free_bytes: answers.told("free memory", free(gpu)),
        ..Gpu::default()
    };
    usage(gpu, answers, &mut told);
    heat_and_power(gpu, answers, &mut told);
    errors(gpu, answers, &mut told);
    told.read_at = Some(SystemTime::now());
    (told.totals_at, told.links_at) = (kept.totals_at, kept.links_at);
    told.energy_mj = kept.energy_mj;
    told.clocks = clocks(gpu, &kept.highest_mhz, answers);
    told.clock_reasons = answers.told("clock event reasons", clock_reasons(gpu));
    told.pcie = pcie(gpu, slow, kept.replays, answers);
    told.nvlink = kept.nvlink.clone();
    told
}

/// Asks again what is due.
fn refresh(gpu: &Handle, kept: &mut Kept, answers: &mut Answers) {
    let now = Instant::now();
    if kept.links.now(now) {
        kept.links_at = Some(SystemTime::now());
        kept.nvlink.errors = link::errors(gpu, answers);
    }
    if kept.limits.now(now) {
        let highest = |(domain, _): (Domain, &str)| answers.told("highest clock", gpu.max_clock_info(domain));
        kept.highest_mhz = DOMAINS.map(highest).into();
    }
}

/// What is counted since the driver was loaded; asked when due, beside the work of processes.
pub(super) fn totals(gpu: &Handle, kept: &mut Kept, answers: &mut Answers) {
    kept.totals_at = Some(SystemTime::now());
    (kept.nvlink.sent_bytes, kept.nvlink.received_bytes) = link::traffic(gpu, answers);
    kept.energy_mj = answers.told("energy", gpu.total_energy_consumption());
    kept.replays = answers.told("PCIe replays", gpu.pcie_replay_counter()).map(u64::from);
}

fn free(gpu: &Handle) -> Result<u64, NvmlError> {
    gpu.memory_info().map(|memory| memory.free)
}

fn usage(gpu: &Handle, answers: &mut Answers, told: &mut Gpu) {
    let usage = answers.told("utilization", gpu.utilization_rates());
    told.gpu_percent = usage.as_ref().map(|usage| usage.gpu);
    told.memory_percent = usage.map(|usage| usage.memory);
    let encoder = answers.told("encoder utilization", gpu.encoder_utilization());
    told.encoder_percent = encoder.map(|usage| usage.utilization);
    let decoder = answers.told("decoder utilization", gpu.decoder_utilization());
    told.decoder_percent = decoder.map(|usage| usage.utilization);
}

fn heat_and_power(gpu: &Handle, answers: &mut Answers, told: &mut Gpu) {
    told.gpu_celsius = answers.told("temperature", gpu.temperature(TemperatureSensor::Gpu));
    told.memory_celsius = link::memory_celsius(gpu, answers);
    told.power_mw = answers.told("power", gpu.power_usage());
    told.power_limit_mw = answers.told("power limit", gpu.enforced_power_limit());
    let fans = answers.told("fans", gpu.num_fans()).unwrap_or(0);
    let speeds = (0..fans).filter_map(|fan| answers.told("fan speed", gpu.fan_speed(fan)));
    told.fan_percent = speeds.max();
    let state = answers.told("performance state", gpu.performance_state());
    told.performance_state = state.map(|state| state.as_c()).filter(|state| *state < 32);
}

fn errors(gpu: &Handle, answers: &mut Answers, told: &mut Gpu) {
    let mut count = |kind| answers.told("ECC errors", gpu.total_ecc_errors(kind, EccCounter::Aggregate));
    told.ecc_corrected = count(MemoryError::Corrected);
    told.ecc_uncorrected = count(MemoryError::Uncorrected);
    told.remapped_rows = answers.told("remapped rows", remapped_rows(gpu));
}

fn remapped_rows(gpu: &Handle) -> Result<RemappedRows, NvmlError> {
    let ask = nvml_sym(gpu.nvml().lib().nvmlDeviceGetRemappedRows.as_ref())?;
    let (mut corrected, mut uncorrected, mut pending, mut failed) = (0, 0, 0, 0);
    // SAFETY: the handle is this device's, and the call fills the numbers
    nvml_try(unsafe {
        ask(
            gpu.handle(),
            &raw mut corrected,
            &raw mut uncorrected,
            &raw mut pending,
            &raw mut failed,
        )
    })?;
    Ok(RemappedRows {
        corrected,
        uncorrected,
        pending: pending != 0,
        failed: failed != 0,
    })
}

fn clocks(gpu: &Handle, highest_mhz: &[Option<u32>], answers: &mut Answers) -> Vec<Clock> {
    let highest_mhz = highest_mhz.iter().copied().chain(std::iter::repeat(None));
    let clock = |((domain, name), highest_mhz): ((Domain, &'static str), Option<u32>)| Clock {
        domain: name,
        now_mhz: answers.told("clock", gpu.clock_info(domain)),
        highest_mhz,
    };
    DOMAINS.into_iter().zip(highest_mhz).map(clock).collect()
}

/// Drivers before 535 know the question by its old name only.
fn clock_reasons(gpu: &Handle) -> Result<u64, NvmlError> {
    let lib = gpu.nvml().lib();
    let ask = lib.nvmlDeviceGetCurrentClocksEventReasons.as_ref();
    let ask = nvml_sym(ask.or(lib.nvmlDeviceGetCurrentClocksThrottleReasons.as_ref()))?;
    let mut reasons = 0;
    // SAFETY: the handle is this device's, and the call fills the number
    nvml_try(unsafe { ask(gpu.handle(), &raw mut reasons) })?;
    Ok(reasons)
}

fn pcie(gpu: &Handle, slow: bool, replays: Option<u64>, answers: &mut Answers) -> Pcie {
    let mut speed = |counter| {
        let kib = slow.then(|| answers.told("PCIe throughput", gpu.pcie_throughput(counter)))??;
        Some(f64::from(kib) * KIB)
    };
    let (sent, received) = (speed(PcieUtilCounter::Send), speed(PcieUtilCounter::Receive));
    Pcie {
        sent_bytes_per_second: sent,
        received_bytes_per_second: received,
        replays,
        generation: answers.told("PCIe generation", gpu.current_pcie_link_gen()),
        lanes: answers.told("PCIe lanes", gpu.current_pcie_link_width()),
    }
}
