//! Copies and fills.

use crate::copy::{Way, copy, fill, way};
use crate::error::*;

/// The parts of `CUDA_MEMCPY2D` that linear memory needs.
#[repr(C)]
pub struct Copy2D {
    src_x: usize,
    src_y: usize,
    src_type: u32,
    src_host: u64,
    src_device: u64,
    src_array: u64,
    src_pitch: usize,
    dst_x: usize,
    dst_y: usize,
    dst_type: u32,
    dst_host: u64,
    dst_device: u64,
    dst_array: u64,
    dst_pitch: usize,
    width: usize,
    height: usize,
}

const HOST: u32 = 1;
const ARRAY: u32 = 3;
const UNIFIED: u32 = 4;

unsafe fn copy_2d(plan: *const Copy2D, stream: usize, wait: bool) -> Result<(), u32> {
    require(!plan.is_null())?;
    // SAFETY: not null, so a whole structure by the contract of the exports.
    let p = unsafe { &*plan };
    if p.src_type == ARRAY || p.dst_type == ARRAY {
        return Err(NOT_SUPPORTED);
    }
    let src = if p.src_type == HOST { p.src_host } else { p.src_device };
    let dst = if p.dst_type == HOST { p.dst_host } else { p.dst_device };
    let way = match (p.src_type, p.dst_type) {
        (UNIFIED, _) | (_, UNIFIED) => way(dst, src),
        (HOST, HOST) => Way::HtoH,
        (HOST, _) => Way::HtoD,
        (_, HOST) => Way::DtoH,
        _ => Way::DtoD,
    };
    for row in 0..p.height {
        let src = src + ((p.src_y + row) * p.src_pitch + p.src_x) as u64;
        let dst = dst + ((p.dst_y + row) * p.dst_pitch + p.dst_x) as u64;
        let last = wait && row + 1 == p.height;
        // SAFETY: the structure describes memory of the caller.
        unsafe { copy(way, dst, src, p.width as u64, stream, last)? };
    }
    Ok(())
}

fn fill_2d(
    dst: u64,
    pitch: usize,
    pattern: &[u8],
    width: usize,
    height: usize,
    stream: usize,
    wait: bool,
) -> Result<(), u32> {
    let row_bytes = width * pattern.len();
    for row in 0..height {
        let last = wait && row + 1 == height;
        fill(dst + (row * pitch) as u64, pattern, row_bytes as u64, stream, last)?;
    }
    Ok(())
}

api! {
    fn cuMemcpyHtoD_v2(dst: u64, src: u64, size: usize) { copy(Way::HtoD, dst, src, size as u64, 0, true)?; }
    fn cuMemcpyDtoH_v2(dst: u64, src: u64, size: usize) { copy(Way::DtoH, dst, src, size as u64, 0, true)?; }
    fn cuMemcpyDtoD_v2(dst: u64, src: u64, size: usize) { copy(Way::DtoD, dst, src, size as u64, 0, false)?; }
    fn cuMemcpy(dst: u64, src: u64, size: usize) { copy(way(dst, src), dst, src, size as u64, 0, true)?; }
    fn cuMemcpyHtoDAsync_v2(dst: u64, src: u64, size: usize, stream: usize) { copy(Way::HtoD, dst, src, size as u64, stream, false)?; }
    fn cuMemcpyDtoHAsync_v2(dst: u64, src: u64, size: usize, stream: usize) { copy(Way::DtoH, dst, src, size as u64, stream, false)?; }
    fn cuMemcpyDtoDAsync_v2(dst: u64, src: u64, size: usize, stream: usize) { copy(Way::DtoD, dst, src, size as u64, stream, false)?; }
    fn cuMemcpyAsync(dst: u64, src: u64, size: usize, stream: usize) { copy(way(dst, src), dst, src, size as u64, stream, false)?; }
    fn cuMemcpyPeer(dst: u64, _dst_context: usize, src: u64, _src_context: usize, size: usize) { copy(Way::DtoD, dst, src, size as u64, 0, true)?; }
    fn cuMemcpyPeerAsync(dst: u64, _dst_context: usize, src: u64, _src_context: usize, size: usize, stream: usize) { copy(Way::DtoD, dst, src, size as u64, stream, false)?; }
    fn cuMemcpy2D_v2(plan: *const Copy2D) { copy_2d(plan, 0, true)?; }
    fn cuMemcpy2DUnaligned_v2(plan: *const Copy2D) { copy_2d(plan, 0, true)?; }
    fn cuMemcpy2DAsync_v2(plan: *const Copy2D, stream: usize) { copy_2d(plan, stream, false)?; }

    fn cuMemsetD8_v2(dst: u64, value: u8, count: usize) { fill(dst, &[value], count as u64, 0, true)?; }
    fn cuMemsetD16_v2(dst: u64, value: u16, count: usize) { fill(dst, &value.to_ne_bytes(), count as u64 * 2, 0, true)?; }
    fn cuMemsetD32_v2(dst: u64, value: u32, count: usize) { fill(dst, &value.to_ne_bytes(), count as u64 * 4, 0, true)?; }
    fn cuMemsetD8Async(dst: u64, value: u8, count: usize, stream: usize) { fill(dst, &[value], count as u64, stream, false)?; }
    fn cuMemsetD16Async(dst: u64, value: u16, count: usize, stream: usize) { fill(dst, &value.to_ne_bytes(), count as u64 * 2, stream, false)?; }
    fn cuMemsetD32Async(dst: u64, value: u32, count: usize, stream: usize) { fill(dst, &value.to_ne_bytes(), count as u64 * 4, stream, false)?; }
    fn cuMemsetD2D8_v2(dst: u64, pitch: usize, value: u8, width: usize, height: usize) { fill_2d(dst, pitch, &[value], width, height, 0, true)?; }
    fn cuMemsetD2D8Async(dst: u64, pitch: usize, value: u8, width: usize, height: usize, stream: usize) { fill_2d(dst, pitch, &[value], width, height, stream, false)?; }
}
