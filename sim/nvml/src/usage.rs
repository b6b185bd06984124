//! How much memory of a device is in use, and by whom.

use gpusim_common::shared::processes;

use crate::device::{any, memory};
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

pub fn used(device: usize) -> u64 {
    processes(device)
        .iter()
        .map(|(_, used, _)| used)
        .sum::<u64>()
        .min(memory())
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
    fn nvmlDeviceGetComputeRunningProcesses_v2(handle: usize, count: *mut u32, place: *mut lists::Process) { lists::fill("compute", any!(handle), count, place) }
    fn nvmlDeviceGetComputeRunningProcesses_v3(handle: usize, count: *mut u32, place: *mut lists::Process) { lists::fill("compute", any!(handle), count, place) }
    fn nvmlDeviceGetGraphicsRunningProcesses_v2(handle: usize, count: *mut u32, place: *mut lists::Process) { lists::fill("graphics", any!(handle), count, place) }
    fn nvmlDeviceGetGraphicsRunningProcesses_v3(handle: usize, count: *mut u32, place: *mut lists::Process) { lists::fill("graphics", any!(handle), count, place) }
    fn nvmlDeviceGetMPSComputeRunningProcesses_v3(handle: usize, count: *mut u32, place: *mut lists::Process) { lists::fill("mps", any!(handle), count, place) }
}
