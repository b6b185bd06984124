//! A simulated `libnvidia-ml.so.1`: the devices of the simulated driver, with the memory and
//! work of the processes that publish theirs under `GPUSIM_STATE`.
//!
//! `GPUSIM_MIG=0:2,1:0` divides device 0 in two and leaves device 1, also in MIG mode, undivided. Lines
//! `LIST DEVICE[/INSTANCE] PID BYTES` of the file `GPUSIM_STATE/lists` add to the lists of processes (`compute`,
//! `graphics`, `mps`); `-` instead of bytes is "not available". [`state`] sets everything else.

#![allow(non_snake_case)]
#![allow(clippy::missing_safety_doc)]

mod device;
mod event;
mod gpm;
mod health;
mod lists;
mod mig;
mod state;
mod usage;
mod work;

use std::ffi::{c_char, c_void};
use std::sync::OnceLock;

use gpusim_common::fail::Plan;

pub(crate) const SUCCESS: u32 = 0;
pub(crate) const INVALID_ARGUMENT: u32 = 2;
pub(crate) const NOT_SUPPORTED: u32 = 3;
pub(crate) const NOT_FOUND: u32 = 6;
pub(crate) const INSUFFICIENT_SIZE: u32 = 7;

/// Writes through an out-pointer.
///
/// # Safety
/// `place` is null or valid for a write.
pub(crate) unsafe fn put<T>(place: *mut T, value: T) -> u32 {
    if place.is_null() {
        return INVALID_ARGUMENT;
    }
    // SAFETY: not null, so valid by this function's contract.
    unsafe { place.write_unaligned(value) };
    SUCCESS
}

/// Writes a C string of at most `len` bytes.
///
/// # Safety
/// `place` is null or valid for `len` bytes.
pub(crate) unsafe fn put_text(place: *mut c_char, len: u32, text: &str) -> u32 {
    if place.is_null() {
        return INVALID_ARGUMENT;
    }
    if text.len() >= len as usize {
        return INSUFFICIENT_SIZE;
    }
    // SAFETY: there is room for the text and its NUL.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr(), place.cast(), text.len());
        place.add(text.len()).write(0);
    }
    SUCCESS
}

/// The error that `GPUSIM_FAIL` has this call end with, or 0.
pub(crate) fn planned(name: &str) -> u32 {
    static PLAN: OnceLock<Plan> = OnceLock::new();
    PLAN.get_or_init(Plan::from_env).next(name.as_bytes())
}

macro_rules! nvml {
    ($(fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => { $(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $ty),*) -> u32 {
            let planned = $crate::planned(stringify!($name));
            if planned != 0 {
                return planned;
            }
            #[allow(unused_unsafe, reason = "some bodies need none")]
            // SAFETY: the caller keeps the contract of the NVML function of this name.
            unsafe { $body }
        }
    )* };
}
pub(crate) use nvml;

nvml! {
    fn nvmlInit() { state::trouble("driver") }
    fn nvmlInit_v2() { state::trouble("driver") }
    fn nvmlInitWithFlags(_flags: u32) { state::trouble("driver") }
    fn nvmlShutdown() { SUCCESS }
    fn nvmlSystemGetDriverVersion(place: *mut c_char, len: u32) { put_text(place, len, "580.00.00") }
    fn nvmlSystemGetNVMLVersion(place: *mut c_char, len: u32) { put_text(place, len, "13.580.00.00") }
    fn nvmlSystemGetCudaDriverVersion(place: *mut i32) { put(place, 13000) }
    fn nvmlSystemGetCudaDriverVersion_v2(place: *mut i32) { put(place, 13000) }
    fn nvmlSystemGetProcessName(pid: u32, place: *mut c_char, len: u32) {
        match std::fs::read_link(format!("/proc/{pid}/exe")) {
            Ok(path) => put_text(place, len, &path.to_string_lossy()),
            Err(_) => NOT_FOUND,
        }
    }
    fn nvmlInternalGetExportTable(_table: *mut *const c_void, _id: *const c_void) { NOT_SUPPORTED }
}

/// Unlike the others, this one returns the text itself.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlErrorString(code: u32) -> *const c_char {
    let text = match code {
        SUCCESS => c"Success",
        INVALID_ARGUMENT => c"Invalid Argument",
        NOT_SUPPORTED => c"Not Supported",
        NOT_FOUND => c"Not Found",
        INSUFFICIENT_SIZE => c"Insufficient Size",
        9 => c"Driver Not Loaded",
        10 => c"Timeout",
        13 => c"Function Not Found",
        15 => c"GPU is lost",
        _ => c"Unknown Error",
    };
    text.as_ptr()
}
