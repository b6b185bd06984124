//! System calls that open a name in a folder.

use std::ffi::CString;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

/// Of new files: they hold arguments, command lines and stacks.
const PRIVATE: libc::mode_t = 0o600;

pub(super) fn open_at(folder: RawFd, name: &CString, flags: i32) -> io::Result<OwnedFd> {
    // SAFETY: the name ends in a zero; the descriptor that comes back is nobody else's
    unsafe {
        let fd = libc::openat(folder, name.as_ptr(), flags, PRIVATE);
        outcome(fd.min(0)).map(|()| OwnedFd::from_raw_fd(fd))
    }
}

pub(super) fn outcome(answer: i32) -> io::Result<()> {
    match answer {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
