//! Physical memory, reserved addresses, and which lies behind which.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use gpusim_common::book::{Family, How};
use gpusim_common::ledger::Bytes;

use crate::error::*;
use crate::memory::{self, Kind};
use crate::{LEDGER, book, machine};

pub struct Physical {
    pub size: u64,
    pub device: i32,
    /// Made by another call than `cuMemCreate`: the memory is somebody else's.
    pub imported: bool,
    pub shareable: bool,
    pub handles: u64,
    pub mappings: u64,
}

pub struct Tables {
    next: u64,
    /// Handles that are given out again.
    unused: Vec<u64>,
    pub physical: BTreeMap<u64, Physical>,
    pub reserved: BTreeMap<u64, u64>,
    pub mapped: BTreeMap<u64, u64>,
}

static TABLES: Mutex<Tables> = Mutex::new(Tables {
    next: 0x10,
    unused: Vec::new(),
    physical: BTreeMap::new(),
    reserved: BTreeMap::new(),
    mapped: BTreeMap::new(),
});

pub fn tables() -> MutexGuard<'static, Tables> {
    TABLES.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tables {
    pub fn add(&mut self, physical: Physical) -> u64 {
        let handle = self.unused.pop().unwrap_or_else(|| {
            self.next += 0x10;
            self.next
        });
        self.physical.insert(handle, physical);
        handle
    }

    /// What a handle that the program still has stands for.
    pub fn held(&mut self, handle: u64) -> Result<&mut Physical, u32> {
        let physical = self.physical.get_mut(&handle).filter(|p| p.handles > 0);
        physical.ok_or(INVALID_VALUE)
    }

    /// Physical memory goes when neither a handle nor a mapping holds it.
    pub fn drop_unused(&mut self, handle: u64) {
        let unused = |p: &&Physical| p.handles == 0 && p.mappings == 0;
        let Some(p) = self.physical.get(&handle).filter(unused) else {
            return;
        };
        book::ended(p.family(), p.device, p.size, How::Freed);
        if !p.imported {
            if let Ok(device) = machine::device(p.device) {
                device.refund(p.size);
            }
            LEDGER.add_bytes(Bytes::Free, p.size);
        }
        self.physical.remove(&handle);
        self.unused.push(handle);
    }

    pub fn unmap(&mut self, start: u64) -> Result<(), u32> {
        memory::release(start, &[Kind::Mapped])?;
        let handle = self.mapped.remove(&start).ok_or(INVALID_VALUE)?;
        if let Some(physical) = self.physical.get_mut(&handle) {
            physical.mappings -= 1;
        }
        self.drop_unused(handle);
        Ok(())
    }

    pub fn reservation_of(&self, address: u64, size: u64) -> Result<(), u32> {
        let around = self.reserved.range(..=address).next_back();
        let inside = around.is_some_and(|(start, length)| address + size <= start + length);
        require(inside)
    }
}

impl Physical {
    pub fn family(&self) -> Family {
        if self.imported {
            Family::Imported
        } else {
            Family::Physical
        }
    }
}
