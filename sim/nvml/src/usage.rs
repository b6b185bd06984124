//! How much of a device is in use, and by whom.

use std::sync::{Mutex, PoisonError};

use gpusim_common::clock::now_ns;
use gpusim_common::shared::{DEVICES, processes};

use crate::device::{at, index, memory};
use crate::{INSUFFICIENT_SIZE, INVALID_ARGUMENT, SUCCESS, nvml, put};

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

#[repr(C)]
pub struct Utilization {
    gpu: u32,
    memory: u32,
}

/// `nvmlProcessInfo_t` since version 2.
#[repr(C)]
pub struct ProcessInfo {
    pid: u32,
    used: u64,
    gpu_instance: u32,
    compute_instance: u32,
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

unsafe fn list(handle: usize, count: *mut u32, place: *mut ProcessInfo) -> u32 {
    if count.is_null() {
        return INVALID_ARGUMENT;
    }
    let device = at!(handle);
    let found = processes(device);
    // SAFETY: the caller gives the room at `place` in `count`.
    unsafe {
        let room = count.read() as usize;
        count.write(found.len() as u32);
        if found.is_empty() {
            return SUCCESS;
        }
        if room < found.len() || place.is_null() {
            return INSUFFICIENT_SIZE;
        }
        for (i, (pid, used, _)) in found.into_iter().enumerate() {
            place.add(i).write(ProcessInfo {
                pid,
                used,
                gpu_instance: u32::MAX,
                compute_instance: u32::MAX,
            });
        }
    }
    SUCCESS
}

nvml! {
    fn nvmlDeviceGetMemoryInfo(handle: usize, place: *mut Memory) {
        let used = used(at!(handle));
        put(place, Memory { total: memory(), free: memory() - used, used })
    }
    fn nvmlDeviceGetMemoryInfo_v2(handle: usize, place: *mut MemoryV2) {
        let used = used(at!(handle));
        if place.is_null() { return INVALID_ARGUMENT; }
        let version = (*place).version;
        put(place, MemoryV2 { version, total: memory(), reserved: 0, free: memory() - used, used })
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
    fn nvmlDeviceGetComputeRunningProcesses_v3(handle: usize, count: *mut u32, place: *mut ProcessInfo) { list(handle, count, place) }
    fn nvmlDeviceGetComputeRunningProcesses_v2(handle: usize, count: *mut u32, place: *mut ProcessInfo) { list(handle, count, place) }
    fn nvmlDeviceGetGraphicsRunningProcesses_v3(handle: usize, count: *mut u32, _place: *mut ProcessInfo) { at!(handle); put(count, 0) }
}
