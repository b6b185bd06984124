//! Bounded reads from a file, or from bytes in memory.

use std::fs::{File, Metadata, OpenOptions};
use std::ops::{ControlFlow, Range};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use super::ElfError;
use crate::foreign::handle::descriptor_path;

/// Large enough that the system call does not show, small enough to stay in the cache.
const CHUNK: usize = 1 << 20;

/// Bytes that somebody else reads for us.
pub trait ReadAt: std::fmt::Debug + Send + Sync {
    /// Fills `into` with what lies at `offset`.
    ///
    /// # Errors
    /// Not all of it can be read.
    fn read_exact_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<()>;
}

/// What was changed so recently may change once more without another time of change.
const SETTLED_S: i64 = 3;

/// What tells a file from any other, and from itself before it was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub(crate) struct FileIdentity {
    pub device: u64,
    pub inode: u64,
    pub bytes: u64,
    /// Seconds and nanoseconds since 1970.
    pub written: (i64, i64),
    /// Which nobody can set.
    pub changed: (i64, i64),
}

impl FileIdentity {
    /// Whether it tells the file from what it may become.
    pub(crate) fn is_settled(&self) -> bool {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.is_ok_and(|now| now.as_secs().cast_signed() - self.changed.0.max(self.written.0) > SETTLED_S)
    }
}

#[derive(Debug)]
enum Backing {
    File(File),
    Other(Box<dyn ReadAt>),
    Bytes(Vec<u8>),
}

#[derive(Debug)]
pub(super) struct Source {
    backing: Backing,
    len: u64,
}

impl Source {
    pub(super) fn open(path: &Path) -> Result<Self, ElfError> {
        // Opening can already have an effect (a tape rewinds, a FIFO waits), so look before, at the very file.
        let mut options = OpenOptions::new();
        let found = options
            .read(true)
            .custom_flags(libc::O_PATH | libc::O_CLOEXEC)
            .open(path)?;
        let metadata = found.metadata()?;
        regular(&metadata)?;
        let file = options
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC | libc::O_NOCTTY)
            .open(descriptor_path(found.as_fd()))?;
        Ok(Self {
            len: metadata.len(),
            backing: Backing::File(file),
        })
    }

    /// A regular file that is open, with as many bytes.
    pub(super) fn of(file: File, len: u64) -> Self {
        Self {
            len,
            backing: Backing::File(file),
        }
    }

    pub(super) fn read_from(other: Box<dyn ReadAt>, len: u64) -> Self {
        Self {
            backing: Backing::Other(other),
            len,
        }
    }

    pub(super) fn from_bytes(bytes: Vec<u8>) -> Self {
        let len = bytes.len() as u64;
        Self {
            backing: Backing::Bytes(bytes),
            len,
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// `None`: no file that we read ourselves.
    pub(super) fn identity(&self) -> Option<FileIdentity> {
        let Backing::File(file) = &self.backing else {
            return None;
        };
        let facts = file.metadata().ok()?;
        Some(FileIdentity {
            device: facts.dev(),
            inode: facts.ino(),
            bytes: facts.size(),
            written: (facts.mtime(), facts.mtime_nsec()),
            changed: (facts.ctime(), facts.ctime_nsec()),
        })
    }

    /// Exactly `size` bytes, which may be at most `limit`; `what` names them in an error.
    pub(super) fn read(&self, what: &'static str, offset: u64, size: u64, limit: u64) -> Result<Vec<u8>, ElfError> {
        self.check(what, offset, size)?;
        let too_large = ElfError::TooLarge { what, size, limit };
        if size > limit {
            return Err(too_large);
        }
        let Ok(size) = usize::try_from(size) else {
            return Err(too_large);
        };
        let mut bytes = vec![0; size];
        self.fill(offset, &mut bytes)?;
        Ok(bytes)
    }

    /// As many of `size` bytes as the file has from `offset` on.
    pub(super) fn read_up_to(&self, offset: u64, size: usize) -> Result<Vec<u8>, ElfError> {
        let has = self.len.saturating_sub(offset).min(size as u64);
        self.read("bytes", offset, has, size as u64)
    }

    /// Fails unless the range lies inside the file.
    pub(super) fn check(&self, what: &'static str, offset: u64, size: u64) -> Result<(), ElfError> {
        match offset.checked_add(size) {
            Some(end) if end <= self.len => Ok(()),
            end => Err(ElfError::Truncated {
                what,
                end: end.unwrap_or(u64::MAX),
                len: self.len,
            }),
        }
    }

    /// Calls `visit` with the offset and bytes of successive pieces of `range`. Neighbours share `overlap` bytes, so that
    /// an item of up to `overlap` + 1 bytes is whole in one of them. `overlap` must be below half a mebibyte.
    pub(super) fn chunks(
        &self,
        what: &'static str,
        range: Range<u64>,
        overlap: usize,
        visit: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), ElfError> {
        self.check(what, range.start, range.end.saturating_sub(range.start))?;
        let mut buffer = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let size = usize::try_from(range.end - at).unwrap_or(CHUNK).min(CHUNK);
            buffer.resize(size, 0);
            self.fill(at, &mut buffer)?;
            if visit(at, &buffer).is_break() || at + size as u64 >= range.end {
                break;
            }
            at += (size - overlap) as u64;
        }
        Ok(())
    }

    fn fill(&self, offset: u64, into: &mut [u8]) -> Result<(), ElfError> {
        match &self.backing {
            Backing::File(file) => file.read_exact_at(into, offset)?,
            Backing::Other(other) => other.read_exact_at(offset, into)?,
            Backing::Bytes(bytes) => {
                let from = usize::try_from(offset)
                    .ok()
                    .and_then(|start| bytes.get(start..start.checked_add(into.len())?));
                into.copy_from_slice(from.ok_or(ElfError::Damaged("a read past the end"))?);
            }
        }
        Ok(())
    }
}

fn regular(metadata: &Metadata) -> Result<(), ElfError> {
    let kind = metadata.file_type();
    if kind.is_file() {
        return Ok(());
    }
    Err(ElfError::NotRegular(match () {
        () if kind.is_dir() => "a directory",
        () if kind.is_fifo() => "a FIFO",
        () if kind.is_socket() => "a socket",
        () if kind.is_char_device() || kind.is_block_device() => "a device",
        () => "something else",
    }))
}
