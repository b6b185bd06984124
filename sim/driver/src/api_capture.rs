//! Stream capture and graphs: how many kernels there are, how long they take, and what they do
//! to memory.

use crate::context::current_device;
use crate::error::*;
use crate::graph::{self, Node, Step};
use crate::machine::{self, machine};
use crate::stream::Recording;
use crate::{LEDGER, book, code, stream};

const PER_THREAD: usize = 2;

fn per_thread(stream: usize) -> usize {
    if stream == 0 { PER_THREAD } else { stream }
}

unsafe fn instantiate(place: *mut usize, handle: usize, flags: u64) -> Result<(), u32> {
    require(!place.is_null())?;
    // SAFETY: an out-pointer of the caller.
    unsafe { put(place, graph::instantiate(handle, flags)?) }
}

fn launch(handle: usize, stream: usize) -> Result<(), u32> {
    let device = current_device()?;
    let (kernels, ns) = graph::run(handle)?;
    stream::find(stream, device)?.enqueue(ns, kernels);
    LEDGER.add_launches(kernels);
    Ok(())
}

fn begin_capture(handle: usize, mode: u32) -> Result<(), u32> {
    let device = current_device()?;
    require(mode < 3)?;
    if handle < 2 {
        return Err(STREAM_CAPTURE_UNSUPPORTED);
    }
    if stream::find(handle, device)?.begin_capture() {
        Ok(())
    } else {
        Err(ILLEGAL_STATE)
    }
}

unsafe fn end_capture(handle: usize, place: *mut usize) -> Result<(), u32> {
    let device = current_device()?;
    let recording = stream::find(handle, device)?.end_capture().ok_or(ILLEGAL_STATE)?;
    // SAFETY: an out-pointer of the caller.
    unsafe { put(place, graph::create(recording)) }
}

unsafe fn is_capturing(handle: usize, status: *mut u32) -> Result<(), u32> {
    let device = current_device()?;
    let capturing = stream::find(handle, device)?.is_capturing();
    // SAFETY: an out-pointer of the caller.
    unsafe { put(status, u32::from(capturing)) }
}

/// A node that allocates: `CUDA_MEM_ALLOC_NODE_PARAMS` has the device at 12, the size at 104 and
/// the address at 112.
unsafe fn add_allocation(graph: usize, params: *mut u8) -> Result<(), u32> {
    require(!params.is_null())?;
    // SAFETY: a whole structure of the caller.
    unsafe {
        let (device, size) = (
            params.add(12).cast::<i32>().read(),
            params.add(104).cast::<u64>().read(),
        );
        machine::device(device)?;
        book::concerns(device);
        let node = Node::new(size, device)?;
        params.add(112).cast::<u64>().write(node.address);
        graph::add(graph, Step::Allocate(node))
    }
}

api! {
    fn cuStreamBeginCapture_v2(handle: usize, mode: u32) { begin_capture(handle, mode)?; }
    fn cuStreamBeginCapture_v2_ptsz(handle: usize, mode: u32) { begin_capture(per_thread(handle), mode)?; }
    fn cuStreamEndCapture(handle: usize, graph: *mut usize) { end_capture(handle, graph)?; }
    fn cuStreamEndCapture_ptsz(handle: usize, graph: *mut usize) { end_capture(per_thread(handle), graph)?; }
    fn cuStreamIsCapturing(handle: usize, status: *mut u32) { is_capturing(handle, status)?; }
    fn cuStreamIsCapturing_ptsz(handle: usize, status: *mut u32) { is_capturing(per_thread(handle), status)?; }
    fn cuThreadExchangeStreamCaptureMode(mode: *mut u32) { require(!mode.is_null())?; }
    fn cuGraphCreate(place: *mut usize, flags: u32) {
        machine::ready()?;
        require(flags == 0)?;
        put(place, graph::create(Recording::default()))?;
    }
    fn cuGraphDestroy(graph: usize) { graph::destroy(graph)?; }
    fn cuGraphAddKernelNode_v2(node: *mut usize, graph: usize, _deps: usize, _count: usize, params: *const usize) {
        machine::ready()?;
        require(!params.is_null())?;
        code::look(params.read())?;
        graph::change(graph, |recording| {
            recording.nodes += 1;
            recording.kernels += 1;
            recording.ns += machine().kernel_ns;
        })?;
        put(node, graph::handle())?;
    }
    fn cuGraphAddEmptyNode(node: *mut usize, graph: usize, _deps: usize, _count: usize) {
        graph::change(graph, |recording| recording.nodes += 1)?;
        put(node, graph::handle())?;
    }
    fn cuGraphAddMemAllocNode(node: *mut usize, graph: usize, _deps: usize, _count: usize, params: *mut u8) {
        machine::ready()?;
        add_allocation(graph, params)?;
        put(node, graph::handle())?;
    }
    fn cuGraphAddMemFreeNode(node: *mut usize, graph: usize, _deps: usize, _count: usize, address: u64) {
        machine::ready()?;
        require(address != 0)?;
        graph::add(graph, Step::Free(address))?;
        put(node, graph::handle())?;
    }
    fn cuGraphGetNodes(graph: usize, _nodes: usize, count: *mut usize) {
        let mut nodes = 0;
        graph::change(graph, |recording| nodes = recording.nodes)?;
        put(count, nodes as usize)?;
    }
    fn cuGraphInstantiateWithFlags(place: *mut usize, graph: usize, flags: u64) { instantiate(place, graph, flags)?; }
    fn cuGraphInstantiateWithParams(place: *mut usize, graph: usize, params: *const u64) {
        require(!params.is_null())?;
        instantiate(place, graph, params.read())?;
    }
    fn cuGraphInstantiateWithParams_ptsz(place: *mut usize, graph: usize, params: *const u64) {
        require(!params.is_null())?;
        instantiate(place, graph, params.read())?;
    }
    fn cuGraphInstantiate(place: *mut usize, graph: usize, _node: usize, _log: usize, _size: usize) { instantiate(place, graph, 0)?; }
    fn cuGraphInstantiate_v2(place: *mut usize, graph: usize, _node: usize, _log: usize, _size: usize) { instantiate(place, graph, 0)?; }
    fn cuGraphUpload(graph: usize, _stream: usize) { graph::look_up(graph)?; }
    fn cuGraphLaunch(graph: usize, stream: usize) { launch(graph, stream)?; }
    fn cuGraphLaunch_ptsz(graph: usize, stream: usize) { launch(graph, per_thread(stream))?; }
    fn cuGraphExecDestroy(graph: usize) { graph::destroy_runnable(graph)?; }
    fn cuDeviceGraphMemTrim(device: i32) { machine::device(device)?; }
    fn cuDeviceGetGraphMemAttribute(device: i32, which: i32, value: *mut u64) {
        machine::device(device)?;
        require((0..4).contains(&which))?;
        put(value, graph::memory_of(device, which % 2 == 1))?;
    }
}
