//! Stream-ordered allocation and memory pools.
//!
//! Freed memory leaves its pool at once; the simulated pools keep nothing back.

use std::sync::Mutex;
use std::sync::PoisonError;

use crate::context::current_device;
use crate::error::*;
use crate::memory::{self, Kind};
use crate::{machine, stream};

/// Pools that programs made, by handle, with their device.
static POOLS: Mutex<Vec<(usize, i32)>> = Mutex::new(Vec::new());
/// Handles of the default pools are these plus the device's number.
const DEFAULT_POOL: usize = 0x5000_0000;

fn device_of(pool: usize) -> Result<i32, u32> {
    let index = pool.wrapping_sub(DEFAULT_POOL);
    if index < machine::machine().devices.len() {
        return Ok(index as i32);
    }
    let pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    pools
        .iter()
        .find(|(handle, _)| *handle == pool)
        .map(|(_, d)| *d)
        .ok_or(INVALID_VALUE)
}

unsafe fn allocate(place: *mut u64, size: usize, device: i32, handle: usize) -> Result<(), u32> {
    require(!place.is_null())?;
    stream::find(handle, device)?.enqueue(0, 0);
    // SAFETY: an out-pointer of the caller.
    unsafe { put(place, memory::allocate(size as u64, device, Kind::Pool)?) }
}

api! {
    fn cuMemAllocAsync(place: *mut u64, size: usize, stream: usize) {
        let device = current_device()?;
        allocate(place, size, device, stream)?;
    }
    fn cuMemAllocFromPoolAsync(place: *mut u64, size: usize, pool: usize, stream: usize) {
        current_device()?;
        allocate(place, size, device_of(pool)?, stream)?;
    }
    fn cuMemFreeAsync(address: u64, stream: usize) {
        let device = current_device()?;
        stream::find(stream, device)?.enqueue(0, 0);
        memory::release(address, &[Kind::Pool, Kind::Device])?;
    }
    fn cuDeviceGetDefaultMemPool(pool: *mut usize, device: i32) {
        machine::device(device)?;
        put(pool, DEFAULT_POOL + device as usize)?;
    }
    fn cuDeviceGetMemPool(pool: *mut usize, device: i32) {
        machine::device(device)?;
        put(pool, DEFAULT_POOL + device as usize)?;
    }
    fn cuDeviceSetMemPool(device: i32, pool: usize) { machine::device(device)?; device_of(pool)?; }
    fn cuMemPoolCreate(pool: *mut usize, _props: usize) {
        let device = current_device()?;
        let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
        let handle = Box::leak(Box::new([0u64; 8])) as *const _ as usize;
        pools.push((handle, device));
        put(pool, handle)?;
    }
    fn cuMemPoolDestroy(pool: usize) {
        device_of(pool)?;
        POOLS.lock().unwrap_or_else(PoisonError::into_inner).retain(|(handle, _)| *handle != pool);
    }
    fn cuMemPoolTrimTo(pool: usize, _keep: usize) { device_of(pool)?; }
    fn cuMemPoolGetAttribute(pool: usize, attribute: i32, value: *mut u64) {
        let device = machine::device(device_of(pool)?)?;
        match attribute {
            1..=3 => put(value.cast::<u32>(), 1)?,
            4 => put(value, 0)?,
            _ => put(value, device.memory - device.free())?,
        }
    }
    fn cuMemPoolSetAttribute(pool: usize, _attribute: i32, value: *const u64) {
        device_of(pool)?;
        require(!value.is_null())?;
    }
}
