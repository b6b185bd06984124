//! What is allocated where, and to whom it belongs.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use gpusim_common::book::How;
use gpusim_common::ledger::Bytes;

pub use crate::block::{Block, Kind};

use crate::block::GRAIN;
use crate::error::{INVALID_VALUE, OUT_OF_MEMORY};
use crate::heap::heap;
use crate::{LEDGER, book, machine, pool};

static LIVE: Mutex<BTreeMap<u64, Block>> = Mutex::new(BTreeMap::new());

fn live() -> MutexGuard<'static, BTreeMap<u64, Block>> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Places a block in the device's address space, and takes the memory it needs.
pub fn allocate(block: Block) -> Result<u64, u32> {
    if block.size == 0 {
        return Err(INVALID_VALUE);
    }
    let span = block.span()?;
    let owner = machine::device(block.device)?;
    if block.kind.is_charged() {
        owner.charge(span)?;
    }
    let start = heap().take(span, if block.size >= 2 << 20 { 2 << 20 } else { GRAIN });
    let start = start.inspect_err(|_| {
        if block.kind.is_charged() {
            owner.refund(span);
        }
    })?;
    record(Block { start, ..block });
    Ok(start)
}

/// Address space for memory that comes and goes at one place.
pub fn reserve(size: u64) -> Result<u64, u32> {
    let span = size.checked_next_multiple_of(GRAIN).ok_or(OUT_OF_MEMORY)?;
    heap().take(span, GRAIN)
}

/// Takes memory for a block whose place is known.
pub fn allocate_at(block: Block) -> Result<(), u32> {
    machine::device(block.device)?.charge(block.span()?)?;
    record(block);
    Ok(())
}

/// Allocates memory that the host can reach too.
pub fn allocate_host(block: Block) -> Result<u64, u32> {
    if block.size == 0 {
        return Err(INVALID_VALUE);
    }
    // SAFETY: a new private mapping wherever the kernel likes.
    let address = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            usize::try_from(block.size).map_err(|_| OUT_OF_MEMORY)?,
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
        ..block
    });
    Ok(address as u64)
}

pub fn record(block: Block) {
    if block.kind.is_new() {
        LEDGER.add_bytes(Bytes::Alloc, block.size);
    }
    // First the book: once the block is known, another thread may free it.
    if let Some(family) = block.kind.family() {
        book::allocated(family, block.device, block.size);
    }
    live().insert(block.start, block);
}

pub fn is_live(start: u64) -> bool {
    live().contains_key(&start)
}

pub fn starting_at(start: u64) -> Option<Block> {
    live().get(&start).copied()
}

/// Forgets the block that starts at `start`, if its kind is one of `kinds`.
pub fn forget(start: u64, kinds: &[Kind], how: How) -> Result<Block, u32> {
    forget_if(start, how, |b| kinds.contains(&b.kind)).inspect_err(|_| book::missed(start))
}

fn forget_if(start: u64, how: How, wanted: impl Fn(&Block) -> bool) -> Result<Block, u32> {
    let mut live = live();
    let block = live.get(&start).copied().filter(wanted).ok_or(INVALID_VALUE)?;
    live.remove(&start);
    if let Some(family) = block.kind.family() {
        book::ended(family, block.device, block.size, how);
        book::freed(start);
    }
    if block.kind.is_new() {
        LEDGER.add_bytes(Bytes::Free, block.size);
    }
    Ok(block)
}

/// Frees what [`allocate`] or [`allocate_host`] gave out.
pub fn release(start: u64, kinds: &[Kind]) -> Result<(), u32> {
    give_back(forget(start, kinds, How::Freed)?)
}

/// Gives back what a forgotten block took. Another thread may be given its address at once.
fn give_back(block: Block) -> Result<(), u32> {
    let span = block.span()?;
    match block.kind {
        // SAFETY: the mapping `allocate_host` made, which nothing refers to any more.
        Kind::Managed | Kind::Pinned => unsafe {
            libc::munmap(block.start as *mut libc::c_void, block.size as usize);
            return Ok(());
        },
        Kind::Registered | Kind::Mapped => return Ok(()),
        Kind::Pool => pool::give(block.pool, span),
        kind if kind.is_charged() => machine::device(block.device)?.refund(span),
        _ => {}
    }
    if block.kind != Kind::Graph {
        heap().give(block.start, span);
    }
    Ok(())
}

/// Frees all that belongs to a context.
pub fn release_context(context: usize, how: How) {
    release_where(how, |b| b.context == context);
}

/// Frees what belongs to a device but to no context.
pub fn release_device(device: i32, how: How) {
    release_where(how, |b| {
        b.device == device && matches!(b.kind, Kind::Pool | Kind::Graph)
    });
}

fn release_where(how: How, wanted: impl Fn(&Block) -> bool) {
    let starts: Vec<u64> = live().values().filter(|b| wanted(b)).map(|b| b.start).collect();
    for start in starts {
        let _ = forget_if(start, how, &wanted).and_then(give_back);
    }
}

/// The live block that holds `address`.
pub fn find(address: u64) -> Option<Block> {
    let live = live();
    let (_, block) = live.range(..=address).next_back()?;
    (address - block.start < block.size && block.kind != Kind::External).then_some(*block)
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

/// The bytes of one kind on a device.
pub fn held(device: i32, kind: Kind) -> u64 {
    let live = live();
    live.values()
        .filter(|b| b.device == device && b.kind == kind)
        .map(|b| b.size)
        .sum()
}
