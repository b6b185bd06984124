//! Device, pinned and managed memory.

use crate::driver::check;
use crate::entry::{api, export, own_name};
use crate::last_error::INVALID_VALUE;

/// `cudaPointerAttributes` of CUDA 13.
#[repr(C)]
pub struct PointerAttributes {
    kind: i32,
    device: i32,
    on_device: u64,
    on_host: u64,
    reserved: [u64; 8],
}

#[repr(C)]
pub struct PitchedPointer {
    pub address: u64,
    pub pitch: usize,
    pub width: usize,
    pub height: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Extent {
    pub width: usize,
    pub height: usize,
    pub depth: usize,
}

fn not_null<T>(place: *mut T) -> Result<(), u32> {
    if place.is_null() { Err(INVALID_VALUE) } else { Ok(()) }
}

api! {
    call d fn cudaMalloc(place: *mut u64, size: usize) {
        not_null(place)?;
        // An empty allocation is a success the driver never hears of.
        if size == 0 { place.write(0); return Ok(()); }
        check((d.cuMemAlloc_v2)(place, size))?;
    }
    call d fn cudaFree(address: u64) {
        if address == 0 { return Ok(()); }
        check((d.cuMemFree_v2)(address))?;
    }
    call d fn cudaMallocPitch(place: *mut u64, pitch: *mut usize, width: usize, height: usize) {
        check((d.cuMemAllocPitch_v2)(place, pitch, width, height, 4))?;
    }
    call d fn cudaMalloc3D(place: *mut PitchedPointer, extent: Extent) {
        not_null(place)?;
        let (mut address, mut pitch) = (0, 0);
        check((d.cuMemAllocPitch_v2)(&mut address, &mut pitch, extent.width, extent.height * extent.depth, 4))?;
        place.write(PitchedPointer { address, pitch, width: extent.width, height: extent.height });
    }
    call d fn cudaMallocManaged(place: *mut u64, size: usize, flags: u32) { check((d.cuMemAllocManaged)(place, size, flags))?; }
    call d fn cudaMallocHost(place: *mut u64, size: usize) { check((d.cuMemHostAlloc)(place, size, 0))?; }
    call d fn cudaHostAlloc(place: *mut u64, size: usize, flags: u32) { check((d.cuMemHostAlloc)(place, size, flags))?; }
    call d fn cudaFreeHost(address: u64) { check((d.cuMemFreeHost)(address))?; }
    call d fn cudaHostRegister(address: u64, size: usize, flags: u32) { check((d.cuMemHostRegister_v2)(address, size, flags))?; }
    call d fn cudaHostUnregister(address: u64) { check((d.cuMemHostUnregister)(address))?; }
    call d fn cudaHostGetDevicePointer(place: *mut u64, address: u64, flags: u32) { check((d.cuMemHostGetDevicePointer_v2)(place, address, flags))?; }
    call d fn cudaHostGetFlags(flags: *mut u32, address: u64) { check((d.cuMemHostGetFlags)(flags, address))?; }
    call d fn cudaMemGetInfo(free: *mut usize, total: *mut usize) { check((d.cuMemGetInfo_v2)(free, total))?; }
    call d fn cudaMemAdvise(address: u64, size: usize, advice: i32, location: u64) { check((d.cuMemAdvise_v2)(address, size, advice, location))?; }
    call d fn cudaMemPrefetchAsync / cudaMemPrefetchAsync_ptsz (address: u64, size: usize, location: u64, flags: u32, stream: usize) {
        check((d.cuMemPrefetchAsync_v2)(address, size, location, flags, stream))?;
    }
    call d fn cudaPointerGetAttributes(place: *mut PointerAttributes, address: u64) {
        not_null(place)?;
        let (mut memory, mut managed, mut device) = (0u64, 0u64, 0u64);
        let (mut on_device, mut on_host) = (0u64, 0u64);
        let which = [2, 8, 9, 3, 4];
        let values = [&raw mut memory, &raw mut managed, &raw mut device, &raw mut on_device, &raw mut on_host];
        check((d.cuPointerGetAttributes)(5, which.as_ptr(), values.as_ptr(), address))?;
        let kind = if managed != 0 { 3 } else { memory as i32 };
        if kind == 2 { on_host = 0; }
        if kind == 0 { on_host = address; }
        let device = if kind == 0 { -2 } else { device as i32 };
        place.write(PointerAttributes { kind, device, on_device, on_host, reserved: [0; 8] });
    }
}
