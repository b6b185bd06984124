//! How much of a device is in use, and by whom.

use std::sync::{Mutex, PoisonError};

use gpusim_common::clock::now_ns;
use gpusim_common::shared::{DEVICES, processes};

use crate::device::{any, at, index, memory};
use crate::mig::{self, Handle};
use crate::{INVALID_ARGUMENT, lists, nvml, put};

#[repr(C)]
pub struct Memory {
    total: u64,
    free: u64,
    used: u64,
}

#[repr(C)]
pub struct MemoryV2 {
    version: u32,
    total: u64,
    reserved: u64,
    free: u64,
    used: u64,
}

/// `NVML_STRUCT_VERSION(Memory, 2)`.
const MEMORY_V2: u32 = size_of::<MemoryV2>() as u32 | (2 << 24);
/// As much as some drivers keep for themselves.
const RESERVED: u64 = 600 << 20;

#[repr(C)]
pub struct Utilization {
    gpu: u32,
    memory: u32,
}

fn used(device: usize) -> u64 {
    processes(device)
        .iter()
        .map(|(_, used, _)| used)
        .sum::<u64>()
        .min(memory())
}

/// Percent of the time since the last question that the device was given work for.
fn busy_percent(device: usize) -> u32 {
    static LAST: Mutex<[(u64, u64); DEVICES]> = Mutex::new([(0, 0); DEVICES]);
    let now = (now_ns(), processes(device).iter().map(|(_, _, busy)| busy).sum::<u64>());
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(slot) = last.get_mut(device) else { return 0 };
    let before = std::mem::replace(slot, now);
    if before.0 == 0 || now.0 == before.0 {
        return 0;
    }
    let busy = now.1.saturating_sub(before.1) as u128;
    (busy * 100 / u128::from(now.0 - before.0)).min(100) as u32
}

/// (total, used) of a device or of one part of it.
fn share(handle: Handle) -> (u64, u64) {
    let parts = mig::parts(handle.device).filter(|_| handle.part.is_some());
    let total = memory() / parts.unwrap_or(1).max(1) as u64;
    // What the simulated driver holds of a divided device, it holds of the first part.
    let used = if handle.part.is_some_and(|part| part > 0) {
        0
    } else {
        used(handle.device)
    };
    (total, used.min(total))
}

nvml! {
    fn nvmlDeviceGetMemoryInfo(handle: usize, place: *mut Memory) {
        let (total, used) = share(any!(handle));
        put(place, Memory { total, free: total - used, used })
    }
    fn nvmlDeviceGetMemoryInfo_v2(handle: usize, place: *mut MemoryV2) {
        let (total, used) = share(any!(handle));
        if place.is_null() || (*place).version != MEMORY_V2 { return INVALID_ARGUMENT; }
        put(place, MemoryV2 { version: MEMORY_V2, total, reserved: RESERVED, free: total - used, used })
    }
    fn nvmlDeviceGetUtilizationRates(handle: usize, place: *mut Utilization) {
        let device = at!(handle);
        let memory = (u128::from(used(device)) * 100 / u128::from(memory().max(1))) as u32;
        put(place, Utilization { gpu: busy_percent(device), memory })
    }
    fn nvmlDeviceGetTemperature(handle: usize, _sensor: u32, place: *mut u32) { at!(handle); put(place, 42) }
    fn nvmlDeviceGetPowerUsage(handle: usize, place: *mut u32) { at!(handle); put(place, 100_000) }
    fn nvmlDeviceGetEnforcedPowerLimit(handle: usize, place: *mut u32) { at!(handle); put(place, 700_000) }
    fn nvmlDeviceGetClockInfo(handle: usize, _kind: u32, place: *mut u32) { at!(handle); put(place, 1980) }
    fn nvmlDeviceGetComputeRunningProcesses_v2(handle: usize, count: *mut u32, place: *mut lists::Process) { lists::fill("compute", any!(handle), count, place) }
    fn nvmlDeviceGetComputeRunningProcesses_v3(handle: usize, count: *mut u32, place: *mut lists::Process) { lists::fill("compute", any!(handle), count, place) }
    fn nvmlDeviceGetGraphicsRunningProcesses_v2(handle: usize, count: *mut u32, place: *mut lists::Process) { lists::fill("graphics", any!(handle), count, place) }
    fn nvmlDeviceGetGraphicsRunningProcesses_v3(handle: usize, count: *mut u32, place: *mut lists::Process) { lists::fill("graphics", any!(handle), count, place) }
    fn nvmlDeviceGetMPSComputeRunningProcesses_v3(handle: usize, count: *mut u32, place: *mut lists::Process) { lists::fill("mps", any!(handle), count, place) }
}
