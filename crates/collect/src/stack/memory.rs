//! Bounded reads of another process's memory.

use crate::foreign;
use crate::wire::{u32_at, u64_at};

/// Memory that may hold anything, and parts of which cannot be read.
pub trait Memory {
    /// Fills `into` with what lies at `address`; `None` when not all of it can be read.
    fn read(&self, address: u64, into: &mut [u8]) -> Option<()>;

    /// `size` bytes, which may be at most `limit`.
    fn bytes(&self, address: u64, size: u64, limit: usize) -> Option<Vec<u8>> {
        let size = usize::try_from(size).ok().filter(|size| *size <= limit)?;
        let mut bytes = vec![0; size];
        self.read(address, &mut bytes)?;
        Some(bytes)
    }

    /// Eight bytes as a number.
    fn word(&self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.read(address, &mut bytes)?;
        Some(u64_at(&bytes, 0))
    }

    /// Four bytes as a number.
    fn half(&self, address: u64) -> Option<u32> {
        let mut bytes = [0; 4];
        self.read(address, &mut bytes)?;
        Some(u32_at(&bytes, 0))
    }
}

/// The memory of a running process. What does not answer cannot be read.
#[derive(Clone, Copy, Debug)]
pub struct ProcessMemory(pub u32);

impl Memory for ProcessMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> Option<()> {
        foreign::read_memory(self.0, address, into).ok()
    }
}
