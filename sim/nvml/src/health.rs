//! Temperature, power, clocks, errors and links of a device, as [`state`] sets them.

use std::time::Duration;

use crate::device::at;
use crate::{INVALID_ARGUMENT, SUCCESS, nvml, put, state};

/// How long NVML measures PCIe throughput.
const MEASURED: Duration = Duration::from_millis(20);
const CLOCKS: [&str; 4] = ["graphics", "sm", "memory", "video"];
const UNSIGNED: u32 = 1;
const UNSIGNED_LONG_LONG: u32 = 3;

/// `nvmlFieldValue_t`.
#[repr(C)]
pub struct Field {
    id: u32,
    scope: u32,
    timestamp: i64,
    latency_us: i64,
    kind: u32,
    code: u32,
    value: u64,
}

trait Fits {
    fn fit(value: u64) -> Self;
}

impl Fits for u32 {
    fn fit(value: u64) -> u32 {
        value.try_into().unwrap_or(u32::MAX)
    }
}

impl Fits for u64 {
    fn fit(value: u64) -> u64 {
        value
    }
}

/// Answers with a setting.
unsafe fn told<T: Fits>(device: usize, key: &str, default: u64, place: *mut T) -> u32 {
    match state::number(device, key, default) {
        // SAFETY: an out-pointer of the caller.
        Ok(value) => unsafe { put(place, T::fit(value)) },
        Err(code) => code,
    }
}

fn clock(kind: u32) -> &'static str {
    CLOCKS.get(kind as usize).copied().unwrap_or("other")
}

/// What a field is called here, and what it is without a setting.
fn field(field: &Field) -> Option<(String, u64, u32)> {
    let link = field.scope;
    Some(match field.id {
        82 => ("memory_temperature".to_owned(), 50, UNSIGNED),
        91 => ("nvlinks".to_owned(), 0, UNSIGNED),
        138 => (format!("nvlink_sent_kib.{link}"), 0, UNSIGNED_LONG_LONG),
        139 => (format!("nvlink_received_kib.{link}"), 0, UNSIGNED_LONG_LONG),
        161 => (format!("nvlink_replay.{link}"), 0, UNSIGNED_LONG_LONG),
        162 => (format!("nvlink_recovery.{link}"), 0, UNSIGNED_LONG_LONG),
        163 => (format!("nvlink_crc.{link}"), 0, UNSIGNED_LONG_LONG),
        _ => return None,
    })
}

fn answer(device: usize, asked: &mut Field) {
    const NOT_SUPPORTED: u32 = crate::NOT_SUPPORTED;
    let Some((key, default, kind)) = field(asked) else {
        asked.code = NOT_SUPPORTED;
        return;
    };
    match state::number(device, &key, default) {
        Ok(value) => (asked.code, asked.kind, asked.value) = (SUCCESS, kind, value),
        Err(code) => asked.code = code,
    }
}

unsafe fn fields(device: usize, count: i32, place: *mut Field) -> u32 {
    let Some(count) = usize::try_from(count)
        .ok()
        .filter(|count| *count > 0 && !place.is_null())
    else {
        return INVALID_ARGUMENT;
    };
    // SAFETY: the caller gives room for so many.
    let asked = unsafe { std::slice::from_raw_parts_mut(place, count) };
    asked.iter_mut().for_each(|field| answer(device, field));
    SUCCESS
}

unsafe fn rows(device: usize, places: [(*mut u32, &str); 4]) -> u32 {
    for (place, key) in places {
        // SAFETY: an out-pointer of the caller.
        let code = unsafe { told(device, key, 0, place) };
        if code != SUCCESS {
            return code;
        }
    }
    SUCCESS
}

nvml! {
    fn nvmlDeviceGetTemperature(handle: usize, _sensor: u32, place: *mut u32) { told(at!(handle), "temperature", 42, place) }
    fn nvmlDeviceGetPowerUsage(handle: usize, place: *mut u32) { told(at!(handle), "power_mw", 100_000, place) }
    fn nvmlDeviceGetEnforcedPowerLimit(handle: usize, place: *mut u32) { told(at!(handle), "power_limit_mw", 700_000, place) }
    fn nvmlDeviceGetTotalEnergyConsumption(handle: usize, place: *mut u64) { told(at!(handle), "energy_mj", 1_000_000, place) }
    fn nvmlDeviceGetClockInfo(handle: usize, kind: u32, place: *mut u32) { told(at!(handle), &format!("clock.{}", clock(kind)), 1980, place) }
    fn nvmlDeviceGetMaxClockInfo(handle: usize, kind: u32, place: *mut u32) { told(at!(handle), &format!("highest_clock.{}", clock(kind)), 1980, place) }
    fn nvmlDeviceGetCurrentClocksEventReasons(handle: usize, place: *mut u64) { told(at!(handle), "clock_reasons", 0, place) }
    fn nvmlDeviceGetCurrentClocksThrottleReasons(handle: usize, place: *mut u64) { told(at!(handle), "clock_reasons", 0, place) }
    fn nvmlDeviceGetNumFans(handle: usize, place: *mut u32) { told(at!(handle), "fans", 0, place) }
    fn nvmlDeviceGetFanSpeed_v2(handle: usize, fan: u32, place: *mut u32) { told(at!(handle), &format!("fan_percent.{fan}"), 30, place) }
    fn nvmlDeviceGetPerformanceState(handle: usize, place: *mut u32) { told(at!(handle), "performance_state", 0, place) }
    fn nvmlDeviceGetTotalEccErrors(handle: usize, kind: u32, counter: u32, place: *mut u64) {
        let counter = if counter == 0 { "volatile" } else { "aggregate" };
        let kind = if kind == 0 { "corrected" } else { "uncorrected" };
        told(at!(handle), &format!("ecc_{kind}.{counter}"), 0, place)
    }
    fn nvmlDeviceGetRemappedRows(handle: usize, corrected: *mut u32, uncorrected: *mut u32, pending: *mut u32, failed: *mut u32) {
        let places = [(corrected, "rows_corrected"), (uncorrected, "rows_uncorrected"), (pending, "rows_pending"), (failed, "rows_failed")];
        rows(at!(handle), places)
    }
    fn nvmlDeviceGetPcieThroughput(handle: usize, counter: u32, place: *mut u32) {
        let device = at!(handle);
        std::thread::sleep(MEASURED);
        told(device, if counter == 0 { "pcie_sent_kib" } else { "pcie_received_kib" }, 1000, place)
    }
    fn nvmlDeviceGetPcieReplayCounter(handle: usize, place: *mut u32) { told(at!(handle), "pcie_replays", 0, place) }
    fn nvmlDeviceGetCurrPcieLinkGeneration(handle: usize, place: *mut u32) { told(at!(handle), "pcie_generation", 5, place) }
    fn nvmlDeviceGetCurrPcieLinkWidth(handle: usize, place: *mut u32) { told(at!(handle), "pcie_lanes", 16, place) }
    fn nvmlDeviceGetFieldValues(handle: usize, count: i32, place: *mut Field) { fields(at!(handle), count, place) }
}
