//! Graphs, and the memory that their nodes allocate and free when they are launched.
//!
//! As in CUDA, the address of an allocation node is fixed when the node is made, its memory comes
//! with each launch, and goes with a free node, `cuMemFree` or `cuMemFreeAsync`, but not with the
//! graph.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use gpusim_common::book::{Family, How};

use crate::error::INVALID_VALUE;
use crate::memory::{self, Block, Kind};
use crate::stream::Recording;
use crate::{book, machine};

const AUTO_FREE_ON_LAUNCH: u64 = 1;
const FREED_BY_NODES: &[Kind] = &[Kind::Graph, Kind::Pool, Kind::Device];

/// What a graph does to memory.
#[derive(Clone)]
pub enum Step {
    Allocate(Arc<Node>),
    Free(u64),
}

/// An allocation node; it lives as long as a graph or a runnable graph has it.
pub struct Node {
    pub address: u64,
    size: u64,
    device: i32,
}

impl Node {
    pub fn new(size: u64, device: i32) -> Result<Arc<Node>, u32> {
        machine::device(device)?;
        if size == 0 {
            return Err(INVALID_VALUE);
        }
        let address = memory::reserve(size)?;
        book::allocated(Family::GraphNode, device, size);
        Ok(Arc::new(Node { address, size, device }))
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

impl Drop for Node {
    fn drop(&mut self) {
        book::ended(Family::GraphNode, self.device, self.size, How::GraphDestroyed);
    }
}

#[derive(Clone)]
struct Runnable {
    recording: Recording,
    flags: u64,
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

pub fn handle() -> usize {
    Box::leak(Box::new([0u64; 8])) as *const _ as usize
}

pub fn create(recording: Recording) -> usize {
    let handle = handle();
    tables().graphs.insert(handle, recording);
    handle
}

pub fn change(graph: usize, how: impl FnOnce(&mut Recording)) -> Result<(), u32> {
    how(tables().graphs.get_mut(&graph).ok_or(INVALID_VALUE)?);
    Ok(())
}

/// Adds a memory node.
pub fn add(graph: usize, step: Step) -> Result<(), u32> {
    change(graph, |recording| {
        recording.nodes += 1;
        recording.memory.push(step);
    })
}

pub fn destroy(graph: usize) -> Result<(), u32> {
    let gone = tables().graphs.remove(&graph);
    gone.map(drop).ok_or(INVALID_VALUE)
}

pub fn instantiate(graph: usize, flags: u64) -> Result<usize, u32> {
    let mut tables = tables();
    let recording = tables.graphs.get(&graph).ok_or(INVALID_VALUE)?.clone();
    let handle = handle();
    tables.runnable.insert(handle, Runnable { recording, flags });
    Ok(handle)
}

pub fn look_up(runnable: usize) -> Result<(), u32> {
    tables().runnable.get(&runnable).map(drop).ok_or(INVALID_VALUE)
}

pub fn destroy_runnable(handle: usize) -> Result<(), u32> {
    let gone = tables().runnable.remove(&handle);
    gone.map(drop).ok_or(INVALID_VALUE)
}

/// Does to memory what a graph does at a launch; how many kernels it has and how long they take.
pub fn run(handle: usize) -> Result<(u64, u64), u32> {
    let runnable = tables().runnable.get(&handle).ok_or(INVALID_VALUE)?.clone();
    let steps = &runnable.recording.memory;
    for step in steps {
        if let Step::Allocate(node) = step
            && memory::is_live(node.address)
        {
            if runnable.flags & AUTO_FREE_ON_LAUNCH == 0 {
                return Err(INVALID_VALUE);
            }
            memory::release(node.address, &[Kind::Graph])?;
        }
    }
    for step in steps {
        match step {
            Step::Allocate(node) => {
                memory::allocate_at(node.block())?;
                note_high(node.device);
            }
            Step::Free(address) => drop(memory::release(*address, FREED_BY_NODES)),
        }
    }
    Ok((runnable.recording.kernels, runnable.recording.ns))
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
