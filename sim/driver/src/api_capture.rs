//! Stream capture and graphs: how many kernels there are and how long they take, no more.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::context::current_device;
use crate::error::*;
use crate::machine::machine;
use crate::stream::Recording;
use crate::{LEDGER, code, stream};

#[derive(Default)]
struct Tables {
    graphs: HashMap<usize, Recording>,
    runnable: HashMap<usize, Recording>,
}

fn tables() -> MutexGuard<'static, Tables> {
    static TABLES: OnceLock<Mutex<Tables>> = OnceLock::new();
    TABLES
        .get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

fn handle() -> usize {
    Box::leak(Box::new([0u64; 8])) as *const _ as usize
}

fn new_graph(recording: Recording) -> usize {
    let handle = handle();
    tables().graphs.insert(handle, recording);
    handle
}

unsafe fn instantiate(place: *mut usize, graph: usize) -> Result<(), u32> {
    let mut tables = tables();
    let recording = *tables.graphs.get(&graph).ok_or(INVALID_VALUE)?;
    let handle = handle();
    tables.runnable.insert(handle, recording);
    // SAFETY: an out-pointer of the caller.
    unsafe { put(place, handle) }
}

fn launch(graph: usize, handle: usize) -> Result<(), u32> {
    let device = current_device()?;
    let recording = *tables().runnable.get(&graph).ok_or(INVALID_VALUE)?;
    stream::find(handle, device)?.enqueue(recording.ns, recording.kernels);
    LEDGER.add_launches(recording.kernels);
    Ok(())
}

api! {
    fn cuStreamBeginCapture_v2(handle: usize, mode: u32) {
        let device = current_device()?;
        require(mode < 3)?;
        if handle < 2 { return Err(STREAM_CAPTURE_UNSUPPORTED); }
        if !stream::find(handle, device)?.begin_capture() { return Err(ILLEGAL_STATE); }
    }
    fn cuStreamEndCapture(handle: usize, graph: *mut usize) {
        let device = current_device()?;
        let recording = stream::find(handle, device)?.end_capture().ok_or(ILLEGAL_STATE)?;
        put(graph, new_graph(recording))?;
    }
    fn cuStreamIsCapturing(handle: usize, status: *mut u32) {
        let device = current_device()?;
        put(status, u32::from(stream::find(handle, device)?.is_capturing()))?;
    }
    fn cuThreadExchangeStreamCaptureMode(mode: *mut u32) { require(!mode.is_null())?; }
    fn cuGraphCreate(graph: *mut usize, flags: u32) {
        machine_is_ready()?;
        require(flags == 0)?;
        put(graph, new_graph(Recording::default()))?;
    }
    fn cuGraphDestroy(graph: usize) { tables().graphs.remove(&graph).ok_or(INVALID_VALUE)?; }
    fn cuGraphAddKernelNode_v2(node: *mut usize, graph: usize, _deps: usize, _count: usize, params: *const usize) {
        machine_is_ready()?;
        require(!params.is_null())?;
        code::look(params.read())?;
        let mut tables = tables();
        let recording = tables.graphs.get_mut(&graph).ok_or(INVALID_VALUE)?;
        recording.nodes += 1;
        recording.kernels += 1;
        recording.ns += machine().kernel_ns;
        put(node, handle())?;
    }
    fn cuGraphAddEmptyNode(node: *mut usize, graph: usize, _deps: usize, _count: usize) {
        tables().graphs.get_mut(&graph).ok_or(INVALID_VALUE)?.nodes += 1;
        put(node, handle())?;
    }
    fn cuGraphGetNodes(graph: usize, _nodes: usize, count: *mut usize) {
        let nodes = tables().graphs.get(&graph).ok_or(INVALID_VALUE)?.nodes;
        put(count, nodes as usize)?;
    }
    fn cuGraphInstantiateWithFlags(place: *mut usize, graph: usize, _flags: u64) { instantiate(place, graph)?; }
    fn cuGraphInstantiateWithParams(place: *mut usize, graph: usize, _params: usize) { instantiate(place, graph)?; }
    fn cuGraphInstantiate_v2(place: *mut usize, graph: usize, _node: usize, _log: usize, _size: usize) { instantiate(place, graph)?; }
    fn cuGraphUpload(graph: usize, _stream: usize) { tables().runnable.get(&graph).ok_or(INVALID_VALUE)?; }
    fn cuGraphLaunch(graph: usize, stream: usize) { launch(graph, stream)?; }
    fn cuGraphExecDestroy(graph: usize) { tables().runnable.remove(&graph).ok_or(INVALID_VALUE)?; }
}

fn machine_is_ready() -> Result<(), u32> {
    crate::machine::ready()
}
