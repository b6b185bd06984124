//! Devices divided into MIG devices, as `GPUSIM_MIG` asks.

use crate::device::{at, count};
use crate::{INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED, SUCCESS, nvml, put, state};

/// Real instances are not numbered from zero either.
const FIRST_GPU_INSTANCE: u32 = 7;
const MOST_PARTS: usize = 7;
const PART_SHIFT: usize = 16;

/// A device, or a MIG device of it.
#[derive(Clone, Copy)]
pub struct Handle {
    pub device: usize,
    pub part: Option<usize>,
}

/// How many parts a device has; `None`: it is not in MIG mode.
pub fn parts(device: usize) -> Option<usize> {
    let setting = std::env::var("GPUSIM_MIG").ok()?;
    let mut rules = setting.split(',').filter_map(|rule| rule.split_once(':'));
    let (_, parts) = rules.find(|(number, _)| number.trim().parse() == Ok(device))?;
    Some(parts.trim().parse::<usize>().unwrap_or(0).min(MOST_PARTS))
}

/// Handles are the device's number plus one, with the part's number plus one above. The error is what a call of it
/// ends with.
pub fn handle(handle: usize) -> Result<Handle, u32> {
    let device = (handle & ((1 << PART_SHIFT) - 1))
        .checked_sub(1)
        .ok_or(INVALID_ARGUMENT)?;
    let part = (handle >> PART_SHIFT).checked_sub(1);
    let exists = part.is_none_or(|part| parts(device).is_some_and(|parts| part < parts));
    if device >= count() || !exists {
        return Err(INVALID_ARGUMENT);
    }
    match state::trouble(&device.to_string()) {
        SUCCESS => Ok(Handle { device, part }),
        code => Err(code),
    }
}

pub fn uuid(device: usize, part: usize) -> String {
    format!("MIG-47505553-434f-5045-2d4d-4947{:04x}{:04x}", device + 1, part + 1)
}

pub fn gpu_instance(part: usize) -> u32 {
    FIRST_GPU_INSTANCE + part as u32
}

fn part(number: usize) -> Result<usize, u32> {
    handle(number)?.part.ok_or(INVALID_ARGUMENT)
}

macro_rules! part {
    ($handle:expr) => {
        match part($handle) {
            Ok(part) => part,
            Err(code) => return code,
        }
    };
}

nvml! {
    fn nvmlDeviceGetMigMode(handle: usize, current: *mut u32, pending: *mut u32) {
        let mode = u32::from(parts(at!(handle)).is_some());
        match put(current, mode) { 0 => put(pending, mode), code => code }
    }
    fn nvmlDeviceGetMaxMigDeviceCount(handle: usize, place: *mut u32) {
        put(place, if parts(at!(handle)).is_some() { MOST_PARTS as u32 } else { 0 })
    }
    fn nvmlDeviceGetMigDeviceHandleByIndex(handle: usize, number: u32, place: *mut usize) {
        let device = at!(handle);
        match parts(device) {
            None => NOT_SUPPORTED,
            Some(parts) if (number as usize) < parts => put(place, (number as usize + 1) << PART_SHIFT | (device + 1)),
            Some(_) => NOT_FOUND,
        }
    }
    fn nvmlDeviceIsMigDeviceHandle(number: usize, place: *mut u32) { put(place, u32::from(part(number).is_ok())) }
    fn nvmlDeviceGetDeviceHandleFromMigDeviceHandle(number: usize, place: *mut usize) {
        part!(number);
        put(place, number & ((1 << PART_SHIFT) - 1))
    }
    fn nvmlDeviceGetGpuInstanceId(number: usize, place: *mut u32) { put(place, gpu_instance(part!(number))) }
    fn nvmlDeviceGetComputeInstanceId(number: usize, place: *mut u32) { part!(number); put(place, 0) }
}
