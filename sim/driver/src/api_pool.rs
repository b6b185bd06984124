//! Stream-ordered allocation and memory pools.

use crate::error::*;
use crate::graph::{MemoryNode, Step};
use crate::memory::{self, Block, Kind};
use crate::operation::Work;
use crate::{book, context, machine, pool, stream};

const GRAIN: u64 = 512;

unsafe fn allocate(place: *mut u64, size: usize, pool: Option<usize>, handle: usize) -> Result<(), u32> {
    let context = context::current()?;
    require(!place.is_null() && size > 0)?;
    let stream = stream::find(handle)?;
    let pool = pool.unwrap_or_else(|| pool::current_of(context.device));
    let device = pool::device_of(pool)?;
    book::concerns(device);
    let address = if let Some(capture) = stream.capture() {
        let node = MemoryNode::new(size as u64, device)?;
        let address = node.address;
        capture.record(Work::Memory(Step::Allocate(node)));
        address
    } else {
        stream.place(0);
        let span = (size as u64).checked_next_multiple_of(GRAIN).ok_or(OUT_OF_MEMORY)?;
        pool::take(pool, span)?;
        let mut block = Block::of(context, size as u64, Kind::Pool);
        (block.device, block.context, block.pool) = (device, 0, pool);
        memory::allocate(block).inspect_err(|_| pool::give(pool, span))?
    };
    // SAFETY: an out-pointer of the caller.
    unsafe { put(place, address) }
}

fn free(address: u64, handle: usize) -> Result<(), u32> {
    let stream = stream::find(handle)?;
    if let Some(capture) = stream.capture() {
        capture.record(Work::Memory(Step::Free(address)));
        return Ok(());
    }
    stream.place(0);
    memory::release(address, &[Kind::Pool, Kind::Device, Kind::Graph])
}

api! {
    fn cuMemAllocAsync / cuMemAllocAsync_ptsz (place: *mut u64, size: usize, stream: usize) { allocate(place, size, None, stream)?; }
    fn cuMemAllocFromPoolAsync / cuMemAllocFromPoolAsync_ptsz (place: *mut u64, size: usize, pool: usize, stream: usize) { allocate(place, size, Some(pool), stream)?; }
    fn cuMemFreeAsync / cuMemFreeAsync_ptsz (address: u64, stream: usize) { free(address, stream)?; }
    fn cuDeviceGetDefaultMemPool(place: *mut usize, device: i32) {
        machine::device(device)?;
        put(place, pool::default_of(device))?;
    }
    fn cuDeviceGetMemPool(place: *mut usize, device: i32) {
        machine::device(device)?;
        put(place, pool::current_of(device))?;
    }
    fn cuDeviceSetMemPool(device: i32, pool: usize) { machine::device(device)?; pool::set_current(device, pool)?; }
    fn cuMemPoolCreate(place: *mut usize, props: *const i32) {
        machine::ready()?;
        require(!place.is_null() && !props.is_null())?;
        // CUmemPoolProps: kind at 0, handle types at 4, location {kind at 8, id at 12}.
        let device = props.add(3).read();
        machine::device(device)?;
        put(place, pool::create(device))?;
    }
    fn cuMemPoolDestroy(pool: usize) { pool::destroy(pool)?; }
    fn cuMemPoolTrimTo(pool: usize, keep: usize) { pool::trim(pool, keep as u64)?; }
    fn cuMemPoolGetAttribute(pool: usize, which: i32, value: *mut u64) {
        let found = pool::attribute(pool, which)?;
        match which {
            1..=3 => put(value.cast::<u32>(), found as u32)?,
            _ => put(value, found)?,
        }
    }
    fn cuMemPoolSetAttribute(pool: usize, which: i32, value: *const u64) {
        require(!value.is_null())?;
        pool::set_attribute(pool, which, if which < 4 { 0 } else { value.read() })?;
    }
}
