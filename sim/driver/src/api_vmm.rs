//! Virtual memory management: physical memory, addresses, and mappings between them.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use gpusim_common::ledger::Bytes;

use crate::LEDGER;
use crate::context::current_device;
use crate::error::*;
use crate::heap::heap;
use crate::machine;
use crate::memory::{self, Block, Kind};

const GRAIN: u64 = 2 << 20;

struct Physical {
    size: u64,
    device: i32,
    held: bool,
    mappings: u64,
}

struct Tables {
    next: u64,
    physical: BTreeMap<u64, Physical>,
    reserved: BTreeMap<u64, u64>,
    mapped: BTreeMap<u64, u64>,
}

static TABLES: Mutex<Tables> = Mutex::new(Tables {
    next: 0x10,
    physical: BTreeMap::new(),
    reserved: BTreeMap::new(),
    mapped: BTreeMap::new(),
});

fn tables() -> MutexGuard<'static, Tables> {
    TABLES.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tables {
    /// Physical memory goes when neither a handle nor a mapping holds it.
    fn drop_unused(&mut self, handle: u64) {
        if let Some(p) = self.physical.get(&handle)
            && !p.held
            && p.mappings == 0
        {
            if let Ok(device) = machine::device(p.device) {
                device.refund(p.size);
            }
            LEDGER.add_bytes(Bytes::Free, p.size);
            self.physical.remove(&handle);
        }
    }

    fn reservation_of(&self, address: u64, size: u64) -> Result<(), u32> {
        let around = self.reserved.range(..=address).next_back();
        let inside = around.is_some_and(|(start, length)| address + size <= start + length);
        require(inside)
    }
}

api! {
    fn cuMemGetAllocationGranularity(place: *mut usize, prop: *const u8, _option: i32) {
        machine::ready()?;
        require(!prop.is_null())?;
        put(place, GRAIN as usize)?;
    }
    fn cuMemAddressReserve(place: *mut u64, size: usize, align: usize, _wanted: u64, flags: u64) {
        machine::ready()?;
        let size = size as u64;
        require(!place.is_null() && flags == 0 && size > 0 && size.is_multiple_of(GRAIN))?;
        require(align == 0 || align.is_power_of_two())?;
        let address = heap().take(size, GRAIN.max(align as u64))?;
        tables().reserved.insert(address, size);
        put(place, address)?;
    }
    fn cuMemAddressFree(address: u64, size: usize) {
        machine::ready()?;
        let mut tables = tables();
        require(tables.reserved.get(&address) == Some(&(size as u64)))?;
        require(tables.mapped.range(address..address + size as u64).next().is_none())?;
        tables.reserved.remove(&address);
        heap().give(address, size as u64);
    }
    fn cuMemCreate(place: *mut u64, size: usize, prop: *const i32, flags: u64) {
        machine::ready()?;
        let size = size as u64;
        require(!place.is_null() && !prop.is_null() && flags == 0)?;
        require(size > 0 && size.is_multiple_of(GRAIN))?;
        // CUmemAllocationProp: type at 0, handle types at 4, location {type at 8, id at 12}.
        let device = prop.add(3).read();
        machine::device(device)?.charge(size)?;
        LEDGER.add_bytes(Bytes::Alloc, size);
        let mut tables = tables();
        tables.next += 0x10;
        let handle = tables.next;
        tables.physical.insert(handle, Physical { size, device, held: true, mappings: 0 });
        put(place, handle)?;
    }
    fn cuMemRelease(handle: u64) {
        machine::ready()?;
        let mut tables = tables();
        let physical = tables.physical.get_mut(&handle).filter(|p| p.held).ok_or(INVALID_VALUE)?;
        physical.held = false;
        tables.drop_unused(handle);
    }
    fn cuMemMap(address: u64, size: usize, offset: usize, handle: u64, flags: u64) {
        machine::ready()?;
        let size = size as u64;
        let mut tables = tables();
        require(flags == 0 && size > 0)?;
        tables.reservation_of(address, size)?;
        require(memory::find(address).is_none())?;
        let physical = tables.physical.get_mut(&handle).filter(|p| p.held).ok_or(INVALID_VALUE)?;
        require(offset as u64 + size <= physical.size)?;
        physical.mappings += 1;
        let device = physical.device;
        tables.mapped.insert(address, handle);
        memory::record(Block { start: address, size, device, kind: Kind::Mapped });
    }
    fn cuMemUnmap(address: u64, size: usize) {
        current_device()?;
        let mut tables = tables();
        let range = address..address + size as u64;
        let starts: Vec<u64> = tables.mapped.range(range).map(|(start, _)| *start).collect();
        require(!starts.is_empty())?;
        for start in starts {
            memory::forget(start, &[Kind::Mapped])?;
            let handle = tables.mapped.remove(&start).ok_or(INVALID_VALUE)?;
            if let Some(physical) = tables.physical.get_mut(&handle) {
                physical.mappings -= 1;
            }
            tables.drop_unused(handle);
        }
    }
    fn cuMemSetAccess(address: u64, size: usize, access: *const u8, count: usize) {
        current_device()?;
        require(!access.is_null() && count > 0)?;
        require(memory::spanning(address, size as u64)?.kind == Kind::Mapped)?;
    }
    fn cuMemGetAccess(flags: *mut u64, _location: *const u8, address: u64) {
        memory::find(address).filter(|b| b.kind == Kind::Mapped).ok_or(INVALID_VALUE)?;
        put(flags, 3)?;
    }
}
