//! Allocating and freeing, pinned and managed memory, and questions about pointers.

use gpusim_common::clock::{now_ns, sleep_until};

use crate::context::current_device;
use crate::error::*;
use crate::memory::{self, Block, Kind};
use crate::operation::{self, Work};
use crate::work::Waited;
use crate::{book, context, machine, stream, work};

const PITCH: usize = 512;

unsafe fn pin(place: *mut u64, size: usize, flags: u32) -> Result<(), u32> {
    let context = context::current()?;
    require(!place.is_null() && flags < 8)?;
    // SAFETY: an out-pointer of the caller.
    unsafe {
        put(
            place,
            memory::allocate_host(Block::of(context, size as u64, Kind::Pinned))?,
        )
    }
}

/// Blocks as long as taking or giving back memory does.
fn last() {
    match machine::machine().alloc_ns {
        0 => {}
        ns => sleep_until(now_ns() + ns),
    }
}

api! {
    fn cuMemAlloc_v2(place: *mut u64, size: usize) {
        let context = context::current()?;
        require(!place.is_null())?;
        put(place, memory::allocate(Block::of(context, size as u64, Kind::Device))?)?;
        last();
    }
    fn cuMemAllocPitch_v2(place: *mut u64, pitch: *mut usize, width: usize, height: usize, _element: u32) {
        let context = context::current()?;
        require(!place.is_null() && !pitch.is_null() && width > 0 && height > 0)?;
        let row = width.checked_next_multiple_of(PITCH).ok_or(OUT_OF_MEMORY)?;
        let size = row.checked_mul(height).ok_or(OUT_OF_MEMORY)?;
        put(place, memory::allocate(Block::of(context, size as u64, Kind::Device))?)?;
        put(pitch, row)?;
    }
    fn cuMemAllocManaged(place: *mut u64, size: usize, flags: u32) {
        let context = context::current()?;
        require(!place.is_null() && matches!(flags, 1 | 2))?;
        put(place, memory::allocate_host(Block::of(context, size as u64, Kind::Managed))?)?;
    }
    fn cuMemFree_v2(address: u64) {
        let context = context::current()?;
        if address == 0 { return Ok(()); }
        memory::find(address).filter(|b| b.start == address).ok_or(INVALID_VALUE).inspect_err(|_| book::missed(address))?;
        stream::synchronise_context(context);
        work::waited(Waited::Context(context.handle()));
        memory::release(address, &[Kind::Device, Kind::Managed, Kind::Pool, Kind::Graph, Kind::Buffer])?;
        last();
    }
    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) {
        let device = machine::device(current_device()?)?;
        put(free, device.free() as usize)?;
        put(total, device.memory as usize)?;
    }
    fn cuMemGetAddressRange_v2(base: *mut u64, size: *mut usize, address: u64) {
        current_device()?;
        let block = memory::find(address).ok_or(NOT_FOUND)?;
        put_if(base, block.start);
        put_if(size, block.size as usize);
    }
    fn cuMemHostAlloc(place: *mut u64, size: usize, flags: u32) { pin(place, size, flags)?; }
    fn cuMemAllocHost_v2(place: *mut u64, size: usize) { pin(place, size, 0)?; }
    fn cuMemFreeHost(address: u64) {
        current_device()?;
        if address != 0 { memory::release(address, &[Kind::Pinned])?; }
    }
    fn cuMemHostRegister_v2(start: u64, size: usize, _flags: u32) {
        let context = context::current()?;
        require(start != 0 && size != 0)?;
        if memory::find(start).is_some() { return Err(712); }
        memory::record(Block { start, ..Block::of(context, size as u64, Kind::Registered) });
    }
    fn cuMemHostUnregister(start: u64) {
        current_device()?;
        memory::release(start, &[Kind::Registered]).map_err(|_| 713u32)?;
    }
    fn cuMemHostGetDevicePointer_v2(place: *mut u64, address: u64, _flags: u32) {
        current_device()?;
        memory::find(address).filter(|b| b.kind.on_host()).ok_or(INVALID_VALUE)?;
        put(place, address)?;
    }
    fn cuMemHostGetFlags(flags: *mut u32, address: u64) {
        current_device()?;
        memory::find(address).filter(|b| b.kind == Kind::Pinned).ok_or(INVALID_VALUE)?;
        put(flags, 0)?;
    }
    fn cuPointerGetAttribute(value: *mut u64, attribute: i32, address: u64) {
        current_device()?;
        answer(value, attribute, address)?;
    }
    fn cuPointerGetAttributes(count: u32, attributes: *const i32, values: *const *mut u64, address: u64) {
        current_device()?;
        require(!attributes.is_null() && !values.is_null())?;
        for i in 0..count as usize {
            // Unknown pointers are no error here: their answers are zeros.
            if answer(values.add(i).read(), attributes.add(i).read(), address).is_err() {
                put(values.add(i).read().cast::<u32>(), 0)?;
            }
        }
    }
    fn cuMemAdvise(address: u64, size: usize, _advice: i32, _device: i32) { managed(address, size)?; }
    fn cuMemAdvise_v2(address: u64, size: usize, _advice: i32, _location: u64) { managed(address, size)?; }
    fn cuMemPrefetchAsync / cuMemPrefetchAsync_ptsz (address: u64, size: usize, device: i32, stream: usize) { prefetch(address, size, device >= 0, stream)?; }
    fn cuMemPrefetchAsync_v2 / cuMemPrefetchAsync_v2_ptsz (address: u64, size: usize, location: u64, _flags: u32, stream: usize) {
        prefetch(address, size, is_device(location), stream)?;
    }
    fn cuMemPrefetchBatchAsync / cuMemPrefetchBatchAsync_ptsz (addresses: *const u64, sizes: *const usize, count: usize, locations: *const u64, firsts: *const usize, location_count: usize, _flags: u64, stream: usize) {
        require(count > 0 && location_count > 0 && !addresses.is_null() && !sizes.is_null() && !locations.is_null() && !firsts.is_null())?;
        let firsts = std::slice::from_raw_parts(firsts, location_count);
        require(firsts[0] == 0)?;
        for i in 0..count {
            let which = firsts.partition_point(|first| *first <= i) - 1;
            prefetch(addresses.add(i).read(), sizes.add(i).read(), is_device(locations.add(which).read()), stream)?;
        }
    }
}

fn managed(address: u64, size: usize) -> Result<(), u32> {
    current_device()?;
    require(memory::spanning(address, size as u64)?.kind == Kind::Managed)
}

/// `CUmemLocation`, which travels by value: 1 in its lower half is a device.
fn is_device(location: u64) -> bool {
    location as u32 == 1
}

fn prefetch(address: u64, size: usize, to_device: bool, handle: usize) -> Result<(), u32> {
    managed(address, size)?;
    let work = Work::Prefetch {
        bytes: size as u64,
        to_device,
    };
    operation::submit(work, stream::find(handle)?, false)
}

unsafe fn answer(value: *mut u64, attribute: i32, address: u64) -> Result<(), u32> {
    require(!value.is_null())?;
    let block = memory::find(address).ok_or(INVALID_VALUE)?;
    // SAFETY: each attribute is written with the size CUDA documents for it.
    unsafe {
        match attribute {
            1 => put(value, block.context as u64),
            2 => put(
                value.cast::<u32>(),
                if matches!(block.kind, Kind::Pinned | Kind::Registered) {
                    1
                } else {
                    2
                },
            ),
            3 | 4 => put(value, address),
            7 => put(value, block.start),
            8 => put(value.cast::<u32>(), u32::from(block.kind == Kind::Managed)),
            9 => put(value.cast::<i32>(), block.device),
            11 => put(value, block.start),
            12 => put(value, block.size),
            13 => put(value.cast::<u32>(), 1),
            _ => put(value.cast::<u32>(), 0),
        }
    }
}
