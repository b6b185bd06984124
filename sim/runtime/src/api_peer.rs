//! Memory of other processes and of other interfaces.

use std::ffi::c_void;

use crate::driver::{IpcHandle, check};
use crate::entry::{api, export, own_name};

api! {
    call d fn cudaIpcGetMemHandle(place: *mut IpcHandle, address: u64) { check((d.cuIpcGetMemHandle)(place, address))?; }
    call d fn cudaIpcOpenMemHandle(place: *mut u64, handle: IpcHandle, flags: u32) { check((d.cuIpcOpenMemHandle_v2)(place, handle, flags))?; }
    call d fn cudaIpcCloseMemHandle(address: u64) { check((d.cuIpcCloseMemHandle)(address))?; }
    call d fn cudaImportExternalMemory(place: *mut u64, import: *const c_void) { check((d.cuImportExternalMemory)(place, import))?; }
    call d fn cudaExternalMemoryGetMappedBuffer(place: *mut u64, external: u64, view: *const c_void) { check((d.cuExternalMemoryGetMappedBuffer)(place, external, view))?; }
    call d fn cudaDestroyExternalMemory(external: u64) { check((d.cuDestroyExternalMemory)(external))?; }
}
