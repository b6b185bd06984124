//! What is allocated where.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use gpusim_common::ledger::Bytes;

use crate::LEDGER;
use crate::error::{INVALID_VALUE, OUT_OF_MEMORY};
use crate::heap::heap;
use crate::machine;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Device,
    Pool,
    Managed,
    Pinned,
    Registered,
    Mapped,
}

#[derive(Clone, Copy, Debug)]
pub struct Block {
    pub start: u64,
    /// As asked for.
    pub size: u64,
    pub device: i32,
    pub kind: Kind,
}

impl Kind {
    /// Whether the host may touch it.
    pub fn on_host(self) -> bool {
        matches!(self, Kind::Managed | Kind::Pinned | Kind::Registered)
    }
}

const GRAIN: u64 = 512;
static LIVE: Mutex<BTreeMap<u64, Block>> = Mutex::new(BTreeMap::new());

fn live() -> MutexGuard<'static, BTreeMap<u64, Block>> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Allocates device memory.
pub fn allocate(size: u64, device: i32, kind: Kind) -> Result<u64, u32> {
    if size == 0 {
        return Err(INVALID_VALUE);
    }
    let rounded = size.checked_next_multiple_of(GRAIN).ok_or(OUT_OF_MEMORY)?;
    let owner = machine::device(device)?;
    owner.charge(rounded)?;
    let start = heap().take(rounded, if size >= 2 << 20 { 2 << 20 } else { GRAIN });
    let start = start.inspect_err(|_| owner.refund(rounded))?;
    record(Block {
        start,
        size,
        device,
        kind,
    });
    LEDGER.add_bytes(Bytes::Alloc, size);
    Ok(start)
}

/// Allocates memory that the host can reach too.
pub fn allocate_host(size: u64, device: i32, kind: Kind) -> Result<u64, u32> {
    if size == 0 {
        return Err(INVALID_VALUE);
    }
    // SAFETY: a new private mapping wherever the kernel likes.
    let address = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            usize::try_from(size).map_err(|_| OUT_OF_MEMORY)?,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if address == libc::MAP_FAILED {
        return Err(OUT_OF_MEMORY);
    }
    record(Block {
        start: address as u64,
        size,
        device,
        kind,
    });
    LEDGER.add_bytes(Bytes::Alloc, size);
    Ok(address as u64)
}

pub fn record(block: Block) {
    live().insert(block.start, block);
}

/// Forgets the block that starts at `start`, if its kind is one of `kinds`.
pub fn forget(start: u64, kinds: &[Kind]) -> Result<Block, u32> {
    let mut live = live();
    let block = live.get(&start).copied().filter(|b| kinds.contains(&b.kind));
    let block = block.ok_or(INVALID_VALUE)?;
    live.remove(&start);
    Ok(block)
}

/// Frees what [`allocate`] or [`allocate_host`] gave out.
pub fn release(start: u64, kinds: &[Kind]) -> Result<(), u32> {
    let block = forget(start, kinds)?;
    if block.kind.on_host() {
        // SAFETY: the mapping `allocate_host` made, which nothing refers to any more.
        unsafe { libc::munmap(start as *mut libc::c_void, block.size as usize) };
    } else {
        let rounded = block.size.next_multiple_of(GRAIN);
        machine::device(block.device)?.refund(rounded);
        heap().give(start, rounded);
    }
    LEDGER.add_bytes(Bytes::Free, block.size);
    Ok(())
}

/// Frees all device memory of a device, as destroying its context does.
pub fn release_all(device: i32) {
    let freed = |b: &&Block| b.device == device && matches!(b.kind, Kind::Device | Kind::Pool | Kind::Managed);
    let starts: Vec<u64> = live().values().filter(freed).map(|b| b.start).collect();
    for start in starts {
        let _ = release(start, &[Kind::Device, Kind::Pool, Kind::Managed]);
    }
}

/// The live block that holds `address`.
pub fn find(address: u64) -> Option<Block> {
    let live = live();
    let (_, block) = live.range(..=address).next_back()?;
    (address - block.start < block.size).then_some(*block)
}

/// The block that holds all of `size` bytes from `address`; mappings side by side count as one.
pub fn spanning(address: u64, size: u64) -> Result<Block, u32> {
    let first = find(address).ok_or(INVALID_VALUE)?;
    let end = address.checked_add(size).ok_or(INVALID_VALUE)?;
    let mut last = first;
    while last.start + last.size < end {
        last = find(last.start + last.size)
            .filter(|next| next.kind == Kind::Mapped && last.kind == Kind::Mapped)
            .ok_or(INVALID_VALUE)?;
    }
    Ok(first)
}
