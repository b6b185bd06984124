//! Arrays: the runtime's channels become the driver's format.

use crate::api_memory::Extent;
use crate::driver::check;
use crate::entry::{api, export, own_name};
use crate::last_error::INVALID_VALUE;

/// `cudaChannelFormatDesc`.
#[repr(C)]
pub struct Channels {
    bits: [i32; 4],
    kind: i32,
}

/// `CUDA_ARRAY3D_DESCRIPTOR`.
#[repr(C)]
struct Volume {
    width: usize,
    height: usize,
    depth: usize,
    format: u32,
    channels: u32,
    flags: u32,
}

const INVALID_CHANNEL_DESCRIPTOR: u32 = 20;

/// The driver's number for one channel of so many bits.
fn format(bits: i32, kind: i32) -> Option<u32> {
    let position = [8, 16, 32].iter().position(|known| *known == bits)? as u32;
    match kind {
        0 => Some(8 + position),
        1 => Some(1 + position),
        2 if bits > 8 => Some(16 * position),
        _ => None,
    }
}

unsafe fn volume(desc: *const Channels, extent: Extent, flags: u32) -> Result<Volume, u32> {
    if desc.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: not null, so a whole structure by the contract of the exports.
    let desc = unsafe { &*desc };
    let channels = desc.bits.iter().take_while(|bits| **bits != 0).count() as u32;
    let format = format(desc.bits[0], desc.kind).ok_or(INVALID_CHANNEL_DESCRIPTOR)?;
    Ok(Volume {
        width: extent.width,
        height: extent.height,
        depth: extent.depth,
        format,
        channels,
        flags,
    })
}

api! {
    call d fn cudaMallocArray(place: *mut u64, desc: *const Channels, width: usize, height: usize, flags: u32) {
        let volume = volume(desc, Extent { width, height, depth: 0 }, flags)?;
        check((d.cuArray3DCreate_v2)(place, (&raw const volume).cast()))?;
    }
    call d fn cudaMalloc3DArray(place: *mut u64, desc: *const Channels, extent: Extent, flags: u32) {
        let volume = volume(desc, extent, flags)?;
        check((d.cuArray3DCreate_v2)(place, (&raw const volume).cast()))?;
    }
    call d fn cudaMallocMipmappedArray(place: *mut u64, desc: *const Channels, extent: Extent, levels: u32, flags: u32) {
        let volume = volume(desc, extent, flags)?;
        check((d.cuMipmappedArrayCreate)(place, (&raw const volume).cast(), levels))?;
    }
    call d fn cudaFreeArray(array: u64) {
        if array == 0 { return Ok(()); }
        check((d.cuArrayDestroy)(array))?;
    }
    call d fn cudaFreeMipmappedArray(array: u64) {
        if array == 0 { return Ok(()); }
        check((d.cuMipmappedArrayDestroy)(array))?;
    }
}
