//! Which devices there are and what they are called.

use std::ffi::{CStr, c_char};

use gpusim_common::settings;

use crate::mig::{self, Handle};
use crate::{INVALID_ARGUMENT, NOT_FOUND, SUCCESS, nvml, put, put_text, state};

/// `nvmlPciInfo_t`.
#[repr(C)]
pub struct PciInfo {
    legacy: [u8; 16],
    domain: u32,
    bus: u32,
    device: u32,
    device_id: u32,
    subsystem_id: u32,
    id: [u8; 32],
}

pub fn count() -> usize {
    settings::number("GPUSIM_DEVICES", 1.0) as usize
}

pub fn memory() -> u64 {
    settings::bytes("GPUSIM_MEMORY", 8 << 30)
}

/// The device that a handle is of; not for a part of one.
pub fn index(handle: usize) -> Result<usize, u32> {
    match mig::handle(handle)? {
        Handle { device, part: None } => Ok(device),
        _ => Err(INVALID_ARGUMENT),
    }
}

fn name(handle: Handle) -> &'static str {
    if handle.part.is_some() {
        "Simulated GPU MIG 1g"
    } else {
        "Simulated GPU"
    }
}

fn uuid(index: usize) -> String {
    // The same sixteen bytes as the simulated driver's cuDeviceGetUuid.
    format!("GPU-47505553-434f-5045-2d53-494d{:08x}", index + 1)
}

fn bus_id(index: usize) -> String {
    format!("00000000:{:02X}:00.0", index + 1)
}

unsafe fn by_text(text: *const c_char, place: *mut usize, name: fn(usize) -> String) -> u32 {
    if text.is_null() {
        return INVALID_ARGUMENT;
    }
    // SAFETY: a C string, by the contract of the exports.
    let wanted = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    match (0..count()).find(|i| name(*i).ends_with(wanted.trim_start_matches("0000:"))) {
        // SAFETY: an out-pointer of the caller.
        Some(index) => unsafe { put(place, index + 1) },
        None => NOT_FOUND,
    }
}

unsafe fn pci_info(handle: usize, place: *mut PciInfo) -> u32 {
    let index = match index(handle) {
        Ok(index) => index,
        Err(code) => return code,
    };
    let (mut id, mut legacy) = ([0; 32], [0; 16]);
    let text = bus_id(index);
    id[..text.len()].copy_from_slice(text.as_bytes());
    legacy[..text.len() - 4].copy_from_slice(&text.as_bytes()[4..]);
    let bus = index as u32 + 1;
    // SAFETY: an out-pointer of the caller.
    unsafe {
        put(
            place,
            PciInfo {
                legacy,
                domain: 0,
                bus,
                device: 0,
                device_id: 0,
                subsystem_id: 0,
                id,
            },
        )
    }
}

macro_rules! at {
    ($handle:expr) => {
        match $crate::device::index($handle) {
            Ok(index) => index,
            Err(code) => return code,
        }
    };
}
pub(crate) use at;

/// As [`at`], for functions that take the handle of a MIG device too.
macro_rules! any {
    ($handle:expr) => {
        match $crate::mig::handle($handle) {
            Ok(handle) => handle,
            Err(code) => return code,
        }
    };
}
pub(crate) use any;

nvml! {
    fn nvmlDeviceGetCount(place: *mut u32) { match state::trouble("driver") { 0 => put(place, count() as u32), code => code } }
    fn nvmlDeviceGetCount_v2(place: *mut u32) { match state::trouble("driver") { 0 => put(place, count() as u32), code => code } }
    fn nvmlDeviceGetHandleByIndex(number: u32, place: *mut usize) { put(place, at!(number as usize + 1) + 1) }
    fn nvmlDeviceGetHandleByIndex_v2(number: u32, place: *mut usize) { put(place, at!(number as usize + 1) + 1) }
    fn nvmlDeviceGetHandleByUUID(text: *const c_char, place: *mut usize) { by_text(text, place, uuid) }
    fn nvmlDeviceGetHandleByPciBusId_v2(text: *const c_char, place: *mut usize) { by_text(text, place, bus_id) }
    fn nvmlDeviceGetIndex(handle: usize, place: *mut u32) { put(place, at!(handle) as u32) }
    fn nvmlDeviceGetMinorNumber(handle: usize, place: *mut u32) { put(place, at!(handle) as u32) }
    fn nvmlDeviceGetName(handle: usize, place: *mut c_char, len: u32) { put_text(place, len, name(any!(handle))) }
    fn nvmlDeviceGetUUID(handle: usize, place: *mut c_char, len: u32) {
        let handle = any!(handle);
        let text = handle.part.map_or_else(|| uuid(handle.device), |part| mig::uuid(handle.device, part));
        put_text(place, len, &text)
    }
    fn nvmlDeviceGetSerial(handle: usize, place: *mut c_char, len: u32) { put_text(place, len, &format!("SIM{}", at!(handle))) }
    fn nvmlDeviceGetPciInfo_v3(handle: usize, place: *mut PciInfo) { pci_info(handle, place) }
    fn nvmlDeviceGetPciInfo_v2(handle: usize, place: *mut PciInfo) { pci_info(handle, place) }
    fn nvmlDeviceGetCudaComputeCapability(handle: usize, major: *mut i32, minor: *mut i32) {
        at!(handle);
        match put(major, 9) { SUCCESS => put(minor, 0), code => code }
    }
}
