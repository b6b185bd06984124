//! Copies of bytes in a row.

use crate::copy::Copy;
use crate::error::*;
use crate::operation::{self, Work};
use crate::place::{Memory, Place};
use crate::{call, context, stream};

use Memory::{Array, Device, Host, Unified};

/// The function is a synchronous one, in the default stream, or an asynchronous one.
#[derive(Clone, Copy)]
pub enum In {
    Sync,
    Stream(usize),
}

impl In {
    pub fn submit(self, work: Option<Work>) -> Result<(), u32> {
        let (handle, synchronous) = match self {
            In::Sync => (0, true),
            In::Stream(handle) => (handle, false),
        };
        let stream = stream::find(handle)?;
        work.map_or(Ok(()), |work| operation::submit(work, stream, synchronous))
    }
}

fn copy(to: (Memory, u64), from: (Memory, u64), size: usize, how: In) -> Result<(), u32> {
    context::current()?;
    let (to, from) = (Place::linear(to.0, to.1), Place::linear(from.0, from.1));
    how.submit(Copy::new(to, from, [size, 1, 1])?.map(Work::Copy))
}

use In::{Stream, Sync};

/// Many copies, none of which is waited for together with the others.
unsafe fn batch(to: *const u64, from: *const u64, sizes: *const usize, count: usize, stream: usize) -> Result<(), u32> {
    require(count > 0 && !to.is_null() && !from.is_null() && !sizes.is_null())?;
    // Not the legacy default stream, as in CUDA.
    require(stream > 1 || call::default_is_per_thread())?;
    for i in 0..count {
        // SAFETY: tables of the caller, by the contract of the exports.
        let (to, from, size) = unsafe { (to.add(i).read(), from.add(i).read(), sizes.add(i).read()) };
        copy((Unified, to), (Unified, from), size, Stream(stream))?;
    }
    Ok(())
}

api! {
    fn cuMemcpy / cuMemcpy_ptds (dst: u64, src: u64, size: usize) { copy((Unified, dst), (Unified, src), size, Sync)?; }
    fn cuMemcpyAsync / cuMemcpyAsync_ptsz (dst: u64, src: u64, size: usize, stream: usize) { copy((Unified, dst), (Unified, src), size, Stream(stream))?; }
    fn cuMemcpyHtoD_v2 / cuMemcpyHtoD_v2_ptds (dst: u64, src: u64, size: usize) { copy((Device, dst), (Host, src), size, Sync)?; }
    fn cuMemcpyDtoH_v2 / cuMemcpyDtoH_v2_ptds (dst: u64, src: u64, size: usize) { copy((Host, dst), (Device, src), size, Sync)?; }
    fn cuMemcpyDtoD_v2 / cuMemcpyDtoD_v2_ptds (dst: u64, src: u64, size: usize) { copy((Device, dst), (Device, src), size, Sync)?; }
    fn cuMemcpyHtoDAsync_v2 / cuMemcpyHtoDAsync_v2_ptsz (dst: u64, src: u64, size: usize, stream: usize) { copy((Device, dst), (Host, src), size, Stream(stream))?; }
    fn cuMemcpyDtoHAsync_v2 / cuMemcpyDtoHAsync_v2_ptsz (dst: u64, src: u64, size: usize, stream: usize) { copy((Host, dst), (Device, src), size, Stream(stream))?; }
    fn cuMemcpyDtoDAsync_v2 / cuMemcpyDtoDAsync_v2_ptsz (dst: u64, src: u64, size: usize, stream: usize) { copy((Device, dst), (Device, src), size, Stream(stream))?; }
    fn cuMemcpyPeer / cuMemcpyPeer_ptds (dst: u64, _dst_context: usize, src: u64, _src_context: usize, size: usize) { copy((Device, dst), (Device, src), size, Sync)?; }
    fn cuMemcpyPeerAsync / cuMemcpyPeerAsync_ptsz (dst: u64, _dst_context: usize, src: u64, _src_context: usize, size: usize, stream: usize) { copy((Device, dst), (Device, src), size, Stream(stream))?; }

    fn cuMemcpyDtoA_v2 / cuMemcpyDtoA_v2_ptds (dst: u64, offset: usize, src: u64, size: usize) { copy((Array, dst + offset as u64), (Device, src), size, Sync)?; }
    fn cuMemcpyAtoD_v2 / cuMemcpyAtoD_v2_ptds (dst: u64, src: u64, offset: usize, size: usize) { copy((Device, dst), (Array, src + offset as u64), size, Sync)?; }
    fn cuMemcpyHtoA_v2 / cuMemcpyHtoA_v2_ptds (dst: u64, offset: usize, src: u64, size: usize) { copy((Array, dst + offset as u64), (Host, src), size, Sync)?; }
    fn cuMemcpyAtoH_v2 / cuMemcpyAtoH_v2_ptds (dst: u64, src: u64, offset: usize, size: usize) { copy((Host, dst), (Array, src + offset as u64), size, Sync)?; }
    fn cuMemcpyAtoA_v2 / cuMemcpyAtoA_v2_ptds (dst: u64, to: usize, src: u64, from: usize, size: usize) { copy((Array, dst + to as u64), (Array, src + from as u64), size, Sync)?; }
    fn cuMemcpyHtoAAsync_v2 / cuMemcpyHtoAAsync_v2_ptsz (dst: u64, offset: usize, src: u64, size: usize, stream: usize) { copy((Array, dst + offset as u64), (Host, src), size, Stream(stream))?; }
    fn cuMemcpyAtoHAsync_v2 / cuMemcpyAtoHAsync_v2_ptsz (dst: u64, src: u64, offset: usize, size: usize, stream: usize) { copy((Host, dst), (Array, src + offset as u64), size, Stream(stream))?; }

    fn cuMemcpyBatchAsync / cuMemcpyBatchAsync_ptsz (to: *const u64, from: *const u64, sizes: *const usize, count: usize, _attributes: usize, _firsts: usize, _attribute_count: usize, failed: *mut usize, stream: usize) {
        put_if(failed, usize::MAX);
        batch(to, from, sizes, count, stream)?;
    }
    fn cuMemcpyBatchAsync_v2 / cuMemcpyBatchAsync_v2_ptsz (to: *const u64, from: *const u64, sizes: *const usize, count: usize, _attributes: usize, _firsts: usize, _attribute_count: usize, stream: usize) {
        batch(to, from, sizes, count, stream)?;
    }
}
