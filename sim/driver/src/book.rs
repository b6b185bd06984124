//! This process's book of memory, where one is asked for.

use std::cell::Cell;
use std::collections::HashSet;
use std::ptr::null_mut;
use std::sync::atomic::{
    AtomicBool, AtomicPtr,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Mutex, PoisonError};

use gpusim_common::book::{Book, Family, How, Wrong};

use crate::context;

/// What a function does to memory, as far as its failures are counted.
#[derive(Clone, Copy)]
pub enum Role {
    None,
    Allocates(Family),
    Frees,
    /// Others that memory goes or comes with; their failures are not counted.
    Carries,
}

static BOOK: AtomicPtr<Book> = AtomicPtr::new(null_mut());
static UNWANTED: AtomicBool = AtomicBool::new(false);
/// Addresses and handles that were freed once.
static FREED: Mutex<Option<HashSet<u64>>> = Mutex::new(None);

/// The book, begun at the first call that asks.
fn book() -> Option<&'static Book> {
    if UNWANTED.load(Relaxed) {
        return None;
    }
    let known = BOOK.load(Acquire);
    if known.is_null() {
        return begin();
    }
    // SAFETY: what `begin` leaked.
    Some(unsafe { &*known })
}

#[cold]
fn begin() -> Option<&'static Book> {
    static BEGINNING: Mutex<()> = Mutex::new(());
    let _one = BEGINNING.lock().unwrap_or_else(PoisonError::into_inner);
    let known = BOOK.load(Acquire);
    if !known.is_null() {
        // SAFETY: as above.
        return Some(unsafe { &*known });
    }
    let Some(book) = Book::from_env() else {
        UNWANTED.store(true, Relaxed);
        return None;
    };
    let book: &'static Book = Box::leak(Box::new(book));
    BOOK.store(std::ptr::from_ref(book).cast_mut(), Release);
    Some(book)
}

/// A forked child has a book of its own.
pub fn forked() {
    BOOK.store(null_mut(), Relaxed);
}

/// Writes the book's line, if there is a book.
pub fn flush() {
    let known = BOOK.load(Acquire);
    if !known.is_null() {
        // SAFETY: what `begin` leaked.
        unsafe { &*known }.write_line();
    }
}

pub fn allocated(family: Family, device: i32, bytes: u64) {
    if let Some(book) = book() {
        book.allocated(family, device, bytes);
    }
}

pub fn ended(family: Family, device: i32, bytes: u64, how: How) {
    if let Some(book) = book() {
        book.ended(family, device, bytes, how);
    }
}

/// Remembers that an address or handle was given back.
pub fn freed(key: u64) {
    if book().is_some() {
        let mut freed = FREED.lock().unwrap_or_else(PoisonError::into_inner);
        freed.get_or_insert_default().insert(key);
    }
}

thread_local! {
    /// What the call at hand has found out about its failure: which device it is about, if not
    /// that of the context, and what is wrong with what it was to free.
    static FINDINGS: Cell<(Option<i32>, Wrong)> = const { Cell::new((None, Wrong::Other)) };
}

/// The call at hand is about this device, whatever the context.
pub fn concerns(device: i32) {
    FINDINGS.set((Some(device), FINDINGS.get().1));
}

/// The call at hand was to free what is not there.
pub fn missed(key: u64) {
    if book().is_some() {
        let freed = FREED.lock().unwrap_or_else(PoisonError::into_inner);
        let known = freed.as_ref().is_some_and(|freed| freed.contains(&key));
        FINDINGS.set((None, if known { Wrong::Double } else { Wrong::Unknown }));
    }
}

#[inline]
pub fn enter(role: Role) {
    if !matches!(role, Role::None)
        && let Some(book) = book()
    {
        FINDINGS.set((None, Wrong::Other));
        book.enter();
    }
}

/// Notes how a call ended.
#[inline]
pub fn leave(role: Role, result: u32) {
    if matches!(role, Role::None) {
        return;
    }
    let Some(book) = book() else { return };
    let (device, wrong) = FINDINGS.get();
    match role {
        // Addresses belong to no device.
        Role::Allocates(Family::Reserved) if result != 0 => book.failed(Family::Reserved, -1),
        Role::Allocates(family) if result != 0 => {
            book.failed(family, device.unwrap_or_else(context::current_ordinal));
        }
        Role::Frees if result != 0 => book.free_failed(wrong),
        _ => {}
    }
    book.leave();
}

/// What each function does, by its name without `_ptsz`.
const ROLES: &[(&str, Role)] = &[
    ("cuMemAlloc_v2", Role::Allocates(Family::Device)),
    ("cuMemAllocPitch_v2", Role::Allocates(Family::Device)),
    ("cuMemAllocManaged", Role::Allocates(Family::Managed)),
    ("cuMemAllocAsync", Role::Allocates(Family::Async)),
    ("cuMemAllocFromPoolAsync", Role::Allocates(Family::Async)),
    ("cuMemHostAlloc", Role::Allocates(Family::Pinned)),
    ("cuMemAllocHost_v2", Role::Allocates(Family::Pinned)),
    ("cuMemHostRegister_v2", Role::Allocates(Family::Registered)),
    ("cuMemAddressReserve", Role::Allocates(Family::Reserved)),
    ("cuMemCreate", Role::Allocates(Family::Physical)),
    ("cuMemMap", Role::Allocates(Family::Mapped)),
    ("cuExternalMemoryGetMappedBuffer", Role::Allocates(Family::Mapped)),
    ("cuMemImportFromShareableHandle", Role::Allocates(Family::Imported)),
    ("cuArrayCreate_v2", Role::Allocates(Family::Array)),
    ("cuArray3DCreate_v2", Role::Allocates(Family::Array)),
    ("cuMipmappedArrayCreate", Role::Allocates(Family::Mipmapped)),
    ("cuIpcOpenMemHandle", Role::Allocates(Family::Ipc)),
    ("cuIpcOpenMemHandle_v2", Role::Allocates(Family::Ipc)),
    ("cuImportExternalMemory", Role::Allocates(Family::External)),
    ("cuGraphAddMemAllocNode", Role::Allocates(Family::GraphNode)),
    ("cuMemFree_v2", Role::Frees),
    ("cuMemFreeAsync", Role::Frees),
    ("cuMemFreeHost", Role::Frees),
    ("cuMemHostUnregister", Role::Frees),
    ("cuMemAddressFree", Role::Frees),
    ("cuMemRelease", Role::Frees),
    ("cuMemUnmap", Role::Frees),
    ("cuArrayDestroy", Role::Frees),
    ("cuMipmappedArrayDestroy", Role::Frees),
    ("cuIpcCloseMemHandle", Role::Frees),
    ("cuDestroyExternalMemory", Role::Frees),
    ("cuCtxDestroy", Role::Carries),
    ("cuCtxDestroy_v2", Role::Carries),
    ("cuDevicePrimaryCtxRelease", Role::Carries),
    ("cuDevicePrimaryCtxRelease_v2", Role::Carries),
    ("cuDevicePrimaryCtxReset", Role::Carries),
    ("cuDevicePrimaryCtxReset_v2", Role::Carries),
    ("cuGraphLaunch", Role::Carries),
];

/// The role of a function, found while compiling.
pub const fn role(name: &str) -> Role {
    let name = name.as_bytes();
    let mut i = 0;
    while i < ROLES.len() {
        let (known, role) = ROLES[i];
        if is_variant(name, known.as_bytes()) {
            return role;
        }
        i += 1;
    }
    Role::None
}

const fn is_variant(name: &[u8], known: &[u8]) -> bool {
    const PER_THREAD: &[u8] = b"_ptsz";
    if name.len() != known.len() && name.len() != known.len() + PER_THREAD.len() {
        return false;
    }
    let mut i = 0;
    while i < name.len() {
        let expected = if i < known.len() {
            known[i]
        } else {
            PER_THREAD[i - known.len()]
        };
        if name[i] != expected {
            return false;
        }
        i += 1;
    }
    true
}
