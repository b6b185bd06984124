//! Virtual memory management.

use gpusim_common::book::{Family, How};
use gpusim_common::ledger::Bytes;

use crate::context::current_device;
use crate::error::*;
use crate::heap::heap;
use crate::memory::{self, Block, Kind};
use crate::vmm::{Physical, tables};
use crate::{LEDGER, book, machine};

const GRAIN: u64 = 2 << 20;
/// Kinds of places: `CUmemLocationType`.
const ON_DEVICE: i32 = 1;
const ON_HOST: i32 = 2;
const ON_CURRENT_NODE: i32 = 4;
/// Addresses belong to no device, and memory of the host neither.
const NO_DEVICE: i32 = -1;

/// What a file that stands for shared memory says.
const SHARE_MAGIC: u64 = u64::from_le_bytes(*b"GPUSIM-V");
const FILE: u32 = 1;

fn export(size: u64, device: i32) -> Result<i32, u32> {
    let words = [SHARE_MAGIC, size, device as u64];
    // SAFETY: a C string, and memory of just this size; the file is the caller's.
    unsafe {
        let file = libc::memfd_create(c"gpusim-share".as_ptr(), libc::MFD_CLOEXEC);
        let written = libc::pwrite(file, words.as_ptr().cast(), size_of_val(&words), 0);
        if file >= 0 && written == size_of_val(&words) as isize {
            return Ok(file);
        }
    }
    Err(OUT_OF_MEMORY)
}

fn import(file: i32) -> Result<(u64, i32), u32> {
    let mut words = [0u64; 3];
    // SAFETY: memory of just this size.
    let read = unsafe { libc::pread(file, words.as_mut_ptr().cast(), size_of_val(&words), 0) };
    require(read == size_of_val(&words) as isize && words[0] == SHARE_MAGIC)?;
    Ok((words[1], words[2] as i32))
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
        book::allocated(Family::Reserved, NO_DEVICE, size);
        tables().reserved.insert(address, size);
        put(place, address)?;
    }
    fn cuMemAddressFree(address: u64, size: usize) {
        machine::ready()?;
        let mut tables = tables();
        match tables.reserved.get(&address) {
            Some(reserved) => require(*reserved == size as u64)?,
            None => {
                book::missed(address);
                return Err(INVALID_VALUE);
            }
        }
        require(tables.mapped.range(address..address + size as u64).next().is_none())?;
        tables.reserved.remove(&address);
        book::ended(Family::Reserved, NO_DEVICE, size as u64, How::Freed);
        book::freed(address);
        heap().give(address, size as u64);
    }
    fn cuMemCreate(place: *mut u64, size: usize, prop: *const i32, flags: u64) {
        machine::ready()?;
        let size = size as u64;
        require(!place.is_null() && !prop.is_null() && flags == 0)?;
        // CUmemAllocationProp: type at 0, handle types at 4, location {type at 8, id at 12}.
        let device = match prop.add(2).read() {
            ON_DEVICE => prop.add(3).read(),
            ON_HOST..=ON_CURRENT_NODE => NO_DEVICE,
            _ => return Err(INVALID_VALUE),
        };
        book::concerns(device);
        require(size > 0 && size.is_multiple_of(GRAIN))?;
        if device != NO_DEVICE { machine::device(device)?.charge(size)?; }
        LEDGER.add_bytes(Bytes::Alloc, size);
        let shareable = prop.add(1).read() as u32 & FILE != 0;
        book::allocated(Family::Physical, device, size);
        put(place, tables().add(Physical { size, device, imported: false, shareable, handles: 1, mappings: 0 }))?;
    }
    fn cuMemRelease(handle: u64) {
        machine::ready()?;
        let mut tables = tables();
        let physical = tables.held(handle).inspect_err(|_| book::missed(handle))?;
        physical.handles -= 1;
        if physical.handles == 0 { book::freed(handle); }
        tables.drop_unused(handle);
    }
    fn cuMemRetainAllocationHandle(place: *mut u64, address: u64) {
        machine::ready()?;
        require(!place.is_null())?;
        let mut tables = tables();
        let start = memory::find(address).filter(|b| b.kind == Kind::Mapped).ok_or(INVALID_VALUE)?.start;
        let handle = *tables.mapped.get(&start).ok_or(INVALID_VALUE)?;
        tables.physical.get_mut(&handle).ok_or(INVALID_VALUE)?.handles += 1;
        put(place, handle)?;
    }
    fn cuMemExportToShareableHandle(place: *mut i32, handle: u64, kind: u32, flags: u64) {
        machine::ready()?;
        require(!place.is_null() && kind == FILE && flags == 0)?;
        let mut tables = tables();
        let physical = tables.held(handle)?;
        require(physical.shareable)?;
        put(place, export(physical.size, physical.device)?)?;
    }
    fn cuMemImportFromShareableHandle(place: *mut u64, file: usize, kind: u32) {
        machine::ready()?;
        require(!place.is_null() && kind == FILE)?;
        let (size, device) = import(file as i32)?;
        book::allocated(Family::Imported, device, size);
        put(place, tables().add(Physical { size, device, imported: true, shareable: true, handles: 1, mappings: 0 }))?;
    }
    fn cuMemMap(address: u64, size: usize, offset: usize, handle: u64, flags: u64) {
        machine::ready()?;
        let size = size as u64;
        let mut tables = tables();
        require(flags == 0 && size > 0)?;
        tables.reservation_of(address, size)?;
        require(memory::find(address).is_none())?;
        let physical = tables.held(handle)?;
        require(offset as u64 + size <= physical.size)?;
        physical.mappings += 1;
        let device = physical.device;
        tables.mapped.insert(address, handle);
        memory::record(Block { start: address, size, device, kind: Kind::Mapped, context: 0, pool: 0 });
    }
    fn cuMemUnmap(address: u64, size: usize) {
        current_device()?;
        let mut tables = tables();
        let range = address..address + size as u64;
        let starts: Vec<u64> = tables.mapped.range(range).map(|(start, _)| *start).collect();
        if starts.is_empty() {
            book::missed(address);
            return Err(INVALID_VALUE);
        }
        for start in starts {
            tables.unmap(start)?;
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
