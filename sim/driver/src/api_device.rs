//! Initialisation, devices, error names, and finding functions.

use std::ffi::{CStr, c_char, c_void};

use crate::error::*;
use crate::{code, context, injection, lookup, machine};

/// The private table through which the runtime loads its images without an exported call.
#[repr(C)]
struct PrivateTable {
    size: usize,
    load: unsafe extern "C" fn(*const u8) -> usize,
}

static PRIVATE: PrivateTable = PrivateTable {
    size: size_of::<PrivateTable>(),
    load: load_privately,
};
const PRIVATE_ID: [u8; 16] = [
    0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a, 0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9,
];

unsafe extern "C" fn load_privately(image: *const u8) -> usize {
    // SAFETY: the runtime passes on what programs registered.
    unsafe { code::load(image) }
}

api! {
    fn cuInit(flags: u32) { require(flags == 0)?; machine::initialise()?; injection::load(); }
    fn cuDriverGetVersion(version: *mut i32) { put(version, machine::DRIVER_VERSION)?; }
    fn cuDeviceGetCount(count: *mut i32) {
        machine::ready()?;
        put(count, machine::machine().devices.len() as i32)?;
    }
    fn cuDeviceGet(device: *mut i32, ordinal: i32) {
        machine::ready()?;
        machine::device(ordinal)?;
        put(device, ordinal)?;
    }
    fn cuDeviceGetName(name: *mut c_char, len: i32, device: i32) {
        machine::device(device)?;
        put_text(name, len, machine::NAME.to_bytes())?;
    }
    fn cuDeviceGetPCIBusId(name: *mut c_char, len: i32, device: i32) {
        let place = machine::device(device)?.place;
        put_text(name, len, format!("0000:{:02X}:00.0", place + 1).as_bytes())?;
    }
    fn cuDeviceGetUuid(uuid: *mut [u8; 16], device: i32) {
        put(uuid, machine::uuid(device)?)?;
    }
    fn cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: i32) {
        put(uuid, machine::uuid(device)?)?;
    }
    fn cuDeviceTotalMem_v2(bytes: *mut usize, device: i32) {
        put(bytes, machine::device(device)?.memory as usize)?;
    }
    fn cuDeviceGetAttribute(value: *mut i32, attribute: i32, device: i32) {
        let place = machine::device(device)?.place;
        put(value, attribute_value(attribute, place as i32))?;
    }
    fn cuDeviceComputeCapability(major: *mut i32, minor: *mut i32, device: i32) {
        machine::device(device)?;
        put(major, 9)?;
        put(minor, 0)?;
    }
    fn cuDeviceCanAccessPeer(can: *mut i32, device: i32, peer: i32) {
        machine::device(device)?;
        machine::device(peer)?;
        put(can, i32::from(device != peer))?;
    }
    fn cuGetErrorName(code: u32, text: *mut *const c_char) { put(text, name_of(code).as_ptr())?; }
    fn cuGetErrorString(code: u32, text: *mut *const c_char) { put(text, name_of(code).as_ptr())?; }
    fn cuGetProcAddress(name: *const c_char, address: *mut *mut c_void, version: i32, flags: u64) {
        find(name, address, version, flags)?;
    }
    fn cuGetProcAddress_v2(name: *const c_char, address: *mut *mut c_void, version: i32, flags: u64, status: *mut i32) {
        let found = find(name, address, version, flags);
        put_if(status, i32::from(found.is_err()));
        found?;
    }
    fn cuGetExportTable(table: *mut *const c_void, id: *const [u8; 16]) {
        require(!id.is_null())?;
        if id.read() != PRIVATE_ID { return Err(NOT_FOUND); }
        put(table, (&raw const PRIVATE).cast())?;
    }
    fn cuProfilerStart() { context::current_device()?; }
    fn cuProfilerStop() { context::current_device()?; }
}

unsafe fn find(name: *const c_char, address: *mut *mut c_void, version: i32, flags: u64) -> Result<(), u32> {
    require(!name.is_null())?;
    // SAFETY: names are C strings, by the contract of `cuGetProcAddress`.
    let found = lookup::find(unsafe { CStr::from_ptr(name) }.to_bytes(), version as u32, flags);
    // SAFETY: as above, an out-pointer.
    unsafe { put(address, found.unwrap_or(0) as *mut c_void)? };
    found.map(drop).ok_or(NOT_FOUND)
}

unsafe fn put_text(place: *mut c_char, len: i32, text: &[u8]) -> Result<(), u32> {
    require(!place.is_null() && len > 0)?;
    let kept = text.len().min(len as usize - 1);
    // SAFETY: the caller gives `len` bytes, of which at most all are written.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr(), place.cast(), kept);
        place.add(kept).write(0);
    }
    Ok(())
}

fn attribute_value(attribute: i32, place: i32) -> i32 {
    match attribute {
        1..=3 => 1024,
        4 => 64,
        5 => i32::MAX,
        6 | 7 => 65535,
        8 => 49152,
        9 => 65536,
        10 => 32,
        12 => 65536,
        13 => 1_980_000,
        16 => gpusim_common::MULTIPROCESSORS,
        33 => place + 1,
        36 => 2_619_000,
        37 => 5120,
        38 => 50 << 20,
        39 => 2048,
        40 => 3,
        75 => 9,
        81 => 233_472,
        82 => 65536,
        97 => 232_448,
        106 => 32,
        15 | 31 | 41 | 78 | 79 | 80 | 83 | 89 | 95 | 96 | 99 | 102 | 115 => 1,
        _ => 0,
    }
}

fn name_of(code: u32) -> &'static CStr {
    match code {
        0 => c"CUDA_SUCCESS",
        INVALID_VALUE => c"CUDA_ERROR_INVALID_VALUE",
        OUT_OF_MEMORY => c"CUDA_ERROR_OUT_OF_MEMORY",
        NOT_INITIALIZED => c"CUDA_ERROR_NOT_INITIALIZED",
        INVALID_DEVICE => c"CUDA_ERROR_INVALID_DEVICE",
        INVALID_CONTEXT => c"CUDA_ERROR_INVALID_CONTEXT",
        INVALID_HANDLE => c"CUDA_ERROR_INVALID_HANDLE",
        NOT_FOUND => c"CUDA_ERROR_NOT_FOUND",
        NOT_READY => c"CUDA_ERROR_NOT_READY",
        NOT_SUPPORTED => c"CUDA_ERROR_NOT_SUPPORTED",
        _ => c"CUDA_ERROR_UNKNOWN",
    }
}
