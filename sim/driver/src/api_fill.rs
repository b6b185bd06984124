//! Fills.

use crate::api_copy::In::{self, Stream, Sync};
use crate::context;
use crate::fill::Fill;
use crate::operation::Work;

fn fill(
    dst: u64,
    pitch: usize,
    (value, element): (u32, usize),
    width: usize,
    height: usize,
    how: In,
) -> Result<(), u32> {
    context::current()?;
    how.submit(Fill::new(dst, pitch, value, element, width, height)?.map(Work::Fill))
}

api! {
    fn cuMemsetD8_v2 / cuMemsetD8_v2_ptds (dst: u64, value: u8, count: usize) { fill(dst, 0, (value.into(), 1), count, 1, Sync)?; }
    fn cuMemsetD16_v2 / cuMemsetD16_v2_ptds (dst: u64, value: u16, count: usize) { fill(dst, 0, (value.into(), 2), count, 1, Sync)?; }
    fn cuMemsetD32_v2 / cuMemsetD32_v2_ptds (dst: u64, value: u32, count: usize) { fill(dst, 0, (value, 4), count, 1, Sync)?; }
    fn cuMemsetD8Async / cuMemsetD8Async_ptsz (dst: u64, value: u8, count: usize, stream: usize) { fill(dst, 0, (value.into(), 1), count, 1, Stream(stream))?; }
    fn cuMemsetD16Async / cuMemsetD16Async_ptsz (dst: u64, value: u16, count: usize, stream: usize) { fill(dst, 0, (value.into(), 2), count, 1, Stream(stream))?; }
    fn cuMemsetD32Async / cuMemsetD32Async_ptsz (dst: u64, value: u32, count: usize, stream: usize) { fill(dst, 0, (value, 4), count, 1, Stream(stream))?; }
    fn cuMemsetD2D8_v2 / cuMemsetD2D8_v2_ptds (dst: u64, pitch: usize, value: u8, width: usize, height: usize) { fill(dst, pitch, (value.into(), 1), width, height, Sync)?; }
    fn cuMemsetD2D16_v2 / cuMemsetD2D16_v2_ptds (dst: u64, pitch: usize, value: u16, width: usize, height: usize) { fill(dst, pitch, (value.into(), 2), width, height, Sync)?; }
    fn cuMemsetD2D32_v2 / cuMemsetD2D32_v2_ptds (dst: u64, pitch: usize, value: u32, width: usize, height: usize) { fill(dst, pitch, (value, 4), width, height, Sync)?; }
    fn cuMemsetD2D8Async / cuMemsetD2D8Async_ptsz (dst: u64, pitch: usize, value: u8, width: usize, height: usize, stream: usize) { fill(dst, pitch, (value.into(), 1), width, height, Stream(stream))?; }
    fn cuMemsetD2D16Async / cuMemsetD2D16Async_ptsz (dst: u64, pitch: usize, value: u16, width: usize, height: usize, stream: usize) { fill(dst, pitch, (value.into(), 2), width, height, Stream(stream))?; }
    fn cuMemsetD2D32Async / cuMemsetD2D32Async_ptsz (dst: u64, pitch: usize, value: u32, width: usize, height: usize, stream: usize) { fill(dst, pitch, (value, 4), width, height, Stream(stream))?; }
}
