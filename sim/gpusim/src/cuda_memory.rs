//! The calls the memory programs make beyond those of the scenarios.

use crate::calls::{self, Extent, IpcHandle};
use crate::cuda::{done, made, ok};

/// One channel of 32 bits each, as floats: four bytes an element.
const FLOATS: [i32; 5] = [32, 0, 0, 0, 2];

/// The address and the size that a pitched allocation of so many bytes and rows really has.
pub fn malloc_pitch(width: usize, height: usize) -> Result<(u64, u64), u32> {
    let (mut address, mut pitch) = (0, 0);
    // SAFETY: out-pointers to locals.
    let code = unsafe { calls::cudaMallocPitch(&mut address, &mut pitch, width, height) };
    ok(code, (address, (pitch * height) as u64))
}
pub fn host_alloc(size: usize) -> Result<u64, u32> {
    made!(cudaHostAlloc(size, 1))
}
pub fn malloc_from_pool(size: usize, pool: u64, stream: u64) -> Result<u64, u32> {
    made!(cudaMallocFromPoolAsync(size, pool, stream))
}
/// Four bytes an element.
pub fn malloc_array(width: usize, height: usize) -> Result<u64, u32> {
    made!(cudaMallocArray(&FLOATS, width, height, 0))
}
pub fn malloc_volume(width: usize, height: usize, depth: usize) -> Result<u64, u32> {
    made!(cudaMalloc3DArray(&FLOATS, Extent(width, height, depth), 0))
}
pub fn malloc_levels(width: usize, height: usize, levels: u32) -> Result<u64, u32> {
    made!(cudaMallocMipmappedArray(&FLOATS, Extent(width, height, 0), levels, 0))
}
pub fn free_array(array: u64) -> Result<(), u32> {
    done!(cudaFreeArray(array))
}
pub fn free_levels(array: u64) -> Result<(), u32> {
    done!(cudaFreeMipmappedArray(array))
}
pub fn register(address: u64, size: usize) -> Result<(), u32> {
    done!(cudaHostRegister(address, size, 0))
}
pub fn ipc_export(address: u64) -> Result<IpcHandle, u32> {
    let mut handle = IpcHandle::default();
    // SAFETY: an out-pointer to a local.
    ok(unsafe { calls::cudaIpcGetMemHandle(&mut handle, address) }, handle)
}
pub fn ipc_open(handle: IpcHandle) -> Result<u64, u32> {
    made!(cudaIpcOpenMemHandle(handle, 1))
}
pub fn ipc_close(address: u64) -> Result<(), u32> {
    done!(cudaIpcCloseMemHandle(address))
}

/// Imports what a file stands for; the file is then the runtime's.
pub fn import_external(file: i32, size: u64) -> Result<u64, u32> {
    const OPAQUE_FILE: u64 = 1;
    let mut import = [0u64; 13];
    (import[0], import[1], import[3]) = (OPAQUE_FILE, file as u64, size);
    made!(cudaImportExternalMemory(&import))
}
pub fn map_external(external: u64, offset: u64, size: u64) -> Result<u64, u32> {
    let mut view = [0u64; 11];
    (view[0], view[1]) = (offset, size);
    made!(cudaExternalMemoryGetMappedBuffer(external, &view))
}
pub fn destroy_external(external: u64) -> Result<(), u32> {
    done!(cudaDestroyExternalMemory(external))
}

pub fn default_pool(device: i32) -> Result<u64, u32> {
    made!(cudaDeviceGetDefaultMemPool(device))
}
pub fn pool_create(device: i32) -> Result<u64, u32> {
    let mut properties = [0; 22];
    (properties[0], properties[2], properties[3]) = (1, 1, device);
    made!(cudaMemPoolCreate(&properties))
}
pub fn pool_destroy(pool: u64) -> Result<(), u32> {
    done!(cudaMemPoolDestroy(pool))
}
pub fn pool_trim(pool: u64, keep: usize) -> Result<(), u32> {
    done!(cudaMemPoolTrimTo(pool, keep))
}
pub fn pool_attribute(pool: u64, which: i32) -> Result<u64, u32> {
    let mut value = 0;
    // SAFETY: an out-pointer to a local.
    ok(
        unsafe { calls::cudaMemPoolGetAttribute(pool, which, &mut value) },
        value,
    )
}
pub fn pool_keep(pool: u64, bytes: u64) -> Result<(), u32> {
    let mut value = bytes;
    done!(cudaMemPoolSetAttribute(pool, 4, &mut value))
}

pub fn graph() -> Result<u64, u32> {
    made!(cudaGraphCreate(0))
}
/// Adds an allocation node; the address it will always have.
pub fn graph_alloc(graph: u64, device: i32, size: u64) -> Result<u64, u32> {
    // cudaMemAllocNodeParams: pinned, no handles; a device, its number; the size and the address.
    let mut params = [0u64; 15];
    (params[0], params[1], params[13]) = (1, 1 | (device as u64) << 32, size);
    let mut node = 0;
    // SAFETY: out-pointers to locals.
    let code = unsafe { calls::cudaGraphAddMemAllocNode(&mut node, graph, 0, 0, &mut params) };
    ok(code, params[14])
}
pub fn graph_free(graph: u64, address: u64) -> Result<(), u32> {
    let mut node = 0;
    // SAFETY: an out-pointer to a local.
    ok(
        unsafe { calls::cudaGraphAddMemFreeNode(&mut node, graph, 0, 0, address) },
        (),
    )
}
pub fn device_reset() -> Result<(), u32> {
    done!(cudaDeviceReset())
}
