//! Stream-ordered allocation and memory pools.

use crate::context::{self, current_device};
use crate::error::*;
use crate::graph::{Node, Step};
use crate::memory::{self, Block, Kind};
use crate::{book, machine, pool, stream};

const GRAIN: u64 = 512;
/// The per-thread default stream, which stream 0 is to the `_ptsz` twins.
const PER_THREAD: usize = 2;

fn per_thread(stream: usize) -> usize {
    if stream == 0 { PER_THREAD } else { stream }
}

unsafe fn allocate(place: *mut u64, size: usize, pool: Option<usize>, handle: usize) -> Result<(), u32> {
    let context = context::current()?;
    require(!place.is_null() && size > 0)?;
    let stream = stream::find(handle, context.device)?;
    let pool = pool.unwrap_or_else(|| pool::current_of(context.device));
    let device = pool::device_of(pool)?;
    book::concerns(device);
    let address = if stream.is_capturing() {
        let node = Node::new(size as u64, device)?;
        let address = node.address;
        stream.record(Step::Allocate(node));
        address
    } else {
        stream.enqueue(0, 0);
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
    let device = current_device()?;
    let stream = stream::find(handle, device)?;
    if stream.is_capturing() {
        stream.record(Step::Free(address));
        return Ok(());
    }
    stream.enqueue(0, 0);
    memory::release(address, &[Kind::Pool, Kind::Device, Kind::Graph])
}

api! {
    fn cuMemAllocAsync(place: *mut u64, size: usize, stream: usize) { allocate(place, size, None, stream)?; }
    fn cuMemAllocAsync_ptsz(place: *mut u64, size: usize, stream: usize) { allocate(place, size, None, per_thread(stream))?; }
    fn cuMemAllocFromPoolAsync(place: *mut u64, size: usize, pool: usize, stream: usize) { allocate(place, size, Some(pool), stream)?; }
    fn cuMemAllocFromPoolAsync_ptsz(place: *mut u64, size: usize, pool: usize, stream: usize) { allocate(place, size, Some(pool), per_thread(stream))?; }
    fn cuMemFreeAsync(address: u64, stream: usize) { free(address, stream)?; }
    fn cuMemFreeAsync_ptsz(address: u64, stream: usize) { free(address, per_thread(stream))?; }
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
