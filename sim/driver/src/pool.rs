//! Memory pools: what they took from the device and what of it is in use.
//!
//! A pool takes memory in big steps and keeps what is freed, until the device is synchronised
//! with while it holds more than its release threshold, or until it is trimmed.

use std::sync::{Mutex, MutexGuard, PoisonError};

use gpusim_common::book::{Family, How};

use crate::error::{INVALID_VALUE, NOT_SUPPORTED};
use crate::{book, machine};

/// Handles of the default pools are these plus the device's number.
const DEFAULT_POOL: usize = 0x5000_0000;
/// A pool grows by multiples of this if the device has it, and else of a page.
const STEP: u64 = 32 << 20;
const PAGE: u64 = 2 << 20;

struct Pool {
    handle: usize,
    device: i32,
    threshold: u64,
    reserved: u64,
    reserved_high: u64,
    used: u64,
    used_high: u64,
    /// Destroyed pools last until their last allocation is freed.
    destroyed: bool,
}

#[derive(Default)]
struct Pools {
    all: Vec<Pool>,
    /// (device, pool) where it is not the default one.
    current: Vec<(i32, usize)>,
}

static POOLS: Mutex<Option<Pools>> = Mutex::new(None);

/// The pools; those of the devices are there from the start.
fn with<T>(act: impl FnOnce(&mut Pools) -> T) -> T {
    let mut pools: MutexGuard<Option<Pools>> = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    let pools = pools.get_or_insert_with(|| {
        let count = machine::machine().devices.len();
        let all = (0..count).map(|i| Pool::new(DEFAULT_POOL + i, i as i32)).collect();
        Pools {
            all,
            current: Vec::new(),
        }
    });
    act(pools)
}

/// Does something with a pool that is there for the program.
fn with_pool<T>(handle: usize, act: impl FnOnce(&mut Pool) -> Result<T, u32>) -> Result<T, u32> {
    with(|pools| {
        let pool = pools.all.iter_mut().find(|p| p.handle == handle && !p.destroyed);
        act(pool.ok_or(INVALID_VALUE)?)
    })
}

pub fn default_of(device: i32) -> usize {
    DEFAULT_POOL + device as usize
}

pub fn current_of(device: i32) -> usize {
    with(|pools| {
        let own = pools.current.iter().find(|(d, _)| *d == device);
        own.map_or(default_of(device), |(_, pool)| *pool)
    })
}

pub fn set_current(device: i32, pool: usize) -> Result<(), u32> {
    device_of(pool)?;
    with(|pools| {
        pools.current.retain(|(d, _)| *d != device);
        pools.current.push((device, pool));
    });
    Ok(())
}

pub fn create(device: i32) -> usize {
    let handle = Box::leak(Box::new([0u64; 8])) as *const _ as usize;
    with(|pools| pools.all.push(Pool::new(handle, device)));
    handle
}

/// What is allocated stays, and the pool with it until the last of it is freed.
pub fn destroy(handle: usize) -> Result<(), u32> {
    with_pool(handle, |pool| {
        if handle == default_of(pool.device) {
            return Err(INVALID_VALUE);
        }
        pool.destroyed = true;
        pool.shrink(pool.used, How::PoolDestroyed);
        Ok(())
    })?;
    with(|pools| {
        pools.current.retain(|(_, pool)| *pool != handle);
        pools.all.retain(|p| !p.destroyed || p.used > 0);
    });
    Ok(())
}

pub fn device_of(handle: usize) -> Result<i32, u32> {
    with_pool(handle, |pool| Ok(pool.device))
}

/// Takes memory for an allocation.
pub fn take(handle: usize, bytes: u64) -> Result<(), u32> {
    with_pool(handle, |pool| pool.take(bytes))
}

/// Takes an allocation back; its memory stays in the pool for now.
pub fn give(handle: usize, bytes: u64) {
    with(|pools| {
        if let Some(pool) = pools.all.iter_mut().find(|p| p.handle == handle) {
            pool.used -= bytes;
            if pool.destroyed {
                pool.shrink(pool.used, How::PoolDestroyed);
            }
        }
        pools.all.retain(|p| !p.destroyed || p.used > 0);
    });
}

pub fn trim(handle: usize, keep: u64) -> Result<(), u32> {
    with_pool(handle, |pool| {
        pool.shrink(pool.used.max(keep), How::Freed);
        Ok(())
    })
}

/// Gives back what pools hold beyond their thresholds, as synchronising with the device does.
pub fn settle(device: i32) {
    with(|pools| {
        for pool in pools.all.iter_mut().filter(|p| p.device == device) {
            pool.shrink(pool.used.max(pool.threshold), How::Freed);
        }
    });
}

pub fn attribute(handle: usize, which: i32) -> Result<u64, u32> {
    with_pool(handle, |pool| match which {
        1..=3 => Ok(1),
        4 => Ok(pool.threshold),
        5 => Ok(pool.reserved),
        6 => Ok(pool.reserved_high),
        7 => Ok(pool.used),
        8 => Ok(pool.used_high),
        _ => Err(NOT_SUPPORTED),
    })
}

pub fn set_attribute(handle: usize, which: i32, value: u64) -> Result<(), u32> {
    with_pool(handle, |pool| {
        match which {
            1..=3 => {}
            4 => pool.threshold = value,
            // High-water marks can only be taken back to what is now.
            6 if value == 0 => pool.reserved_high = pool.reserved,
            8 if value == 0 => pool.used_high = pool.used,
            _ => return Err(INVALID_VALUE),
        }
        Ok(())
    })
}

impl Pool {
    fn new(handle: usize, device: i32) -> Pool {
        Pool {
            handle,
            device,
            threshold: 0,
            reserved: 0,
            reserved_high: 0,
            used: 0,
            used_high: 0,
            destroyed: false,
        }
    }

    fn take(&mut self, bytes: u64) -> Result<(), u32> {
        let used = self.used + bytes;
        if used > self.reserved {
            self.grow(used - self.reserved)?;
        }
        self.used = used;
        self.used_high = self.used_high.max(used);
        Ok(())
    }

    fn grow(&mut self, missing: u64) -> Result<(), u32> {
        let device = machine::device(self.device)?;
        let mut more = missing.next_multiple_of(STEP);
        if device.charge(more).is_err() {
            more = missing.next_multiple_of(PAGE);
            device.charge(more)?;
        }
        self.reserved += more;
        self.reserved_high = self.reserved_high.max(self.reserved);
        (0..more / PAGE).for_each(|_| book::allocated(Family::Pool, self.device, PAGE));
        Ok(())
    }

    fn shrink(&mut self, to: u64, how: How) {
        let less = self.reserved.saturating_sub(to.next_multiple_of(PAGE));
        if less > 0 {
            self.reserved -= less;
            (0..less / PAGE).for_each(|_| book::ended(Family::Pool, self.device, PAGE, how));
            if let Ok(device) = machine::device(self.device) {
                device.refund(less);
            }
        }
    }
}
