//! Bounded reads of another process's memory.

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

/// The memory of a running process.
#[derive(Clone, Copy, Debug)]
pub struct ProcessMemory(pub u32);

impl Memory for ProcessMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> Option<()> {
        let local = libc::iovec {
            iov_base: into.as_mut_ptr().cast(),
            iov_len: into.len(),
        };
        let remote = libc::iovec {
            iov_base: std::ptr::with_exposed_provenance_mut(usize::try_from(address).ok()?),
            iov_len: into.len(),
        };
        let pid = i32::try_from(self.0).ok()?;
        // SAFETY: the kernel writes to `into` alone, and checks the other process's addresses itself
        let read = unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) };
        (usize::try_from(read).ok()? == into.len()).then_some(())
    }
}
