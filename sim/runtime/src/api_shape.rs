//! Copies of rows and planes, and many at once.

use crate::driver::check;
use crate::entry::{api, export, own_name};
use crate::shape::{Parms, PeerParms, Rows, flat, given, plan, rows};

api! {
    call d fn cudaMemcpy2D / cudaMemcpy2D_ptds (dst: u64, dpitch: usize, src: u64, spitch: usize, width: usize, height: usize, kind: u32) {
        let copy = flat((dst, dpitch), (src, spitch), width, height, kind)?;
        check((d.cuMemcpy2DUnaligned_v2)(plan(&copy)))?;
    }
    call d fn cudaMemcpy2DAsync / cudaMemcpy2DAsync_ptsz (dst: u64, dpitch: usize, src: u64, spitch: usize, width: usize, height: usize, kind: u32, stream: usize) {
        let copy = flat((dst, dpitch), (src, spitch), width, height, kind)?;
        check((d.cuMemcpy2DAsync_v2)(plan(&copy), stream))?;
    }
    call d fn cudaMemcpy2DToArray / cudaMemcpy2DToArray_ptds (dst: u64, x: usize, y: usize, src: u64, spitch: usize, width: usize, height: usize, kind: u32) {
        let copy = rows(Rows::Array(dst, x, y), Rows::Pointer(src, spitch), width, height, kind)?;
        check((d.cuMemcpy3D_v2)(plan(&copy)))?;
    }
    call d fn cudaMemcpy2DToArrayAsync / cudaMemcpy2DToArrayAsync_ptsz (dst: u64, x: usize, y: usize, src: u64, spitch: usize, width: usize, height: usize, kind: u32, stream: usize) {
        let copy = rows(Rows::Array(dst, x, y), Rows::Pointer(src, spitch), width, height, kind)?;
        check((d.cuMemcpy3DAsync_v2)(plan(&copy), stream))?;
    }
    call d fn cudaMemcpy2DFromArray / cudaMemcpy2DFromArray_ptds (dst: u64, dpitch: usize, src: u64, x: usize, y: usize, width: usize, height: usize, kind: u32) {
        let copy = rows(Rows::Pointer(dst, dpitch), Rows::Array(src, x, y), width, height, kind)?;
        check((d.cuMemcpy3D_v2)(plan(&copy)))?;
    }
    call d fn cudaMemcpy2DFromArrayAsync / cudaMemcpy2DFromArrayAsync_ptsz (dst: u64, dpitch: usize, src: u64, x: usize, y: usize, width: usize, height: usize, kind: u32, stream: usize) {
        let copy = rows(Rows::Pointer(dst, dpitch), Rows::Array(src, x, y), width, height, kind)?;
        check((d.cuMemcpy3DAsync_v2)(plan(&copy), stream))?;
    }
    call d fn cudaMemcpy2DArrayToArray / cudaMemcpy2DArrayToArray_ptds (dst: u64, to_x: usize, to_y: usize, src: u64, x: usize, y: usize, width: usize, height: usize, kind: u32) {
        let copy = rows(Rows::Array(dst, to_x, to_y), Rows::Array(src, x, y), width, height, kind)?;
        check((d.cuMemcpy3D_v2)(plan(&copy)))?;
    }
    call d fn cudaMemcpy3D / cudaMemcpy3D_ptds (parms: *const Parms) {
        let copy = given(parms)?.solid(d)?;
        check((d.cuMemcpy3D_v2)(plan(&copy)))?;
    }
    call d fn cudaMemcpy3DAsync / cudaMemcpy3DAsync_ptsz (parms: *const Parms, stream: usize) {
        let copy = given(parms)?.solid(d)?;
        check((d.cuMemcpy3DAsync_v2)(plan(&copy), stream))?;
    }
    call d fn cudaMemcpy3DPeer / cudaMemcpy3DPeer_ptds (parms: *const PeerParms) {
        let copy = given(parms)?.solid(d)?;
        check((d.cuMemcpy3DPeer)(plan(&copy)))?;
    }
    call d fn cudaMemcpy3DPeerAsync / cudaMemcpy3DPeerAsync_ptsz (parms: *const PeerParms, stream: usize) {
        let copy = given(parms)?.solid(d)?;
        check((d.cuMemcpy3DPeerAsync)(plan(&copy), stream))?;
    }
    call d fn cudaMemcpyBatchAsync / cudaMemcpyBatchAsync_ptsz (to: usize, from: usize, sizes: usize, count: usize, attributes: usize, firsts: usize, attribute_count: usize, stream: usize) {
        check((d.cuMemcpyBatchAsync_v2)(to, from, sizes, count, attributes, firsts, attribute_count, stream))?;
    }
    call d fn cudaMemcpy3DBatchAsync / cudaMemcpy3DBatchAsync_ptsz (count: usize, items: usize, flags: u64, stream: usize) {
        check((d.cuMemcpy3DBatchAsync_v2)(count, items, flags, stream))?;
    }
    call d fn cudaMemPrefetchBatchAsync / cudaMemPrefetchBatchAsync_ptsz (addresses: usize, sizes: usize, count: usize, locations: usize, firsts: usize, location_count: usize, flags: u64, stream: usize) {
        check((d.cuMemPrefetchBatchAsync)(addresses, sizes, count, locations, firsts, location_count, flags, stream))?;
    }
}
