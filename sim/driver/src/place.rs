//! One side of a copy: which memory, and where in it.

use crate::error::{INVALID_VALUE, require};
use crate::memory::{self, Block, Kind};

/// `CUmemorytype`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Memory {
    Host,
    Device,
    Array,
    /// The host's or a device's, as the address says.
    Unified,
}

impl Memory {
    pub fn from_number(number: u32) -> Result<Memory, u32> {
        Ok(match number {
            1 => Memory::Host,
            2 => Memory::Device,
            3 => Memory::Array,
            4 => Memory::Unified,
            _ => return Err(INVALID_VALUE),
        })
    }
}

/// Rows of rows: the bytes from one row and from one plane to the next.
#[derive(Clone, Copy)]
pub struct Place {
    pub memory: Memory,
    pub address: u64,
    pub pitch: u64,
    pub plane: u64,
}

impl Place {
    pub fn linear(memory: Memory, address: u64) -> Place {
        Place {
            memory,
            address,
            pitch: 0,
            plane: 0,
        }
    }

    /// The same, so many bytes, rows and planes further on.
    pub fn moved(self, x: usize, y: usize, z: usize) -> Place {
        let offset = x as u64 + y as u64 * self.pitch + z as u64 * self.plane;
        Place {
            address: self.address.wrapping_add(offset),
            ..self
        }
    }

    pub fn row(&self, y: usize, z: usize) -> u64 {
        self.moved(0, y, z).address
    }

    /// Finds out where it lies.
    pub fn find(&self) -> Result<Side, u32> {
        require(self.address != 0)?;
        let block = memory::find(self.address);
        let on_device = match self.memory {
            Memory::Host => false,
            Memory::Device | Memory::Array => true,
            Memory::Unified => block.is_some_and(|b| !b.kind.on_host()),
        };
        if on_device && block.is_none() {
            return Err(INVALID_VALUE);
        }
        Ok(Side { block, on_device })
    }
}

/// What is known of a side.
pub struct Side {
    block: Option<Block>,
    pub on_device: bool,
}

impl Side {
    pub fn device(&self) -> Option<i32> {
        self.block.filter(|_| self.on_device).map(|b| b.device)
    }

    /// What memory it is, whatever the call took it for.
    pub fn name(&self) -> &'static str {
        match self.block.map(|b| b.kind) {
            Some(Kind::Array) => "array",
            Some(kind) if !kind.on_host() => "device",
            kind => Host::of(kind).name(),
        }
    }

    /// What kind of host memory it is.
    pub fn host(&self) -> Host {
        Host::of(self.block.map(|b| b.kind))
    }
}

/// Host memory, as far as copies differ by it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Host {
    Pageable,
    Pinned,
    Managed,
}

impl Host {
    fn of(kind: Option<Kind>) -> Host {
        match kind {
            Some(Kind::Pinned | Kind::Registered) => Host::Pinned,
            Some(Kind::Managed) => Host::Managed,
            _ => Host::Pageable,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Host::Pageable => "pageable",
            Host::Pinned => "pinned",
            Host::Managed => "managed",
        }
    }
}
