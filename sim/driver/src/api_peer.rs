//! Memory of others: of other processes, and of other interfaces than CUDA.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::error::*;
use crate::memory::{self, Block, Kind};
use crate::{book, context};

/// `CUipcMemHandle`: what it says is the simulation's own.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct IpcHandle([u64; 8]);

const IPC_MAGIC: u64 = u64::from_le_bytes(*b"GPUSIM-I");

/// What is opened, by process and address there: its address here, and how often.
static OPENED: Mutex<BTreeMap<(u64, u64), (u64, u64)>> = Mutex::new(BTreeMap::new());

unsafe fn open(place: *mut u64, handle: IpcHandle) -> Result<(), u32> {
    let context = context::current()?;
    let [magic, pid, address, size, device, ..] = handle.0;
    require(!place.is_null() && magic == IPC_MAGIC)?;
    if pid == u64::from(std::process::id()) {
        return Err(INVALID_CONTEXT);
    }
    require(std::path::Path::new(&format!("/proc/{pid}")).exists())?;
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    let known = opened
        .get_mut(&(pid, address))
        .filter(|(here, _)| memory::is_live(*here));
    let here = match known {
        Some((here, times)) => {
            *times += 1;
            *here
        }
        None => {
            let mut block = Block::of(context, size, Kind::Ipc);
            block.device = device as i32;
            let here = memory::allocate(block)?;
            opened.insert((pid, address), (here, 1));
            here
        }
    };
    // SAFETY: an out-pointer of the caller.
    unsafe { put(place, here) }
}

/// The memory goes with the last of as many closes as there were opens.
fn close(address: u64) -> Result<(), u32> {
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    let found = opened.iter_mut().find(|(_, (here, _))| *here == address);
    let Some((key, (_, times))) = found else {
        book::missed(address);
        return Err(INVALID_VALUE);
    };
    *times -= 1;
    if *times == 0 {
        let key = *key;
        opened.remove(&key);
        memory::release(address, &[Kind::Ipc])?;
    }
    Ok(())
}

/// `CUDA_EXTERNAL_MEMORY_BUFFER_DESC` without its tail.
#[repr(C)]
pub struct View {
    offset: u64,
    size: u64,
    flags: u32,
}

const OPAQUE_FILE: u32 = 1;

api! {
    fn cuIpcGetMemHandle(place: *mut IpcHandle, address: u64) {
        context::current()?;
        let block = memory::find(address).filter(|b| b.kind == Kind::Device).ok_or(INVALID_VALUE)?;
        let pid = u64::from(std::process::id());
        put(place, IpcHandle([IPC_MAGIC, pid, block.start, block.size, block.device as u64, 0, 0, 0]))?;
    }
    fn cuIpcOpenMemHandle(place: *mut u64, handle: IpcHandle, flags: u32) {
        require(flags == 1)?;
        open(place, handle)?;
    }
    fn cuIpcOpenMemHandle_v2(place: *mut u64, handle: IpcHandle, flags: u32) {
        require(flags == 1)?;
        open(place, handle)?;
    }
    fn cuIpcCloseMemHandle(address: u64) {
        context::current()?;
        close(address)?;
    }

    fn cuImportExternalMemory(place: *mut u64, import: *const u8) {
        let context = context::current()?;
        require(!place.is_null() && !import.is_null())?;
        // CUDA_EXTERNAL_MEMORY_HANDLE_DESC: kind at 0, the file at 8, the size at 24.
        let (kind, file) = (import.cast::<u32>().read(), import.add(8).cast::<i32>().read());
        let size = import.add(24).cast::<u64>().read();
        require(kind == OPAQUE_FILE && size > 0 && libc::fcntl(file, libc::F_GETFD) >= 0)?;
        put(place, memory::allocate(Block::of(context, size, Kind::External))?)?;
        // The import owns the file from now on.
        libc::close(file);
    }
    fn cuExternalMemoryGetMappedBuffer(place: *mut u64, handle: u64, view: *const View) {
        let context = context::current()?;
        require(!place.is_null() && !view.is_null())?;
        let view = &*view;
        let whole = memory::starting_at(handle).filter(|b| b.kind == Kind::External).ok_or(INVALID_HANDLE)?;
        let end = view.offset.checked_add(view.size).ok_or(INVALID_VALUE)?;
        require(view.size > 0 && view.flags == 0 && end <= whole.size)?;
        put(place, memory::allocate(Block::of(context, view.size, Kind::Buffer))?)?;
    }
    fn cuDestroyExternalMemory(handle: u64) {
        context::current()?;
        memory::release(handle, &[Kind::External]).map_err(|_| INVALID_HANDLE)?;
    }
}
