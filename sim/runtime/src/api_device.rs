//! Devices, versions, errors.

use std::ffi::{CStr, c_char, c_void};

use crate::driver::{self, VERSION, check};
use crate::entry::{api, export, own_name};
use crate::last_error::{self, INVALID_VALUE};

/// `cudaDeviceProp` of CUDA 13, as bytes.
type Properties = [u8; 1008];

/// `cudaChannelFormatDesc`.
#[repr(C)]
pub struct ChannelDesc([i32; 5]);

fn set(properties: &mut Properties, offset: usize, bytes: &[u8]) {
    properties[offset..offset + bytes.len()].copy_from_slice(bytes);
}

/// (offset in `cudaDeviceProp`, attribute that says the same)
const SAME: [(usize, i32); 20] = [
    (304, 12),
    (308, 10),
    (320, 1),
    (324, 2),
    (328, 3),
    (332, 4),
    (336, 5),
    (340, 6),
    (344, 7),
    (360, 75),
    (364, 76),
    (384, 16),
    (560, 31),
    (568, 33),
    (584, 40),
    (588, 41),
    (592, 37),
    (596, 38),
    (604, 39),
    (636, 83),
];

api! {
    call d fn cudaGetDeviceCount(count: *mut i32) { check((d.cuDeviceGetCount)(count))?; }
    call d fn cudaGetDevice(device: *mut i32) { check((d.cuCtxGetDevice_v2)(device, 0))?; }
    call d fn cudaSetDevice(device: i32) { driver::bind(d, device)?; }
    call d fn cudaInitDevice(device: i32, _device_flags: u32, _flags: u32) { driver::bind(d, device)?; }
    call d fn cudaDeviceReset() {
        let mut device = 0;
        check((d.cuCtxGetDevice_v2)(&mut device, 0))?;
        check((d.cuDevicePrimaryCtxReset_v2)(device))?;
    }
    call d fn cudaDeviceGetAttribute(value: *mut i32, which: i32, device: i32) { check((d.cuDeviceGetAttribute)(value, which, device))?; }
    call d fn cudaDeviceGetPCIBusId(text: *mut c_char, len: i32, device: i32) { check((d.cuDeviceGetPCIBusId)(text, len, device))?; }
    call d fn cudaDeviceCanAccessPeer(can: *mut i32, device: i32, peer: i32) { check((d.cuDeviceCanAccessPeer)(can, device, peer))?; }
    call d fn cudaDeviceGetLimit(value: *mut usize, limit: i32) { check((d.cuCtxGetLimit)(value, limit))?; }
    call d fn cudaDeviceSetLimit(limit: i32, value: usize) { check((d.cuCtxSetLimit)(limit, value))?; }
    call d fn cudaGetDeviceFlags(flags: *mut u32) {
        if flags.is_null() { return Err(INVALID_VALUE); }
        flags.write(0);
    }
    call d fn cudaSetDeviceFlags(_flags: u32) {}
    call d fn cudaGetDeviceProperties(place: *mut Properties, device: i32) {
        if place.is_null() { return Err(INVALID_VALUE); }
        let mut properties: Properties = [0; 1008];
        let (mut name, mut uuid, mut total) = ([0; 256], [0; 16], 0);
        check((d.cuDeviceGetName)(name.as_mut_ptr(), 256, device))?;
        check((d.cuDeviceGetUuid_v2)(&mut uuid, device))?;
        check((d.cuDeviceTotalMem_v2)(&mut total, device))?;
        set(&mut properties, 0, &name.map(|c| c as u8));
        set(&mut properties, 256, &uuid);
        set(&mut properties, 288, &total.to_ne_bytes());
        set(&mut properties, 296, &49152usize.to_ne_bytes());
        for (offset, which) in SAME {
            let mut value = 0;
            check((d.cuDeviceGetAttribute)(&mut value, which, device))?;
            set(&mut properties, offset, &value.to_ne_bytes());
        }
        place.write(properties);
    }
    call d fn cudaDriverGetVersion(version: *mut i32) { check((d.cuDriverGetVersion)(version))?; }
    call d fn cudaGetDriverEntryPoint(name: *const c_char, place: *mut *mut c_void, flags: u64, status: *mut i32) {
        check((d.cuGetProcAddress_v2)(name, place, VERSION, flags, status))?;
    }
    call d fn cudaGetDriverEntryPointByVersion(name: *const c_char, place: *mut *mut c_void, version: u32, flags: u64, status: *mut i32) {
        check((d.cuGetProcAddress_v2)(name, place, version as i32, flags, status))?;
    }
    call d fn cudaProfilerStart() {}
    call d fn cudaProfilerStop() {}
}

api! {
    plain fn cudaRuntimeGetVersion(version: *mut i32) -> u32 {
        if version.is_null() { return INVALID_VALUE; }
        version.write(VERSION);
        0
    }
    plain fn cudaGetLastError() -> u32 { last_error::take() }
    plain fn cudaPeekAtLastError() -> u32 { last_error::peek() }
    plain fn cudaGetErrorName(code: u32) -> *const c_char { text(code).0.as_ptr() }
    plain fn cudaGetErrorString(code: u32) -> *const c_char { text(code).1.as_ptr() }
    plain fn cudaCreateChannelDesc(x: i32, y: i32, z: i32, w: i32, kind: i32) -> ChannelDesc { ChannelDesc([x, y, z, w, kind]) }
}

fn text(code: u32) -> (&'static CStr, &'static CStr) {
    match code {
        0 => (c"cudaSuccess", c"no error"),
        1 => (c"cudaErrorInvalidValue", c"invalid argument"),
        2 => (c"cudaErrorMemoryAllocation", c"out of memory"),
        3 => (c"cudaErrorInitializationError", c"initialization error"),
        21 => (c"cudaErrorInvalidMemcpyDirection", c"invalid copy direction"),
        35 => (c"cudaErrorInsufficientDriver", c"no driver that is new enough"),
        98 => (c"cudaErrorInvalidDeviceFunction", c"no such kernel"),
        101 => (c"cudaErrorInvalidDevice", c"no such device"),
        400 => (c"cudaErrorInvalidResourceHandle", c"no such handle"),
        600 => (c"cudaErrorNotReady", c"not ready"),
        719 => (c"cudaErrorLaunchFailure", c"launch failed"),
        801 => (c"cudaErrorNotSupported", c"not supported"),
        _ => (c"cudaErrorUnknown", c"unknown error"),
    }
}
