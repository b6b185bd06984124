//! Copies and fills: the runtime's one function with a direction, the driver's one per way.

use std::ffi::c_void;

use crate::driver::{Driver, check};
use crate::entry::{api, own_name};
use crate::last_error::{INVALID_MEMCPY_DIRECTION, INVALID_VALUE};
use crate::register;

const HOST_TO_HOST: u32 = 0;
const HOST_TO_DEVICE: u32 = 1;
const DEVICE_TO_HOST: u32 = 2;
const DEVICE_TO_DEVICE: u32 = 3;
const DEFAULT: u32 = 4;

/// `CUDA_MEMCPY2D`.
#[repr(C)]
struct Copy2D {
    src: Side,
    dst: Side,
    width: usize,
    height: usize,
}

#[repr(C)]
struct Side {
    x: usize,
    y: usize,
    memory: u32,
    host: u64,
    device: u64,
    array: u64,
    pitch: usize,
}

fn side(address: u64, pitch: usize, on_host: bool, unified: bool) -> Side {
    let memory = if unified {
        4
    } else if on_host {
        1
    } else {
        2
    };
    Side {
        x: 0,
        y: 0,
        memory,
        host: address,
        device: address,
        array: 0,
        pitch,
    }
}

fn copy_2d(
    dst: u64,
    dpitch: usize,
    src: u64,
    spitch: usize,
    width: usize,
    height: usize,
    kind: u32,
) -> Result<Copy2D, u32> {
    if kind > DEFAULT {
        return Err(INVALID_MEMCPY_DIRECTION);
    }
    if width > dpitch || width > spitch {
        return Err(12);
    }
    let from_host = matches!(kind, HOST_TO_HOST | HOST_TO_DEVICE);
    let to_host = matches!(kind, HOST_TO_HOST | DEVICE_TO_HOST);
    let unified = kind == DEFAULT;
    Ok(Copy2D {
        src: side(src, spitch, from_host, unified),
        dst: side(dst, dpitch, to_host, unified),
        width,
        height,
    })
}

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

fn plan(copy: &Copy2D) -> *const c_void {
    (&raw const *copy).cast()
}

api! {
    call d fn cudaMemcpy(dst: u64, src: u64, size: usize, kind: u32) { copy(d, dst, src, size, kind)?; }
    call d fn cudaMemcpyAsync(dst: u64, src: u64, size: usize, kind: u32, stream: usize) { copy_async(d, dst, src, size, kind, stream)?; }
    call d fn cudaMemcpyPeer(dst: u64, _dst_device: i32, src: u64, _src_device: i32, size: usize) { check((d.cuMemcpyPeer)(dst, 0, src, 0, size))?; }
    call d fn cudaMemcpyPeerAsync(dst: u64, _dst_device: i32, src: u64, _src_device: i32, size: usize, stream: usize) { check((d.cuMemcpyPeerAsync)(dst, 0, src, 0, size, stream))?; }
    call d fn cudaMemcpyToSymbol(symbol: usize, src: u64, size: usize, offset: usize, kind: u32) {
        copy(d, inside(d, symbol, offset, size)?, src, size, kind)?;
    }
    call d fn cudaMemcpyFromSymbol(dst: u64, symbol: usize, size: usize, offset: usize, kind: u32) {
        copy(d, dst, inside(d, symbol, offset, size)?, size, kind)?;
    }
    call d fn cudaMemcpy2D(dst: u64, dpitch: usize, src: u64, spitch: usize, width: usize, height: usize, kind: u32) {
        let copy = copy_2d(dst, dpitch, src, spitch, width, height, kind)?;
        check((d.cuMemcpy2DUnaligned_v2)(plan(&copy)))?;
    }
    call d fn cudaMemcpy2DAsync(dst: u64, dpitch: usize, src: u64, spitch: usize, width: usize, height: usize, kind: u32, stream: usize) {
        let copy = copy_2d(dst, dpitch, src, spitch, width, height, kind)?;
        check((d.cuMemcpy2DAsync_v2)(plan(&copy), stream))?;
    }
    call d fn cudaMemset(dst: u64, value: i32, count: usize) { check((d.cuMemsetD8_v2)(dst, value as u8, count))?; }
    call d fn cudaMemsetAsync(dst: u64, value: i32, count: usize, stream: usize) { check((d.cuMemsetD8Async)(dst, value as u8, count, stream))?; }
    call d fn cudaMemset2D(dst: u64, pitch: usize, value: i32, width: usize, height: usize) { check((d.cuMemsetD2D8_v2)(dst, pitch, value as u8, width, height))?; }
    call d fn cudaMemset2DAsync(dst: u64, pitch: usize, value: i32, width: usize, height: usize, stream: usize) { check((d.cuMemsetD2D8Async)(dst, pitch, value as u8, width, height, stream))?; }
}
