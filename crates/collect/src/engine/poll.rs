//! Waiting for descriptors, and descriptors that one thread rings for another to wake.

use anyhow::{Context, Result};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::FromRawFd;

/// Waits until one of `fds` is readable or `millis` are over (-1: for ever); whether one is.
pub(crate) fn wait_readable<const N: usize>(fds: [i32; N], millis: i32) -> bool {
    let mut polled = fds.map(|fd| libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    });
    // SAFETY: `polled` is an array of initialised entries
    unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, millis) > 0 }
}

/// Readable from when it is rung until it is emptied.
///
/// # Errors
/// There are too many descriptors.
pub(crate) fn event_descriptor() -> Result<File> {
    // SAFETY: makes a descriptor that nobody else owns
    unsafe {
        let fd = libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK);
        if fd < 0 {
            return Err(io::Error::last_os_error()).context("failed to make an event descriptor");
        }
        Ok(File::from_raw_fd(fd))
    }
}

pub(crate) fn ring(event: &File) {
    let _ = (&mut &*event).write_all(&1u64.to_ne_bytes());
}

pub(crate) fn empty(event: &File) {
    let mut count = [0; 8];
    // nothing to read: nobody has rung
    let _ = (&mut &*event).read(&mut count);
}
