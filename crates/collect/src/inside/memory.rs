//! Memory that is shared with other processes: a file that lies nowhere, which nobody can shorten, so that reading it never
//! fails. What the other side writes is copied out before it is looked at.

use crate::wire::{Plain, bytes_of, zero};
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A piece of memory and the file that others map it by.
pub(crate) struct SharedMemory {
    file: OwnedFd,
    at: NonNull<u8>,
    bytes: u64,
}

// SAFETY: it is memory that other processes write anyway; each access is one of a word, or copies bytes
unsafe impl Send for SharedMemory {}
// SAFETY: as above
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// All zero, and taken from the machine only as far as it is used.
    ///
    /// # Errors
    /// There is no memory, or no room for more of it in our addresses.
    pub(crate) fn make(bytes: u64) -> Result<SharedMemory> {
        let file = sealed_file(bytes).context("failed to make memory to share")?;
        SharedMemory::map(file, bytes)
    }

    /// The memory that `file` is.
    ///
    /// # Errors
    /// It is shorter, or there is no room for it in our addresses.
    pub(crate) fn over(file: OwnedFd, bytes: u64) -> Result<SharedMemory> {
        let file = File::from(file);
        if file.metadata()?.len() < bytes {
            bail!("it is no memory of an agent");
        }
        SharedMemory::map(file.into(), bytes)
    }

    fn map(file: OwnedFd, bytes: u64) -> Result<SharedMemory> {
        // SAFETY: a new mapping of a file of our own, wherever there is room
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_NORESERVE,
                file.as_raw_fd(),
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error())
                .context("failed to map memory to share\nhint: ulimit -v is too small");
        }
        let Some(at) = NonNull::new(at.cast()) else {
            bail!("failed to map memory to share")
        };
        Ok(SharedMemory { file, at, bytes })
    }

    /// The file.
    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// The same, for reading alone.
    ///
    /// # Errors
    /// `/proc` is not there.
    pub(crate) fn read_only(&self) -> Result<OwnedFd> {
        let path = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let file = File::open(&path).with_context(|| format!("failed to open {path}"))?;
        Ok(file.into())
    }

    fn place(&self, offset: u64, bytes: usize) -> Option<NonNull<u8>> {
        let end = offset.checked_add(bytes as u64)?;
        // SAFETY: it lies within the mapping
        (end <= self.bytes).then(|| unsafe { self.at.add(offset as usize) })
    }

    /// Copies what lies at `offset` as far as it is there.
    pub(crate) fn copy(&self, offset: u64, to: &mut [u8]) {
        match self.place(offset, to.len()) {
            // SAFETY: both are as long; what somebody writes meanwhile is copied as it is at the time
            Some(from) => unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to.as_mut_ptr(), to.len()) },
            None => to.fill(0),
        }
    }

    /// A structure.
    pub(crate) fn get<T: Plain>(&self, offset: u64) -> T {
        match self.place(offset, size_of::<T>()) {
            // SAFETY: as in `copy`; any bytes are one
            Some(from) => unsafe { from.cast::<T>().read_unaligned() },
            None => zero(),
        }
    }

    /// Writes bytes, where there is room for them.
    pub(crate) fn put(&self, offset: u64, bytes: &[u8]) {
        if let Some(to) = self.place(offset, bytes.len()) {
            // SAFETY: as in `copy`
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.as_ptr(), bytes.len()) }
        }
    }

    /// Writes a structure.
    pub(crate) fn set<T: Plain>(&self, offset: u64, value: &T) {
        self.put(offset, bytes_of(value));
    }

    /// An aligned word; one beyond the end is always 0.
    pub(crate) fn word(&self, offset: u64) -> &AtomicU64 {
        static NOTHING: AtomicU64 = AtomicU64::new(0);
        let place = self.place(offset, 8).filter(|_| offset.is_multiple_of(8));
        // SAFETY: aligned, within the mapping, which lives as long as `self`
        place.map_or(&NOTHING, |at| unsafe { AtomicU64::from_ptr(at.as_ptr().cast()) })
    }

    /// The same of four bytes.
    pub(crate) fn half(&self, offset: u64) -> &AtomicU32 {
        static NOTHING: AtomicU32 = AtomicU32::new(0);
        let place = self.place(offset, 4).filter(|_| offset.is_multiple_of(4));
        // SAFETY: as in `word`
        place.map_or(&NOTHING, |at| unsafe { AtomicU32::from_ptr(at.as_ptr().cast()) })
    }

    /// A word as it is now.
    pub(crate) fn now(&self, offset: u64) -> u64 {
        self.word(offset).load(Ordering::Acquire)
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping is our own, and nothing of it is used any more
        unsafe {
            libc::munmap(self.at.as_ptr().cast(), self.bytes as usize);
        }
    }
}

/// A file of that length for ever.
fn sealed_file(bytes: u64) -> io::Result<OwnedFd> {
    // SAFETY: makes a descriptor that nobody else owns
    let file = unsafe {
        let fd = libc::memfd_create(c"gpuscope".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        OwnedFd::from_raw_fd(fd)
    };
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: plain calls on a descriptor of our own
    unsafe {
        if libc::ftruncate(file.as_raw_fd(), bytes as libc::off_t) != 0
            || libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) != 0
        {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_beyond_the_end_is_nothing() {
        let memory = SharedMemory::make(8192).expect("memory");
        memory.set(8184, &7u64);
        memory.set(8185, &9u64);
        assert_eq!((memory.get::<u64>(8184), memory.get::<u64>(8185)), (7, 0));
        assert_eq!((memory.now(8184), memory.now(8192), memory.now(8185)), (7, 0, 0));
        let mut bytes = [1; 4];
        memory.copy(u64::MAX - 1, &mut bytes);
        assert_eq!(bytes, [0; 4]);
    }

    #[test]
    fn nobody_can_shorten_it() {
        let memory = SharedMemory::make(8192).expect("memory");
        // SAFETY: a plain call on an open descriptor
        let shortened = unsafe { libc::ftruncate(memory.file().as_raw_fd(), 0) };
        assert_eq!(shortened, -1);
        let mut to_read: File = memory.read_only().expect("a descriptor").into();
        assert!(io::Write::write(&mut to_read, &[1]).is_err());
    }
}
