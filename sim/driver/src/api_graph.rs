//! Graphs: making, changing and launching them.

use crate::api_shape::Solid;
use crate::error::*;
use crate::fill::Fill;
use crate::graph::{self, MemoryNode, Recording, Step};
use crate::operation::{self, Shape, Work};
use crate::{activity, book, code, context, event, machine, stream};

const UPDATE_FAILURE: u32 = 910;
/// `CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED`.
const TOPOLOGY_CHANGED: u32 = 2;

/// `CUDA_KERNEL_NODE_PARAMS_v2`; the first version ends before `kernel`.
#[repr(C)]
pub struct Kernel {
    function: usize,
    grid: [u32; 3],
    block: [u32; 3],
    smem: u32,
    params: usize,
    extra: usize,
    kernel: usize,
}

/// `CUDA_MEMSET_NODE_PARAMS`.
#[repr(C)]
pub struct Pattern {
    address: u64,
    pitch: usize,
    value: u32,
    element: u32,
    width: usize,
    height: usize,
}

/// # Safety
/// `params` is null or of the second version, of the first if the function is not null.
unsafe fn kernel(params: *const Kernel) -> Result<Work, u32> {
    context::current()?;
    require(!params.is_null())?;
    // SAFETY: by this function's contract.
    let (function, kernel) = unsafe { (&raw const (*params).function, &raw const (*params).kernel) };
    // SAFETY: the last field is only read where there is one.
    let function = match unsafe { function.read() } {
        0 => unsafe { kernel.read() },
        function => function,
    };
    // SAFETY: the fields between those two are there in both versions.
    let shape = unsafe {
        Shape {
            grid: (*params).grid,
            block: (*params).block,
            shared: (*params).smem,
        }
    };
    Ok(operation::kernel(code::look(function)?, shape, true))
}

unsafe fn copy(plan: *const Solid) -> Result<Work, u32> {
    context::current()?;
    require(!plan.is_null())?;
    // SAFETY: not null, so a whole structure by the contract of the exports.
    let copy = unsafe { &*plan }.copy()?;
    Ok(copy.map_or(Work::Nothing, Work::Copy))
}

unsafe fn fill(params: *const Pattern) -> Result<Work, u32> {
    context::current()?;
    require(!params.is_null())?;
    // SAFETY: as above.
    let p = unsafe { &*params };
    let fill = Fill::new(p.address, p.pitch, p.value, p.element as usize, p.width, p.height)?;
    Ok(fill.map_or(Work::Nothing, Work::Fill))
}

/// A node that allocates: `CUDA_MEM_ALLOC_NODE_PARAMS` has the device at 12, the size at 104 and
/// the address at 112.
unsafe fn allocation(params: *mut u8) -> Result<Work, u32> {
    machine::ready()?;
    require(!params.is_null())?;
    // SAFETY: a whole structure of the caller.
    unsafe {
        let (device, size) = (
            params.add(12).cast::<i32>().read(),
            params.add(104).cast::<u64>().read(),
        );
        machine::device(device)?;
        book::concerns(device);
        let node = MemoryNode::new(size, device)?;
        params.add(112).cast::<u64>().write(node.address);
        Ok(Work::Memory(Step::Allocate(node)))
    }
}

fn release(address: u64) -> Result<Work, u32> {
    machine::ready()?;
    require(address != 0)?;
    Ok(Work::Memory(Step::Free(address)))
}

/// `CUgraphNodeParams`: the kind at 0, its structure at 16.
unsafe fn any(params: *mut u8) -> Result<Work, u32> {
    require(!params.is_null())?;
    // SAFETY: a whole structure of the caller, which says itself what it is.
    unsafe {
        let inner = params.add(16);
        match params.cast::<u32>().read() {
            0 => kernel(inner.cast()),
            // CUDA_MEMCPY_NODE_PARAMS: the plan at 16.
            1 => copy(inner.add(16).cast()),
            2 => fill(inner.cast()),
            4 => Ok(Work::Graph(graph::recording(inner.cast::<usize>().read())?)),
            5 => Ok(Work::Nothing),
            10 => allocation(inner),
            11 => release(inner.cast::<u64>().read()),
            _ => Err(NOT_SUPPORTED),
        }
    }
}

unsafe fn add(node: *mut usize, graph: usize, work: Work) -> Result<(), u32> {
    // SAFETY: an out-pointer of the caller.
    unsafe { put(node, graph::add(graph, work)?) }
}

unsafe fn instantiate(place: *mut usize, handle: usize, flags: u64) -> Result<(), u32> {
    require(!place.is_null())?;
    // SAFETY: an out-pointer of the caller.
    unsafe { put(place, graph::instantiate(handle, flags)?) }
}

unsafe fn update(runnable: usize, graph: usize, result: *mut u32) -> Result<(), u32> {
    let is_like = graph::update(runnable, graph)?;
    // SAFETY: an out-pointer of the caller.
    unsafe { put_if(result, if is_like { 0 } else { TOPOLOGY_CHANGED }) };
    if is_like { Ok(()) } else { Err(UPDATE_FAILURE) }
}

unsafe fn nodes(graph: usize, nodes: *mut usize, count: *mut usize) -> Result<(), u32> {
    let recording = graph::recording(graph)?;
    require(!count.is_null())?;
    // SAFETY: room for as many nodes as the caller says, or none at all.
    unsafe {
        if !nodes.is_null() {
            let room = count.read();
            for (i, node) in recording.nodes.iter().take(room).enumerate() {
                nodes.add(i).write(node.handle);
            }
        }
        put(count, recording.nodes.len())
    }
}

api! {
    fn cuGraphCreate(place: *mut usize, flags: u32) {
        machine::ready()?;
        require(flags == 0)?;
        put(place, graph::create(Recording::default()))?;
    }
    fn cuGraphDestroy(graph: usize) { graph::destroy(graph)?; }
    fn cuGraphClone(place: *mut usize, graph: usize) { put(place, graph::create(graph::recording(graph)?))?; }
    fn cuGraphAddKernelNode(node: *mut usize, graph: usize, _deps: usize, _count: usize, params: *const Kernel) { add(node, graph, kernel(params)?)?; }
    fn cuGraphAddKernelNode_v2(node: *mut usize, graph: usize, _deps: usize, _count: usize, params: *const Kernel) { add(node, graph, kernel(params)?)?; }
    fn cuGraphAddMemcpyNode(node: *mut usize, graph: usize, _deps: usize, _count: usize, plan: *const Solid, _context: usize) { activity::adds(504, &[]); add(node, graph, copy(plan)?)?; }
    fn cuGraphAddMemsetNode(node: *mut usize, graph: usize, _deps: usize, _count: usize, params: *const Pattern, _context: usize) { add(node, graph, fill(params)?)?; }
    fn cuGraphAddChildGraphNode(node: *mut usize, graph: usize, _deps: usize, _count: usize, child: usize) { add(node, graph, Work::Graph(graph::recording(child)?))?; }
    fn cuGraphAddEmptyNode(node: *mut usize, graph: usize, _deps: usize, _count: usize) { add(node, graph, Work::Nothing)?; }
    fn cuGraphAddHostNode(node: *mut usize, graph: usize, _deps: usize, _count: usize, params: usize) { require(params != 0)?; add(node, graph, Work::Nothing)?; }
    fn cuGraphAddEventRecordNode(node: *mut usize, graph: usize, _deps: usize, _count: usize, event: usize) { event::find(event)?; add(node, graph, Work::Nothing)?; }
    fn cuGraphAddEventWaitNode(node: *mut usize, graph: usize, _deps: usize, _count: usize, event: usize) { event::find(event)?; add(node, graph, Work::Nothing)?; }
    fn cuGraphAddMemAllocNode(node: *mut usize, graph: usize, _deps: usize, _count: usize, params: *mut u8) { add(node, graph, allocation(params)?)?; }
    fn cuGraphAddMemFreeNode(node: *mut usize, graph: usize, _deps: usize, _count: usize, address: u64) { add(node, graph, release(address)?)?; }
    fn cuGraphAddNode(node: *mut usize, graph: usize, deps: usize, count: usize, params: *mut u8) { activity::adds(712, &[node as usize, graph, deps, count, params as usize]); add(node, graph, any(params)?)?; }
    fn cuGraphAddNode_v2(node: *mut usize, graph: usize, deps: usize, edges: usize, count: usize, params: *mut u8) { activity::adds(723, &[node as usize, graph, deps, edges, count, params as usize]); add(node, graph, any(params)?)?; }
    fn cuGraphGetNodes(graph: usize, list: *mut usize, count: *mut usize) { nodes(graph, list, count)?; }
    fn cuGraphNodeGetType(node: usize, kind: *mut u32) { put(kind, graph::kind_of(node)?)?; }
    fn cuGraphInstantiateWithFlags(place: *mut usize, graph: usize, flags: u64) { instantiate(place, graph, flags)?; }
    fn cuGraphInstantiateWithParams / cuGraphInstantiateWithParams_ptsz (place: *mut usize, graph: usize, params: *const u64) {
        require(!params.is_null())?;
        instantiate(place, graph, params.read())?;
    }
    fn cuGraphInstantiate(place: *mut usize, graph: usize, _node: usize, _log: usize, _size: usize) { instantiate(place, graph, 0)?; }
    fn cuGraphInstantiate_v2(place: *mut usize, graph: usize, _node: usize, _log: usize, _size: usize) { instantiate(place, graph, 0)?; }
    fn cuGraphExecUpdate(runnable: usize, graph: usize, error_node: *mut usize, result: *mut u32) {
        put_if(error_node, 0);
        update(runnable, graph, result)?;
    }
    fn cuGraphExecUpdate_v2(runnable: usize, graph: usize, info: *mut u32) { update(runnable, graph, info)?; }
    fn cuGraphExecKernelNodeSetParams(runnable: usize, node: usize, params: *const Kernel) { graph::set_node(runnable, node, kernel(params)?)?; }
    fn cuGraphExecKernelNodeSetParams_v2(runnable: usize, node: usize, params: *const Kernel) { graph::set_node(runnable, node, kernel(params)?)?; }
    fn cuGraphExecMemcpyNodeSetParams(runnable: usize, node: usize, plan: *const Solid, _context: usize) { graph::set_node(runnable, node, copy(plan)?)?; }
    fn cuGraphExecMemsetNodeSetParams(runnable: usize, node: usize, params: *const Pattern, _context: usize) { graph::set_node(runnable, node, fill(params)?)?; }
    fn cuGraphExecChildGraphNodeSetParams(runnable: usize, node: usize, child: usize) { graph::set_node(runnable, node, Work::Graph(graph::recording(child)?))?; }
    fn cuGraphUpload / cuGraphUpload_ptsz (graph: usize, _stream: usize) { graph::look_up(graph)?; }
    fn cuGraphLaunch / cuGraphLaunch_ptsz (graph: usize, stream: usize) { graph::launch(graph, stream::find(stream)?)?; }
    fn cuGraphExecDestroy(graph: usize) { graph::destroy_runnable(graph)?; }
    fn cuDeviceGraphMemTrim(device: i32) { machine::device(device)?; }
    fn cuDeviceGetGraphMemAttribute(device: i32, which: i32, value: *mut u64) {
        machine::device(device)?;
        require((0..4).contains(&which))?;
        put(value, graph::memory_of(device, which % 2 == 1))?;
    }
}
