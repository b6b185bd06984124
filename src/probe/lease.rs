//! A read lease on each probed file: whoever wants to overwrite it in place has to wait until we let go.
//!
//! Overwriting a file under a probe leaves the breakpoint's bytes inconsistent and crashes the next process
//! that maps it; with the lease the kernel tells us first. Owns nothing but the lease.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};

static BROKEN: AtomicBool = AtomicBool::new(false);

extern "C" fn on_break(_signal: i32) {
    BROKEN.store(true, Ordering::Relaxed);
}

/// Takes a read lease on `file`. False where the file system or our privileges do not allow it.
pub fn take(file: &File) -> bool {
    // SAFETY: installs an async-signal-safe handler and sets file descriptor flags; no memory is handed over
    unsafe {
        libc::signal(libc::SIGIO, on_break as *const () as libc::sighandler_t);
        libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_RDLCK) == 0
    }
}

/// Gives the lease back, which lets the writer go on.
pub fn release(file: &File) {
    // SAFETY: changes a flag of an open descriptor
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_UNLCK) };
}

/// Whether somebody waits for at least one lease, since the last call.
pub fn somebody_waits() -> bool {
    BROKEN.swap(false, Ordering::Relaxed)
}

/// Whether somebody waits to write to `file`, which we hold a lease on.
pub fn is_wanted(file: &File) -> bool {
    // SAFETY: reads a flag of an open descriptor; while a break is pending it tells the lease to fall back to
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLEASE) != libc::F_RDLCK }
}
