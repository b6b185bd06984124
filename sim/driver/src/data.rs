//! What memory holds.
//!
//! Memory that the host can reach is there. Device memory holds data only with `GPUSIM_DATA=1`:
//! then it is a second mapping as large as the address space of devices, so that the addresses
//! themselves stay out of the host's reach. Without, reading it gives zeros.

use std::sync::OnceLock;

use crate::heap;
use crate::memory;

/// Where the contents of device memory lie, less where device memory lies; none without data.
fn offset() -> Option<u64> {
    static OFFSET: OnceLock<Option<u64>> = OnceLock::new();
    *OFFSET.get_or_init(|| {
        if std::env::var("GPUSIM_DATA").is_ok_and(|wanted| wanted == "1") {
            Some(heap::contents()?.wrapping_sub(heap::start()))
        } else {
            None
        }
    })
}

/// Where the host finds what is at `address`, which is the program's own unless `on_device`.
fn reach(address: u64, on_device: bool) -> Option<*mut u8> {
    if !on_device || memory::find(address).is_some_and(|b| b.kind.on_host()) {
        return Some(address as *mut u8);
    }
    let offset = offset()?;
    heap::holds(address).then(|| address.wrapping_add(offset) as *mut u8)
}

/// Copies between addresses, each with whether it is the device's.
///
/// # Safety
/// Those that are not are valid for `bytes` bytes; those that are were allocated.
pub unsafe fn carry(to: (u64, bool), from: (u64, bool), bytes: usize) {
    let Some(target) = reach(to.0, to.1) else { return };
    // SAFETY: by this function's contract, and because contents lie where `heap` has put them.
    unsafe {
        match reach(from.0, from.1) {
            Some(source) => std::ptr::copy(source, target, bytes),
            None => target.write_bytes(0, bytes),
        }
    }
}

/// Writes a pattern over and over.
///
/// # Safety
/// `bytes` bytes from `address` were allocated.
pub unsafe fn fill(address: u64, pattern: &[u8], bytes: usize) {
    let Some(target) = reach(address, true) else { return };
    // SAFETY: by this function's contract.
    let target = unsafe { std::slice::from_raw_parts_mut(target, bytes) };
    for (to, from) in target.iter_mut().zip(pattern.iter().cycle()) {
        *to = *from;
    }
}
