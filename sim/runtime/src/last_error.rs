//! The error each thread saw last.

use std::cell::Cell;

pub const INVALID_VALUE: u32 = 1;
pub const INVALID_CONFIGURATION: u32 = 9;
pub const INVALID_PITCH: u32 = 12;
pub const INSUFFICIENT_DRIVER: u32 = 35;
pub const INVALID_SYMBOL: u32 = 13;
pub const INVALID_DEVICE_FUNCTION: u32 = 98;
pub const INVALID_MEMCPY_DIRECTION: u32 = 21;
pub const MISSING_CONFIGURATION: u32 = 52;
pub const NOT_SUPPORTED: u32 = 801;

thread_local! {
    static LAST: Cell<u32> = const { Cell::new(0) };
}

#[inline]
pub fn note(code: u32) {
    if code != 0 {
        LAST.set(code);
    }
}

pub fn peek() -> u32 {
    LAST.get()
}

pub fn take() -> u32 {
    LAST.replace(0)
}
