//! Memory that a worker and who started it share.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Bytes that both sides can write to: the largest text or piece of a file.
pub(crate) const SHARED_BYTES: usize = 16 << 20;

/// Memory that two processes map. It cannot shrink under who reads it.
#[derive(Debug)]
pub(super) struct Shared(*mut u8);

// SAFETY: it is copied from and to only, through whoever owns it
unsafe impl Send for Shared {}

impl Shared {
    pub(super) fn new() -> io::Result<(Shared, OwnedFd)> {
        // SAFETY: a new descriptor, which nobody else owns
        let memory = unsafe {
            let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
            let got = libc::memfd_create(c"gpuscope answers".as_ptr(), flags);
            if got < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(got)
        };
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        // SAFETY: the descriptor is ours
        unsafe {
            if libc::ftruncate(memory.as_raw_fd(), SHARED_BYTES as libc::off_t) != 0
                || libc::fcntl(memory.as_raw_fd(), libc::F_ADD_SEALS, seals) != 0
            {
                return Err(io::Error::last_os_error());
            }
        }
        Ok((Shared::map(memory.as_raw_fd())?, memory))
    }

    pub(super) fn map(memory: RawFd) -> io::Result<Shared> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, which nothing else uses
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                SHARED_BYTES,
                protection,
                libc::MAP_SHARED,
                memory,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Shared(start.cast()))
    }

    pub(super) fn copy_out(&self, into: &mut [u8]) {
        let size = into.len().min(SHARED_BYTES);
        // SAFETY: both are at least as long
        unsafe { std::ptr::copy_nonoverlapping(self.0, into.as_mut_ptr(), size) };
    }

    pub(super) fn copy_in(&self, bytes: &[u8]) -> usize {
        let size = bytes.len().min(SHARED_BYTES);
        // SAFETY: both are at least as long
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.0, size) };
        size
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: unmaps what `map` mapped
        unsafe { libc::munmap(self.0.cast(), SHARED_BYTES) };
    }
}
