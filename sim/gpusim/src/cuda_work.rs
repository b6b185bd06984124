//! The calls that the programs of work make beyond those of the others.

use crate::calls::{self, Dim3, Extent, KernelNode, Pitched};
use crate::cuda::{done, made, ok};

unsafe extern "C" {
    fn gpusim_stub(kernel: u32) -> u64;
}

fn kernel_node(kernel: u32) -> KernelNode {
    KernelNode {
        // SAFETY: a number of a kernel, of which there are eight.
        function: unsafe { gpusim_stub(kernel % crate::cuda::KERNELS) },
        grid: Dim3(8, 1, 1),
        block: Dim3(64, 1, 1),
        smem: 0,
        params: 0,
        extra: 0,
    }
}

/// Copies between two memories of the program's.
pub fn copy(dst: u64, src: u64, size: usize, kind: u32) -> Result<(), u32> {
    done!(cudaMemcpy(dst, src, size, kind))
}
pub fn flat(dst: u64, src: u64, pitch: usize, [width, height]: [usize; 2], kind: u32) -> Result<(), u32> {
    done!(cudaMemcpy2D(dst, pitch, src, pitch, width, height, kind))
}
pub fn flat_async(
    dst: u64,
    src: u64,
    pitch: usize,
    [width, height]: [usize; 2],
    kind: u32,
    stream: u64,
) -> Result<(), u32> {
    done!(cudaMemcpy2DAsync(dst, pitch, src, pitch, width, height, kind, stream))
}
pub fn solid(parms: &[u64; 20]) -> Result<(), u32> {
    done!(cudaMemcpy3D(parms))
}
pub fn solid_async(parms: &[u64; 20], stream: u64) -> Result<(), u32> {
    done!(cudaMemcpy3DAsync(parms, stream))
}
pub fn peer((dst, to): (u64, i32), (src, from): (u64, i32), size: usize) -> Result<(), u32> {
    done!(cudaMemcpyPeer(dst, to, src, from, size))
}
pub fn peer_async((dst, to): (u64, i32), (src, from): (u64, i32), size: usize, stream: u64) -> Result<(), u32> {
    done!(cudaMemcpyPeerAsync(dst, to, src, from, size, stream))
}
/// Copies of as many sizes as there are.
pub fn batch(to: &[u64], from: &[u64], sizes: &[usize], stream: u64) -> Result<(), u32> {
    let (attributes, first) = ([0u64; 4], 0usize);
    done!(cudaMemcpyBatchAsync(
        to.as_ptr(),
        from.as_ptr(),
        sizes.as_ptr(),
        sizes.len(),
        attributes.as_ptr(),
        &first,
        1,
        stream
    ))
}
pub fn fill_flat(dst: u64, pitch: usize, [width, height]: [usize; 2]) -> Result<(), u32> {
    done!(cudaMemset2D(dst, pitch, 1, width, height))
}
pub fn fill_flat_async(dst: u64, pitch: usize, [width, height]: [usize; 2], stream: u64) -> Result<(), u32> {
    done!(cudaMemset2DAsync(dst, pitch, 1, width, height, stream))
}
/// Planes side by side.
pub fn fill_solid(dst: u64, pitch: usize, [width, height, depth]: [usize; 3]) -> Result<(), u32> {
    let to = Pitched(dst, pitch, width, height);
    done!(cudaMemset3D(to, 1, Extent(width, height, depth)))
}
pub fn fill_solid_async(dst: u64, pitch: usize, [width, height, depth]: [usize; 3], stream: u64) -> Result<(), u32> {
    let to = Pitched(dst, pitch, width, height);
    done!(cudaMemset3DAsync(to, 1, Extent(width, height, depth), stream))
}

pub fn stream_with_priority(flags: u32, priority: i32) -> Result<u64, u32> {
    made!(cudaStreamCreateWithPriority(flags, priority))
}
pub fn stream_priority(stream: u64) -> Result<i32, u32> {
    let mut priority = 0;
    // SAFETY: an out-pointer to a local.
    ok(unsafe { calls::cudaStreamGetPriority(stream, &mut priority) }, priority)
}
pub fn event_query(event: u64) -> Result<(), u32> {
    done!(cudaEventQuery(event))
}

pub fn graph_clone(graph: u64) -> Result<u64, u32> {
    made!(cudaGraphClone(graph))
}
pub fn graph_update(runnable: u64, graph: u64) -> Result<(), u32> {
    let mut info = [0; 3];
    done!(cudaGraphExecUpdate(runnable, graph, &mut info))
}
pub fn graph_kernel(graph: u64, after: &[u64], kernel: u32) -> Result<u64, u32> {
    let params = kernel_node(kernel);
    made!(cudaGraphAddKernelNode(graph, after.as_ptr(), after.len(), &params))
}
/// Lets a node of a runnable graph run another kernel.
pub fn graph_set_kernel(runnable: u64, node: u64, kernel: u32) -> Result<(), u32> {
    let params = kernel_node(kernel);
    done!(cudaGraphExecKernelNodeSetParams(runnable, node, &params))
}
pub fn graph_copy(graph: u64, after: &[u64], dst: u64, src: u64, size: usize, kind: u32) -> Result<u64, u32> {
    made!(cudaGraphAddMemcpyNode1D(
        graph,
        after.as_ptr(),
        after.len(),
        dst,
        src,
        size,
        kind
    ))
}
/// A node that fills so many words.
pub fn graph_fill(graph: u64, after: &[u64], dst: u64, words: usize) -> Result<u64, u32> {
    const FOUR_BYTES: u64 = 4 << 32;
    let params = [dst, 0, FOUR_BYTES, words as u64, 1];
    made!(cudaGraphAddMemsetNode(graph, after.as_ptr(), after.len(), &params))
}
pub fn graph_child(graph: u64, after: &[u64], child: u64) -> Result<u64, u32> {
    made!(cudaGraphAddChildGraphNode(graph, after.as_ptr(), after.len(), child))
}
