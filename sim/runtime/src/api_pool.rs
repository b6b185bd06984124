//! Stream-ordered allocation and memory pools.

use crate::driver::check;
use crate::entry::{api, export, own_name};

api! {
    call d fn cudaMallocAsync / cudaMallocAsync_ptsz (place: *mut u64, size: usize, stream: usize) { check((d.cuMemAllocAsync)(place, size, stream))?; }
    call d fn cudaMallocFromPoolAsync / cudaMallocFromPoolAsync_ptsz (place: *mut u64, size: usize, pool: usize, stream: usize) { check((d.cuMemAllocFromPoolAsync)(place, size, pool, stream))?; }
    call d fn cudaFreeAsync / cudaFreeAsync_ptsz (address: u64, stream: usize) { check((d.cuMemFreeAsync)(address, stream))?; }
    call d fn cudaDeviceGetDefaultMemPool(pool: *mut usize, device: i32) { check((d.cuDeviceGetDefaultMemPool)(pool, device))?; }
    call d fn cudaDeviceGetMemPool(pool: *mut usize, device: i32) { check((d.cuDeviceGetMemPool)(pool, device))?; }
    call d fn cudaDeviceSetMemPool(device: i32, pool: usize) { check((d.cuDeviceSetMemPool)(device, pool))?; }
    call d fn cudaMemPoolCreate(pool: *mut usize, props: usize) { check((d.cuMemPoolCreate)(pool, props))?; }
    call d fn cudaMemPoolDestroy(pool: usize) { check((d.cuMemPoolDestroy)(pool))?; }
    call d fn cudaMemPoolTrimTo(pool: usize, keep: usize) { check((d.cuMemPoolTrimTo)(pool, keep))?; }
    call d fn cudaMemPoolGetAttribute(pool: usize, which: i32, value: *mut u64) { check((d.cuMemPoolGetAttribute)(pool, which, value))?; }
    call d fn cudaMemPoolSetAttribute(pool: usize, which: i32, value: *const u64) { check((d.cuMemPoolSetAttribute)(pool, which, value))?; }
}
