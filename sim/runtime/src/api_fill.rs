//! Fills.

use crate::api_memory::{Extent, PitchedPointer};
use crate::driver::{Driver, check};
use crate::entry::{api, export, own_name};

/// A fill of planes: of all rows at once where nothing lies between the planes.
unsafe fn planes(
    d: &Driver,
    to: &PitchedPointer,
    extent: Extent,
    fill: impl Fn(&Driver, u64, usize) -> u32,
) -> Result<(), u32> {
    if to.height == extent.height || extent.depth == 1 {
        return check(fill(d, to.address, extent.height * extent.depth));
    }
    for plane in 0..extent.depth {
        let address = to.address + (plane * to.height * to.pitch) as u64;
        check(fill(d, address, extent.height))?;
    }
    Ok(())
}

api! {
    call d fn cudaMemset / cudaMemset_ptds (dst: u64, value: i32, count: usize) { check((d.cuMemsetD8_v2)(dst, value as u8, count))?; }
    call d fn cudaMemsetAsync / cudaMemsetAsync_ptsz (dst: u64, value: i32, count: usize, stream: usize) { check((d.cuMemsetD8Async)(dst, value as u8, count, stream))?; }
    call d fn cudaMemset2D / cudaMemset2D_ptds (dst: u64, pitch: usize, value: i32, width: usize, height: usize) { check((d.cuMemsetD2D8_v2)(dst, pitch, value as u8, width, height))?; }
    call d fn cudaMemset2DAsync / cudaMemset2DAsync_ptsz (dst: u64, pitch: usize, value: i32, width: usize, height: usize, stream: usize) { check((d.cuMemsetD2D8Async)(dst, pitch, value as u8, width, height, stream))?; }
    call d fn cudaMemset3D / cudaMemset3D_ptds (to: PitchedPointer, value: i32, extent: Extent) {
        planes(d, &to, extent, |d, address, rows| (d.cuMemsetD2D8_v2)(address, to.pitch, value as u8, extent.width, rows))?;
    }
    call d fn cudaMemset3DAsync / cudaMemset3DAsync_ptsz (to: PitchedPointer, value: i32, extent: Extent, stream: usize) {
        planes(d, &to, extent, |d, address, rows| (d.cuMemsetD2D8Async)(address, to.pitch, value as u8, extent.width, rows, stream))?;
    }
}
