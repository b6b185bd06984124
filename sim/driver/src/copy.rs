//! Copies and fills: how long they take, and what they do to memory the host can see.
//!
//! Device memory holds no data. What is read from it is zeros; what is written to it is lost.

use gpusim_common::ledger::Bytes;

use crate::LEDGER;
use crate::context::current_device;
use crate::error::{INVALID_VALUE, STREAM_CAPTURE_UNSUPPORTED};
use crate::machine::machine;
use crate::memory::{find, spanning};
use crate::stream::{self, Stream};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    HtoD,
    DtoH,
    DtoD,
    HtoH,
}

/// Which way a copy between two addresses goes, by what is allocated there.
pub fn way(dst: u64, src: u64) -> Way {
    let on_device = |p| find(p).is_some_and(|b| !b.kind.on_host());
    match (on_device(src), on_device(dst)) {
        (false, false) => Way::HtoH,
        (false, true) => Way::HtoD,
        (true, false) => Way::DtoH,
        (true, true) => Way::DtoD,
    }
}

/// Copies in `stream`, and blocks until done if `wait`.
///
/// # Safety
/// Host addresses are valid for `size` bytes.
pub unsafe fn copy(way: Way, dst: u64, src: u64, size: u64, stream: usize, wait: bool) -> Result<(), u32> {
    let device = current_device()?;
    let stream = stream::find(stream, device)?;
    if size == 0 {
        return Ok(());
    }
    if dst == 0 || src == 0 {
        return Err(INVALID_VALUE);
    }
    let (dst_block, src_block) = match way {
        Way::HtoD => (Some(spanning(dst, size)?), find(src)),
        Way::DtoH => (find(dst), Some(spanning(src, size)?)),
        Way::DtoD => (Some(spanning(dst, size)?), Some(spanning(src, size)?)),
        Way::HtoH => (find(dst), find(src)),
    };
    if dst_block.is_none_or(|b| b.kind.on_host()) {
        // SAFETY: `dst` is host memory of `size` bytes; so is `src` unless the device owns it.
        unsafe {
            match src_block.is_some_and(|b| !b.kind.on_host()) {
                true => std::ptr::write_bytes(dst as *mut u8, 0, size as usize),
                false => std::ptr::copy(src as *const u8, dst as *mut u8, size as usize),
            }
        }
    }
    let (counter, speed) = match way {
        Way::HtoD => (Bytes::HtoD, machine().host_bytes_per_ns),
        Way::DtoH => (Bytes::DtoH, machine().host_bytes_per_ns),
        Way::HtoH => (Bytes::HtoH, machine().host_bytes_per_ns),
        Way::DtoD => (Bytes::DtoD, machine().device_bytes_per_ns),
    };
    LEDGER.add_bytes(counter, size);
    run(stream, (size as f64 / speed) as u64, wait)
}

/// Fills `size` bytes; only memory the host can see is changed.
pub fn fill(dst: u64, pattern: &[u8], size: u64, stream: usize, wait: bool) -> Result<(), u32> {
    let device = current_device()?;
    let stream = stream::find(stream, device)?;
    if size == 0 {
        return Ok(());
    }
    if spanning(dst, size)?.kind.on_host() {
        // SAFETY: `spanning` found that all of it is one live host mapping.
        let bytes = unsafe { std::slice::from_raw_parts_mut(dst as *mut u8, size as usize) };
        for (to, from) in bytes.iter_mut().zip(pattern.iter().cycle()) {
            *to = *from;
        }
    }
    LEDGER.add_bytes(Bytes::Memset, size);
    run(stream, (size as f64 / machine().device_bytes_per_ns) as u64, wait)
}

fn run(stream: &Stream, ns: u64, wait: bool) -> Result<(), u32> {
    if wait {
        if stream.is_capturing() {
            return Err(STREAM_CAPTURE_UNSUPPORTED);
        }
        stream.join_blocking();
    }
    stream.enqueue(ns, 0);
    if wait { stream.synchronise() } else { Ok(()) }
}
