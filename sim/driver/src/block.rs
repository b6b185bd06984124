//! One allocation: what kind of memory it is, and to whom it belongs.

use gpusim_common::book::Family;

use crate::context::Context;
use crate::error::OUT_OF_MEMORY;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Device,
    Pool,
    Managed,
    Pinned,
    Registered,
    Mapped,
    /// A variable of a module.
    Global,
    Array,
    Mipmapped,
    /// Made by an allocation node of a graph, whose address stays the node's.
    Graph,
    /// Memory of another process.
    Ipc,
    /// An imported object; its start is its handle, and no memory lies there.
    External,
    /// A view of an imported object.
    Buffer,
}

#[derive(Clone, Copy, Debug)]
pub struct Block {
    pub start: u64,
    /// As asked for.
    pub size: u64,
    pub device: i32,
    pub kind: Kind,
    /// The context it ends with, or 0.
    pub context: usize,
    /// The pool it came from, or 0.
    pub pool: usize,
}

impl Kind {
    /// Whether the host may touch it.
    pub fn on_host(self) -> bool {
        matches!(self, Kind::Managed | Kind::Pinned | Kind::Registered)
    }

    /// Whether it takes memory of the device, and not through a pool.
    pub fn is_charged(self) -> bool {
        matches!(
            self,
            Kind::Device | Kind::Global | Kind::Array | Kind::Mipmapped | Kind::Graph
        )
    }

    /// Whether the ledger counts its bytes as allocated and freed.
    pub fn is_new(self) -> bool {
        self.is_charged() || matches!(self, Kind::Pool | Kind::Managed | Kind::Pinned)
    }

    /// What the book counts it as.
    pub fn family(self) -> Option<Family> {
        Some(match self {
            Kind::Device => Family::Device,
            Kind::Pool => Family::Async,
            Kind::Managed => Family::Managed,
            Kind::Pinned => Family::Pinned,
            Kind::Registered => Family::Registered,
            Kind::Mapped | Kind::Buffer => Family::Mapped,
            Kind::Array => Family::Array,
            Kind::Mipmapped => Family::Mipmapped,
            Kind::Graph => Family::Graph,
            Kind::Ipc => Family::Ipc,
            Kind::External => Family::External,
            Kind::Global => return None,
        })
    }
}

impl Block {
    /// A block of a context, that is yet to be placed.
    pub fn of(context: &Context, size: u64, kind: Kind) -> Block {
        Block {
            start: 0,
            size,
            device: context.device,
            kind,
            context: context.handle(),
            pool: 0,
        }
    }

    /// The address space it takes.
    pub fn span(&self) -> Result<u64, u32> {
        let size = if self.kind == Kind::External { 1 } else { self.size };
        size.checked_next_multiple_of(GRAIN).ok_or(OUT_OF_MEMORY)
    }
}

pub const GRAIN: u64 = 512;
