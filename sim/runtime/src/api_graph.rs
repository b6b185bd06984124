//! Graphs.

use std::ffi::c_void;

use crate::driver::{Driver, check};
use crate::entry::{api, export, own_name};
use crate::shape::{Parms, Rows, given, plan, rows};
use crate::{api_launch::Dim3, register};

/// `cudaKernelNodeParams`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Kernel {
    function: usize,
    grid: Dim3,
    block: Dim3,
    smem: u32,
    params: usize,
    extra: usize,
}

/// `CUDA_KERNEL_NODE_PARAMS_v2`.
#[repr(C)]
struct DriverKernel {
    same: Kernel,
    kernel: usize,
    context: usize,
}

/// The driver's structure, with the driver's function in it.
unsafe fn kernel(d: &Driver, params: *const Kernel) -> Result<DriverKernel, u32> {
    // SAFETY: a structure of the caller, or null.
    let mut same = *unsafe { given(params) }?;
    same.function = register::kernel(d, same.function)?;
    Ok(DriverKernel {
        same,
        kernel: 0,
        context: 0,
    })
}

fn context(d: &Driver) -> Result<usize, u32> {
    let mut context = 0;
    // SAFETY: an out-pointer to a local.
    check(unsafe { (d.cuCtxGetCurrent)(&mut context) })?;
    Ok(context)
}

api! {
    call d fn cudaGraphCreate(graph: *mut usize, flags: u32) { check((d.cuGraphCreate)(graph, flags))?; }
    call d fn cudaGraphDestroy(graph: usize) { check((d.cuGraphDestroy)(graph))?; }
    call d fn cudaGraphClone(place: *mut usize, graph: usize) { check((d.cuGraphClone)(place, graph))?; }
    call d fn cudaGraphGetNodes(graph: usize, nodes: usize, count: *mut usize) { check((d.cuGraphGetNodes)(graph, nodes, count))?; }
    call d fn cudaGraphAddKernelNode(node: *mut usize, graph: usize, deps: usize, count: usize, params: *const Kernel) {
        let params = kernel(d, params)?;
        check((d.cuGraphAddKernelNode_v2)(node, graph, deps, count, plan(&params)))?;
    }
    call d fn cudaGraphAddMemcpyNode(node: *mut usize, graph: usize, deps: usize, count: usize, parms: *const Parms) {
        let copy = given(parms)?.solid(d)?;
        check((d.cuGraphAddMemcpyNode)(node, graph, deps, count, plan(&copy), context(d)?))?;
    }
    call d fn cudaGraphAddMemcpyNode1D(node: *mut usize, graph: usize, deps: usize, count: usize, dst: u64, src: u64, size: usize, kind: u32) {
        let copy = rows(Rows::Pointer(dst, size), Rows::Pointer(src, size), size, 1, kind)?;
        check((d.cuGraphAddMemcpyNode)(node, graph, deps, count, plan(&copy), context(d)?))?;
    }
    call d fn cudaGraphAddMemsetNode(node: *mut usize, graph: usize, deps: usize, count: usize, params: *const c_void) {
        check((d.cuGraphAddMemsetNode)(node, graph, deps, count, params, context(d)?))?;
    }
    call d fn cudaGraphAddChildGraphNode(node: *mut usize, graph: usize, deps: usize, count: usize, child: usize) {
        check((d.cuGraphAddChildGraphNode)(node, graph, deps, count, child))?;
    }
    call d fn cudaGraphAddEmptyNode(node: *mut usize, graph: usize, deps: usize, count: usize) { check((d.cuGraphAddEmptyNode)(node, graph, deps, count))?; }
    call d fn cudaGraphAddMemAllocNode(node: *mut usize, graph: usize, deps: usize, count: usize, params: *mut c_void) { check((d.cuGraphAddMemAllocNode)(node, graph, deps, count, params))?; }
    call d fn cudaGraphAddMemFreeNode(node: *mut usize, graph: usize, deps: usize, count: usize, address: u64) { check((d.cuGraphAddMemFreeNode)(node, graph, deps, count, address))?; }
    call d fn cudaGraphInstantiate(place: *mut usize, graph: usize, flags: u64) { check((d.cuGraphInstantiateWithFlags)(place, graph, flags))?; }
    call d fn cudaGraphInstantiateWithFlags(place: *mut usize, graph: usize, flags: u64) { check((d.cuGraphInstantiateWithFlags)(place, graph, flags))?; }
    call d fn cudaGraphInstantiateWithParams / cudaGraphInstantiateWithParams_ptsz (place: *mut usize, graph: usize, params: *mut c_void) { check((d.cuGraphInstantiateWithParams)(place, graph, params))?; }
    call d fn cudaGraphExecUpdate(runnable: usize, graph: usize, info: *mut c_void) { check((d.cuGraphExecUpdate_v2)(runnable, graph, info))?; }
    call d fn cudaGraphExecKernelNodeSetParams(runnable: usize, node: usize, params: *const Kernel) {
        let params = kernel(d, params)?;
        check((d.cuGraphExecKernelNodeSetParams_v2)(runnable, node, plan(&params)))?;
    }
    call d fn cudaGraphUpload / cudaGraphUpload_ptsz (graph: usize, stream: usize) { check((d.cuGraphUpload)(graph, stream))?; }
    call d fn cudaGraphLaunch / cudaGraphLaunch_ptsz (graph: usize, stream: usize) { check((d.cuGraphLaunch)(graph, stream))?; }
    call d fn cudaGraphExecDestroy(graph: usize) { check((d.cuGraphExecDestroy)(graph))?; }
    call d fn cudaDeviceGraphMemTrim(device: i32) { check((d.cuDeviceGraphMemTrim)(device))?; }
    call d fn cudaDeviceGetGraphMemAttribute(device: i32, which: i32, value: *mut u64) { check((d.cuDeviceGetGraphMemAttribute)(device, which, value))?; }
}
