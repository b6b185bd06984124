//! Graphs: nodes in the order of their making, and what a launch does.
//!
//! As in CUDA, the address of an allocation node is fixed when the node is made, its memory comes
//! with each launch, and goes with a free node, `cuMemFree` or `cuMemFreeAsync`, but not with the
//! graph.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use gpusim_common::book::{Family, How};

use crate::activity;
use crate::error::{INVALID_VALUE, LAUNCH_FAILED};
use crate::memory::{self, Block, Kind};
use crate::operation::{self, Part, Work};
use crate::stream::Stream;
use crate::{book, machine};

const AUTO_FREE_ON_LAUNCH: u64 = 1;
const FREED_BY_NODES: &[Kind] = &[Kind::Graph, Kind::Pool, Kind::Device];

/// What a node does to memory.
#[derive(Clone)]
pub enum Step {
    Allocate(Arc<MemoryNode>),
    Free(u64),
}

/// An allocation node; it lives as long as a graph or a runnable graph has it.
pub struct MemoryNode {
    pub address: u64,
    size: u64,
    device: i32,
}

impl MemoryNode {
    pub fn new(size: u64, device: i32) -> Result<Arc<MemoryNode>, u32> {
        machine::device(device)?;
        if size == 0 {
            return Err(INVALID_VALUE);
        }
        let address = memory::reserve(size)?;
        book::allocated(Family::GraphNode, device, size);
        Ok(Arc::new(MemoryNode { address, size, device }))
    }

    fn block(&self) -> Block {
        Block {
            start: self.address,
            size: self.size,
            device: self.device,
            kind: Kind::Graph,
            context: 0,
            pool: 0,
        }
    }
}

impl Drop for MemoryNode {
    fn drop(&mut self) {
        book::ended(Family::GraphNode, self.device, self.size, How::GraphDestroyed);
    }
}

/// Something to do, and the handle a program knows it by.
#[derive(Clone)]
pub struct Node {
    pub handle: usize,
    pub work: Work,
}

impl Node {
    pub fn new(work: Work) -> Node {
        Node { handle: handle(), work }
    }
}

/// Work recorded instead of run, in order.
#[derive(Clone, Default)]
pub struct Recording {
    pub nodes: Vec<Node>,
    /// It got a copy by hand, not by capture.
    pub copies_by_hand: bool,
}

impl Recording {
    /// The nodes, those of child graphs in their places.
    fn all_work(&self) -> Vec<&Work> {
        let own = self.nodes.iter().map(|node| &node.work);
        own.flat_map(|work| match work {
            Work::Graph(child) => child.all_work(),
            _ => vec![work],
        })
        .collect()
    }

    /// Whether another graph can take its place in one that was instantiated.
    fn is_like(&self, other: &Recording) -> bool {
        let kind = |node: &Node| std::mem::discriminant(&node.work);
        self.nodes.iter().map(kind).eq(other.nodes.iter().map(kind))
    }
}

#[derive(Clone)]
struct Runnable {
    recording: Recording,
    flags: u64,
    /// As CUPTI has it.
    id: u32,
}

#[derive(Default)]
struct Tables {
    graphs: HashMap<usize, Recording>,
    runnable: HashMap<usize, Runnable>,
    /// The most that launches ever had live, by device.
    high: HashMap<i32, u64>,
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

pub fn create(recording: Recording) -> usize {
    let handle = handle();
    tables().graphs.insert(handle, recording);
    handle
}

/// What a graph holds now.
pub fn recording(graph: usize) -> Result<Recording, u32> {
    tables().graphs.get(&graph).cloned().ok_or(INVALID_VALUE)
}

/// Adds a node; its handle.
pub fn add(graph: usize, work: Work) -> Result<usize, u32> {
    let node = Node::new(work);
    let handle = node.handle;
    let mut tables = tables();
    let recording = tables.graphs.get_mut(&graph).ok_or(INVALID_VALUE)?;
    recording.copies_by_hand |= match &node.work {
        Work::Copy(_) => true,
        Work::Graph(child) => child.copies_by_hand,
        _ => false,
    };
    recording.nodes.push(node);
    Ok(handle)
}

/// The `CUgraphNodeType` of a graph's node.
pub fn kind_of(node: usize) -> Result<u32, u32> {
    let tables = tables();
    let mut nodes = tables.graphs.values().flat_map(|recording| &recording.nodes);
    let found = nodes.find(|known| known.handle == node).ok_or(INVALID_VALUE)?;
    Ok(match found.work {
        Work::Kernel { .. } => 0,
        Work::Copy(_) => 1,
        Work::Fill(_) => 2,
        Work::Graph(_) => 4,
        Work::Nothing | Work::Prefetch { .. } => 5,
        Work::Memory(Step::Allocate(_)) => 10,
        Work::Memory(Step::Free(_)) => 11,
    })
}

pub fn destroy(graph: usize) -> Result<(), u32> {
    let gone = tables().graphs.remove(&graph);
    gone.map(drop).ok_or(INVALID_VALUE)
}

pub fn instantiate(graph: usize, flags: u64) -> Result<usize, u32> {
    let recording = recording(graph)?;
    let handle = handle();
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let id = NEXT.fetch_add(1, Relaxed);
    tables().runnable.insert(handle, Runnable { recording, flags, id });
    Ok(handle)
}

/// Puts a graph in the place of the one a runnable graph was made of; whether they are alike.
pub fn update(runnable: usize, graph: usize) -> Result<bool, u32> {
    let recording = recording(graph)?;
    let mut tables = tables();
    let runnable = tables.runnable.get_mut(&runnable).ok_or(INVALID_VALUE)?;
    let is_like = runnable.recording.is_like(&recording);
    if is_like {
        runnable.recording = recording;
    }
    Ok(is_like)
}

/// Changes one node of a runnable graph.
pub fn set_node(runnable: usize, node: usize, work: Work) -> Result<(), u32> {
    let mut tables = tables();
    let runnable = tables.runnable.get_mut(&runnable).ok_or(INVALID_VALUE)?;
    let nodes = &mut runnable.recording.nodes;
    let found = nodes.iter_mut().find(|known| known.handle == node);
    found.ok_or(INVALID_VALUE)?.work = work;
    Ok(())
}

pub fn look_up(runnable: usize) -> Result<(), u32> {
    tables().runnable.get(&runnable).map(drop).ok_or(INVALID_VALUE)
}

pub fn destroy_runnable(handle: usize) -> Result<(), u32> {
    let gone = tables().runnable.remove(&handle);
    gone.map(drop).ok_or(INVALID_VALUE)
}

/// Does all that a runnable graph holds, in `stream`, or records it where that captures.
pub fn launch(handle: usize, stream: &Stream) -> Result<(), u32> {
    let Runnable { recording, flags, id } = tables().runnable.get(&handle).ok_or(INVALID_VALUE)?.clone();
    if let Some(capture) = stream.capture() {
        capture.record(Work::Graph(recording));
        return Ok(());
    }
    if recording.copies_by_hand && activity::fails_copies() {
        return Err(LAUNCH_FAILED);
    }
    let all = recording.all_work();
    for work in &all {
        make_room(work, flags)?;
    }
    for (node, work) in (1..).zip(all) {
        match work {
            Work::Memory(step) => change_memory(step)?,
            _ => drop(operation::run(
                work,
                stream,
                Some(Part {
                    graph: handle,
                    id,
                    node,
                }),
                false,
            )),
        }
    }
    Ok(())
}

/// A node whose memory is still there from the launch before.
fn make_room(work: &Work, flags: u64) -> Result<(), u32> {
    match work {
        Work::Memory(Step::Allocate(node)) if memory::is_live(node.address) => {
            if flags & AUTO_FREE_ON_LAUNCH == 0 {
                return Err(INVALID_VALUE);
            }
            memory::release(node.address, &[Kind::Graph])
        }
        _ => Ok(()),
    }
}

fn change_memory(step: &Step) -> Result<(), u32> {
    match step {
        Step::Allocate(node) => {
            memory::allocate_at(node.block())?;
            note_high(node.device);
        }
        Step::Free(address) => drop(memory::release(*address, FREED_BY_NODES)),
    }
    Ok(())
}

fn note_high(device: i32) {
    let now = memory_of(device, false);
    let mut tables = tables();
    let high = tables.high.entry(device).or_default();
    *high = now.max(*high);
}

/// What launches have live on a device, or ever had.
pub fn memory_of(device: i32, high: bool) -> u64 {
    if high {
        return tables().high.get(&device).copied().unwrap_or(0);
    }
    memory::held(device, Kind::Graph)
}
