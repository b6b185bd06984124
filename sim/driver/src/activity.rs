//! Who is told what runs: the simulated CUPTI, through entries that the real driver does not have.

use std::ffi::c_char;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::context::Context;
use crate::copy::Way;
use crate::error::INVALID_VALUE;
use crate::operation::{Part, Work};
use crate::stream::{self, Stream};
use crate::timeline::Span;

/// What a device does, with times of `CLOCK_MONOTONIC`. Kinds are CUPTI's.
#[repr(C)]
pub struct Told {
    pub kind: u32,
    pub device: u32,
    pub context: u32,
    pub stream: u32,
    pub start_ns: u64,
    pub end_ns: u64,
    pub bytes: u64,
    pub node: u64,
    pub graph: u32,
    pub copy_kind: u32,
    pub from: u32,
    pub to: u32,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: u32,
    pub pad: u32,
    /// Until the call returns.
    pub name: *const c_char,
}

type Watcher = extern "C" fn(*const Told);
/// Handles of a context and of a stream of it that was made; 0: the context was.
type StreamWatcher = extern "C" fn(usize, usize);

/// A node is put into a graph by hand: the number of the function, as CUPTI has it, and its arguments.
type NodeWatcher = extern "C" fn(u32, *const usize);
/// A graph with copies that were put so is launched; whether it fails.
type CopyWatcher = extern "C" fn() -> bool;

static WATCHER: AtomicUsize = AtomicUsize::new(0);
static STREAM_WATCHER: AtomicUsize = AtomicUsize::new(0);
static NODE_WATCHER: AtomicUsize = AtomicUsize::new(0);
static COPY_WATCHER: AtomicUsize = AtomicUsize::new(0);

/// False: another library has asked before, and goes on to be the only one.
#[unsafe(no_mangle)]
pub extern "C" fn gpusim_driver_watch(watcher: Option<Watcher>, streams: Option<StreamWatcher>) -> bool {
    let watcher = watcher.map_or(0, |watcher| watcher as usize);
    let known = WATCHER.compare_exchange(0, watcher, Relaxed, Relaxed);
    if known.is_err_and(|known| known != watcher) {
        return false;
    }
    STREAM_WATCHER.store(streams.map_or(0, |watcher| watcher as usize), Relaxed);
    true
}

#[unsafe(no_mangle)]
pub extern "C" fn gpusim_driver_watch_nodes(nodes: NodeWatcher, copies: CopyWatcher) {
    NODE_WATCHER.store(nodes as usize, Relaxed);
    COPY_WATCHER.store(copies as usize, Relaxed);
}

/// The numbers by which CUPTI knows a context, and a stream of it.
///
/// # Safety
/// `numbers` is room for two.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpusim_driver_numbers(context: usize, handle: usize, numbers: *mut [u32; 2]) -> u32 {
    let Ok(context) = crate::context::find(context) else {
        return INVALID_VALUE;
    };
    let stream = match handle {
        0 => 7,
        _ => match stream::number_of(handle) {
            Some(number) => number,
            None => return INVALID_VALUE,
        },
    };
    // SAFETY: by the contract.
    unsafe { *numbers = [context.id as u32, stream] };
    0
}

pub fn is_watched() -> bool {
    WATCHER.load(Relaxed) != 0
}

/// Tells of what runs.
pub fn ran(work: &Work, stream: &Stream, part: Option<Part>, span: Span) {
    if !is_watched() {
        return;
    }
    let Some(told) = told(work) else { return };
    let told = Told {
        device: stream.device() as u32,
        context: stream.context.id as u32,
        stream: if stream.number == 0 { 7 } else { stream.id as u32 },
        start_ns: span.start_ns,
        end_ns: span.end_ns,
        node: part.map_or(0, |part| part.node),
        graph: part.map_or(0, |part| part.id),
        ..told
    };
    // SAFETY: a function that was given for this.
    let watcher: Option<Watcher> = unsafe { std::mem::transmute(WATCHER.load(Relaxed)) };
    if let Some(watcher) = watcher {
        watcher(&raw const told);
    }
}

/// A stream was made.
pub fn created(context: &Context, stream: &Stream) {
    tell_streams(context.handle(), stream.number as usize);
}

/// A context was.
pub fn began(context: &Context) {
    tell_streams(context.handle(), 0);
}

/// A node is put into a graph by hand.
pub fn adds(function: u32, arguments: &[usize]) {
    // SAFETY: a function that was given for this, or 0.
    let watcher: Option<NodeWatcher> = unsafe { std::mem::transmute(NODE_WATCHER.load(Relaxed)) };
    if let Some(watcher) = watcher {
        watcher(function, arguments.as_ptr());
    }
}

/// Whether a graph that got copies by hand fails, as such graphs do while CUPTI records copies.
pub fn fails_copies() -> bool {
    // SAFETY: as above.
    let watcher: Option<CopyWatcher> = unsafe { std::mem::transmute(COPY_WATCHER.load(Relaxed)) };
    watcher.is_some_and(|watcher| watcher())
}

fn tell_streams(context: usize, stream: usize) {
    // SAFETY: as above.
    let watcher: Option<StreamWatcher> = unsafe { std::mem::transmute(STREAM_WATCHER.load(Relaxed)) };
    if let Some(watcher) = watcher {
        watcher(context, stream);
    }
}

const NOTHING: Told = Told {
    kind: 0,
    device: 0,
    context: 0,
    stream: 0,
    start_ns: 0,
    end_ns: 0,
    bytes: 0,
    node: 0,
    graph: 0,
    copy_kind: 0,
    from: 0,
    to: 0,
    grid: [0; 3],
    block: [0; 3],
    shared: 0,
    pad: 0,
    name: std::ptr::null(),
};

/// What CUPTI has a record of.
fn told(work: &Work) -> Option<Told> {
    match work {
        Work::Kernel { name, shape, .. } => Some(Told {
            kind: 10,
            grid: shape.grid,
            block: shape.block,
            shared: shape.shared,
            name: name.as_ref().map_or(std::ptr::null(), |name| name.as_ptr()),
            ..NOTHING
        }),
        Work::Copy(copy) => Some(Told {
            kind: if copy.way == Way::PtoP { 22 } else { 1 },
            bytes: copy.bytes(),
            copy_kind: copy_kind(copy.way),
            to: memory_kind(copy.ends.0),
            from: memory_kind(copy.ends.1),
            ..NOTHING
        }),
        Work::Fill(fill) => Some(Told {
            kind: 2,
            bytes: fill.bytes(),
            to: memory_kind(fill.host().unwrap_or("device")),
            ..NOTHING
        }),
        _ => None,
    }
}

fn copy_kind(way: Way) -> u32 {
    match way {
        Way::HtoD => 1,
        Way::DtoH => 2,
        Way::DtoD => 8,
        Way::HtoH => 9,
        Way::PtoP => 10,
    }
}

fn memory_kind(name: &str) -> u32 {
    match name {
        "pageable" => 1,
        "pinned" => 2,
        "device" => 3,
        "array" => 4,
        "managed" => 5,
        _ => 0,
    }
}
