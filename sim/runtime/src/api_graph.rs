//! Graphs and libraries of kernels.

use std::ffi::{c_char, c_void};

use crate::driver::check;
use crate::entry::{api, own_name};

api! {
    call d fn cudaGraphCreate(graph: *mut usize, flags: u32) { check((d.cuGraphCreate)(graph, flags))?; }
    call d fn cudaGraphDestroy(graph: usize) { check((d.cuGraphDestroy)(graph))?; }
    call d fn cudaGraphGetNodes(graph: usize, nodes: usize, count: *mut usize) { check((d.cuGraphGetNodes)(graph, nodes, count))?; }
    call d fn cudaGraphInstantiate(place: *mut usize, graph: usize, flags: u64) { check((d.cuGraphInstantiateWithFlags)(place, graph, flags))?; }
    call d fn cudaGraphInstantiateWithFlags(place: *mut usize, graph: usize, flags: u64) { check((d.cuGraphInstantiateWithFlags)(place, graph, flags))?; }
    call d fn cudaGraphInstantiateWithParams(place: *mut usize, graph: usize, params: *mut c_void) { check((d.cuGraphInstantiateWithParams)(place, graph, params))?; }
    call d fn cudaGraphInstantiateWithParams_ptsz(place: *mut usize, graph: usize, params: *mut c_void) { check((d.cuGraphInstantiateWithParams_ptsz)(place, graph, params))?; }
    call d fn cudaGraphAddMemAllocNode(node: *mut usize, graph: usize, deps: usize, count: usize, params: *mut c_void) { check((d.cuGraphAddMemAllocNode)(node, graph, deps, count, params))?; }
    call d fn cudaGraphAddMemFreeNode(node: *mut usize, graph: usize, deps: usize, count: usize, address: u64) { check((d.cuGraphAddMemFreeNode)(node, graph, deps, count, address))?; }
    call d fn cudaDeviceGraphMemTrim(device: i32) { check((d.cuDeviceGraphMemTrim)(device))?; }
    call d fn cudaDeviceGetGraphMemAttribute(device: i32, which: i32, value: *mut u64) { check((d.cuDeviceGetGraphMemAttribute)(device, which, value))?; }
    call d fn cudaGraphUpload(graph: usize, stream: usize) { check((d.cuGraphUpload)(graph, stream))?; }
    call d fn cudaGraphLaunch(graph: usize, stream: usize) { check((d.cuGraphLaunch)(graph, stream))?; }
    call d fn cudaGraphLaunch_ptsz(graph: usize, stream: usize) { check((d.cuGraphLaunch_ptsz)(graph, stream))?; }
    call d fn cudaGraphExecDestroy(graph: usize) { check((d.cuGraphExecDestroy)(graph))?; }

    call d fn cudaLibraryLoadData(library: *mut usize, code: *const u8, options: usize, values: usize, count: u32, library_options: usize, library_values: usize, library_count: u32) {
        check((d.cuLibraryLoadData)(library, code, options, values, count, library_options, library_values, library_count))?;
    }
    call d fn cudaLibraryUnload(library: usize) { check((d.cuLibraryUnload)(library))?; }
    call d fn cudaLibraryGetKernel(kernel: *mut usize, library: usize, name: *const c_char) { check((d.cuLibraryGetKernel)(kernel, library, name))?; }
    call d fn cudaLibraryGetGlobal(place: *mut u64, size: *mut usize, library: usize, name: *const c_char) { check((d.cuLibraryGetGlobal)(place, size, library, name))?; }
}
