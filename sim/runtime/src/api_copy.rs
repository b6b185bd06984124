//! Copies of bytes in a row: the runtime's one function with a direction, the driver's one per
//! way.

use crate::driver::{Driver, check, primary};
use crate::entry::{api, export, own_name};
use crate::last_error::{INVALID_MEMCPY_DIRECTION, INVALID_VALUE};
use crate::register;
use crate::shape::{DEFAULT, DEVICE_TO_DEVICE, DEVICE_TO_HOST, HOST_TO_DEVICE, HOST_TO_HOST};

unsafe fn copy(d: &Driver, dst: u64, src: u64, size: usize, kind: u32) -> Result<(), u32> {
    // SAFETY: the caller's addresses, under the contract of `cudaMemcpy`.
    check(unsafe {
        match kind {
            _ if size == 0 => 0,
            HOST_TO_DEVICE => (d.cuMemcpyHtoD_v2)(dst, src, size),
            DEVICE_TO_HOST => (d.cuMemcpyDtoH_v2)(dst, src, size),
            DEVICE_TO_DEVICE => (d.cuMemcpyDtoD_v2)(dst, src, size),
            HOST_TO_HOST | DEFAULT => (d.cuMemcpy)(dst, src, size),
            _ => INVALID_MEMCPY_DIRECTION,
        }
    })
}

unsafe fn copy_async(d: &Driver, dst: u64, src: u64, size: usize, kind: u32, stream: usize) -> Result<(), u32> {
    // SAFETY: the caller's addresses, under the contract of `cudaMemcpyAsync`.
    check(unsafe {
        match kind {
            _ if size == 0 => 0,
            HOST_TO_DEVICE => (d.cuMemcpyHtoDAsync_v2)(dst, src, size, stream),
            DEVICE_TO_HOST => (d.cuMemcpyDtoHAsync_v2)(dst, src, size, stream),
            DEVICE_TO_DEVICE => (d.cuMemcpyDtoDAsync_v2)(dst, src, size, stream),
            HOST_TO_HOST | DEFAULT => (d.cuMemcpyAsync)(dst, src, size, stream),
            _ => INVALID_MEMCPY_DIRECTION,
        }
    })
}

fn inside(d: &Driver, symbol: usize, offset: usize, count: usize) -> Result<u64, u32> {
    let (address, size) = register::address(d, symbol)?;
    match offset.checked_add(count) {
        Some(end) if end <= size => Ok(address + offset as u64),
        _ => Err(INVALID_VALUE),
    }
}

api! {
    call d fn cudaMemcpy / cudaMemcpy_ptds (dst: u64, src: u64, size: usize, kind: u32) { copy(d, dst, src, size, kind)?; }
    call d fn cudaMemcpyAsync / cudaMemcpyAsync_ptsz (dst: u64, src: u64, size: usize, kind: u32, stream: usize) { copy_async(d, dst, src, size, kind, stream)?; }
    call d fn cudaMemcpyPeer(dst: u64, to: i32, src: u64, from: i32, size: usize) {
        check((d.cuMemcpyPeer)(dst, primary(d, to)?, src, primary(d, from)?, size))?;
    }
    call d fn cudaMemcpyPeerAsync(dst: u64, to: i32, src: u64, from: i32, size: usize, stream: usize) {
        check((d.cuMemcpyPeerAsync)(dst, primary(d, to)?, src, primary(d, from)?, size, stream))?;
    }
    call d fn cudaMemcpyToSymbol / cudaMemcpyToSymbol_ptds (symbol: usize, src: u64, size: usize, offset: usize, kind: u32) {
        copy(d, inside(d, symbol, offset, size)?, src, size, kind)?;
    }
    call d fn cudaMemcpyFromSymbol / cudaMemcpyFromSymbol_ptds (dst: u64, symbol: usize, size: usize, offset: usize, kind: u32) {
        copy(d, dst, inside(d, symbol, offset, size)?, size, kind)?;
    }
    call d fn cudaMemcpyToSymbolAsync / cudaMemcpyToSymbolAsync_ptsz (symbol: usize, src: u64, size: usize, offset: usize, kind: u32, stream: usize) {
        copy_async(d, inside(d, symbol, offset, size)?, src, size, kind, stream)?;
    }
    call d fn cudaMemcpyFromSymbolAsync / cudaMemcpyFromSymbolAsync_ptsz (dst: u64, symbol: usize, size: usize, offset: usize, kind: u32, stream: usize) {
        copy_async(d, dst, inside(d, symbol, offset, size)?, size, kind, stream)?;
    }
}
