//! What is asked of the process that touches what others control, and what it answers.

use super::handle::Handle;
use super::layers;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where a file is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Place {
    /// At a path of this process's.
    Path(Vec<u8>),
    Mapped(Mapped),
}

/// Mapped by a process: what its maps say.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Mapped {
    pub pid: u32,
    /// As `map_files` names the mapping.
    pub range: String,
    pub device: String,
    pub inode: u64,
    pub deleted: bool,
    pub path: Vec<u8>,
}

/// What is asked.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// To find a regular file.
    Find(Place),
    /// To read of a file that was found: the descriptor comes with it.
    Read { number: u64, offset: u64, size: usize },
    /// In which page of the machine's memory a file begins; the descriptor comes with it.
    Frame { number: u64 },
    /// To have these bytes of a file in memory; the descriptor comes with it.
    Touch { number: u64, offsets: Vec<u64> },
    /// To read a process's memory.
    Memory { pid: u32, address: u64, size: usize },
    /// To read a file of `/proc`, up to a limit.
    Text { path: PathBuf, limit: usize },
    /// The names in a folder, each with a NUL after it.
    Names { path: PathBuf },
}

/// What is answered. What was read lies in the shared memory.
#[derive(Debug, Serialize, Deserialize)]
pub enum Answer {
    /// With its descriptor.
    Found(Facts),
    Bytes(usize),
    /// 0: the kernel does not tell.
    Frame(u64),
    Done,
    Failed {
        code: Option<i32>,
        why: String,
    },
}

/// What is known of a file without opening it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    pub device: u64,
    pub inode: u64,
    pub bytes: u64,
    /// Seconds and nanoseconds since 1970.
    pub modified: (i64, i64),
    /// As in `linux/magic.h`; 0: the file system does not tell.
    pub file_system: i64,
    /// Whether reads and closes are answered by this machine's kernel alone.
    pub is_local: bool,
}

impl Facts {
    /// Of a file that was found at `place`.
    ///
    /// # Errors
    /// Its file system does not tell.
    pub(crate) fn of(found: &Handle, place: &Place) -> io::Result<Facts> {
        let data = found.metadata()?;
        Ok(Facts {
            device: data.dev(),
            inode: data.ino(),
            bytes: data.len(),
            modified: (data.mtime(), data.mtime_nsec()),
            file_system: found.file_system().unwrap_or_default(),
            is_local: layers::are_local(found, place.pid()),
        })
    }
}

impl From<&io::Error> for Answer {
    fn from(error: &io::Error) -> Answer {
        Answer::Failed {
            code: error.raw_os_error(),
            why: error.to_string(),
        }
    }
}

impl Place {
    /// The process that maps it, where it is known by that.
    fn pid(&self) -> Option<u32> {
        match self {
            Place::Path(_) => None,
            Place::Mapped(mapped) => Some(mapped.pid),
        }
    }

    /// Finds the file.
    ///
    /// # Errors
    /// There is none there, it is no regular file, or its process is gone or may not be looked at.
    pub fn find(&self) -> io::Result<Handle> {
        match self {
            Place::Path(path) => Handle::find(Path::new(OsStr::from_bytes(path))),
            Place::Mapped(mapped) => mapped.find(),
        }
    }
}

impl Mapped {
    fn find(&self) -> io::Result<Handle> {
        // what the kernel has of the mapping itself leads nowhere else, but not everybody may follow it
        let entry = format!("/proc/{}/map_files/{}", self.pid, self.range);
        Handle::find(Path::new(&entry)).or_else(|refused| self.find_by_path(refused))
    }

    /// Its path is where links may have been planted meanwhile: only the file that is mapped will do.
    fn find_by_path(&self, refused: io::Error) -> io::Result<Handle> {
        if self.deleted {
            return Err(refused);
        }
        let root = format!("/proc/{}/root", self.pid);
        // the path is the whole one: no link is part of it
        let found = Handle::find_in(Path::new(&root), Path::new(OsStr::from_bytes(&self.path)))?;
        if self.is_that_of(&found)? {
            return Ok(found);
        }
        Err(io::Error::new(
            io::ErrorKind::NotFound,
            "another file has its name by now; hint: with cap_sys_admin or cap_checkpoint_restore what is mapped can be opened",
        ))
    }

    fn is_that_of(&self, found: &Handle) -> io::Result<bool> {
        let (data, kind) = (found.metadata()?, found.file_system()?);
        // stacked file systems show another inode in the mapping than in the directory
        if kind == libc::OVERLAYFS_SUPER_MAGIC {
            return Ok(true);
        }
        let device = format!("{:02x}:{:02x}", libc::major(data.dev()), libc::minor(data.dev()));
        // and subvolumes of btrfs another device
        Ok(data.ino() == self.inode && (device == self.device || kind == libc::BTRFS_SUPER_MAGIC))
    }
}
