//! The `CUresult` values used here, and checks that answer with them.

pub const INVALID_VALUE: u32 = 1;
pub const OUT_OF_MEMORY: u32 = 2;
pub const NOT_INITIALIZED: u32 = 3;
pub const NO_DEVICE: u32 = 100;
pub const INVALID_DEVICE: u32 = 101;
pub const INVALID_IMAGE: u32 = 200;
pub const INVALID_CONTEXT: u32 = 201;
pub const INVALID_HANDLE: u32 = 400;
pub const NOT_FOUND: u32 = 500;
pub const NOT_READY: u32 = 600;
pub const CONTEXT_IS_DESTROYED: u32 = 709;
pub const LAUNCH_FAILED: u32 = 719;
pub const NOT_SUPPORTED: u32 = 801;
pub const STREAM_CAPTURE_UNSUPPORTED: u32 = 900;
pub const ILLEGAL_STATE: u32 = 401;

/// Writes through an out-pointer of a caller, who may not pass null.
///
/// # Safety
/// `place` is null or valid for a write.
pub unsafe fn put<T>(place: *mut T, value: T) -> Result<(), u32> {
    if place.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: not null, so valid by this function's contract.
    unsafe { place.write_unaligned(value) };
    Ok(())
}

/// Writes through an out-pointer that may be null.
///
/// # Safety
/// `place` is null or valid for a write.
pub unsafe fn put_if<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: not null, so valid by this function's contract.
        unsafe { place.write_unaligned(value) };
    }
}

/// `INVALID_VALUE` unless `holds`.
pub fn require(holds: bool) -> Result<(), u32> {
    if holds { Ok(()) } else { Err(INVALID_VALUE) }
}
