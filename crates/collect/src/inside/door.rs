//! The door of a program that carries the agent and stands by: a file of one page that the agent maps, by which calls are
//! switched on and off.
//!
//! Owns where doors lie and who is believed to be behind one. What is recorded is nobody's business here.

use super::arena::{ARENA_MAGIC, DOOR_JOIN, DOOR_LEAVE, Door as Page};
use crate::clock::monotonic_ns;
use crate::wire::read;
use anyhow::{Context, Result, bail};
use std::borrow::Cow;
use std::fs::File;
use std::mem::offset_of;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Where agents keep doors, as `door.h` has it, and how a user's folder of them begins.
const PLACES: [&str; 2] = ["dev/shm", "tmp"];
const FOLDER: &str = "gpuscope-doors-";

/// The door of a program that carries the agent and stands by. Nobody else has it as long as this one lives.
pub(super) struct Door {
    file: File,
    pub pid: u32,
    /// What the page's `joined` will be when the agent has followed; `None`: we have not knocked.
    due: Option<u64>,
}

impl Door {
    /// The door of process `pid`; `None`: it has none.
    ///
    /// # Errors
    /// Another gpuscope stands there.
    pub(super) fn of(pid: u32) -> Result<Option<Door>> {
        let Some(file) = file_of(pid) else { return Ok(None) };
        // SAFETY: a plain call on a descriptor of our own
        if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
            bail!("process {pid} is traced from inside by another gpuscope\nhint: end that one first");
        }
        Ok(Some(Door { file, pid, due: None }))
    }

    fn joined(&self) -> u64 {
        page_of(&self.file).map_or(0, |page| page.joined)
    }

    /// Asks the agent to follow us, who listen at `socket`; it does with its program's next call.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn knock(&mut self, socket: &Path) -> Result<()> {
        let joined = self.joined();
        // it may be another gpuscope's still, which was killed: then it leaves that one first
        self.due = Some(joined + 1 + joined % 2);
        let mut path = [0; size_of::<[u8; 112]>()];
        for (to, from) in path[..111].iter_mut().zip(socket.as_os_str().as_bytes()) {
            *to = *from;
        }
        let wake = offset_of!(Page, wake) as u64;
        let written = self
            .file
            .write_all_at(&path, offset_of!(Page, path) as u64)
            .and_then(|()| self.put(offset_of!(Page, beat), monotonic_ns()))
            .and_then(|()| self.file.write_all_at(&DOOR_JOIN.to_ne_bytes(), wake));
        written.with_context(|| format!("failed to reach the agent in process {}", self.pid))
    }

    /// Says that we are there still.
    pub(super) fn beat(&self) {
        // where it cannot be written any more, the agent leaves by itself
        let _ = self.put(offset_of!(Page, beat), monotonic_ns());
    }

    /// Whether the agent has followed.
    pub(super) fn has_joined(&self) -> bool {
        self.due.is_none_or(|due| self.joined() >= due)
    }

    /// Whether the agent followed once, and left.
    pub(super) fn has_left(&self) -> bool {
        self.due.is_some_and(|due| self.joined() > due)
    }

    /// By which it is known among what processes map.
    pub(super) fn inode(&self) -> Option<u64> {
        self.file.metadata().ok().map(|facts| facts.ino())
    }

    /// Has the agent leave with its program's next call.
    pub(super) fn leave(&self) {
        let wake = offset_of!(Page, wake) as u64;
        // the process is gone, or leaves by itself where it hears of us no more
        let _ = self.file.write_all_at(&DOOR_LEAVE.to_ne_bytes(), wake);
        let _ = self.put(offset_of!(Page, beat), 0);
    }

    fn put(&self, offset: usize, word: u64) -> std::io::Result<()> {
        self.file.write_all_at(&word.to_ne_bytes(), offset as u64)
    }
}

/// What the agent of process `pid` says of itself; `None`: there is no door.
pub(super) fn behind(pid: u32) -> Option<Page> {
    page_of(&file_of(pid)?)
}

/// Where doors of a user's programs may be, seen from the root of one of them.
pub(crate) fn folders_of(root: &Path, user: u32) -> Vec<PathBuf> {
    let folder = |place: &&str| root.join(place).join(format!("{FOLDER}{user}"));
    PLACES.iter().map(folder).collect()
}

/// The file behind which process `pid` waits: its user's, made by itself.
fn file_of(pid: u32) -> Option<File> {
    let root = PathBuf::from(format!("/proc/{pid}/root"));
    let own = own_number(pid)?;
    let owner = std::fs::metadata(format!("/proc/{pid}")).ok()?.uid();
    let folders = PLACES.iter().flat_map(|place| folders_in(&root.join(place)));
    let mut files = folders.filter_map(|folder| {
        let mut options = File::options();
        options.read(true).write(true);
        // somebody may have planted something else
        options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        options.open(folder.join(own.to_string())).ok()
    });
    files.find(|file| {
        let is_own = file
            .metadata()
            .is_ok_and(|facts| facts.is_file() && facts.uid() == owner);
        let is_known = page_of(file).is_some_and(|page| page.magic == ARENA_MAGIC && page.tgid == own);
        is_own && is_known && is_mapped_by(pid, file)
    })
}

fn folders_in(place: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
    let is_folder = |path: &PathBuf| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with(FOLDER))
    };
    entries.map(|entry| entry.path()).filter(is_folder).collect()
}

/// What a process calls itself, in its own namespace.
pub(crate) fn own_number(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    // before Linux 4.1 nothing says it
    line.map_or(Some(pid), |line| line.split_whitespace().next_back()?.parse().ok())
}

/// Whether it is no door of a process that had this number before.
fn is_mapped_by(pid: u32, file: &File) -> bool {
    let maps = crate::discover::maps(pid).unwrap_or_default();
    file.metadata().is_ok_and(|facts| has_door(&maps, facts.ino()))
}

/// Whether process `pid` has executed another program since it had that door: what it maps goes with the one before.
pub(super) fn has_executed(pid: u32, inode: u64) -> bool {
    // who may not be looked at, or has ended, tells nothing
    crate::discover::maps(pid).is_ok_and(|maps| !maps.is_empty() && !has_door(&maps, inode))
}

/// Whether process `pid` has made a door, wherever that is.
pub(super) fn has_made_one(pid: u32) -> bool {
    let maps = crate::discover::maps(pid).unwrap_or_default();
    doors_in(&maps).next().is_some()
}

fn has_door(maps: &[u8], inode: u64) -> bool {
    let own = inode.to_string();
    doors_in(maps).any(|line| line.split_whitespace().nth(4) == Some(own.as_str()))
}

fn doors_in(maps: &[u8]) -> impl Iterator<Item = Cow<'_, str>> {
    let lines = maps.split(|byte| *byte == b'\n').map(String::from_utf8_lossy);
    lines.filter(|line| line.contains(FOLDER))
}

fn page_of(file: &File) -> Option<Page> {
    let mut bytes = [0; size_of::<Page>()];
    file.read_exact_at(&mut bytes, 0).ok()?;
    read::<Page>(&bytes)
}

/// Removes doors of processes that are no more. Agents cannot: they do not see the end.
pub(crate) fn sweep() {
    // SAFETY: asks the kernel, and cannot fail
    let own = unsafe { libc::geteuid() };
    for place in PLACES {
        let folder = Path::new("/").join(place).join(format!("{FOLDER}{own}"));
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        for entry in entries {
            let number = |name: &str| name.strip_suffix(".gpu").unwrap_or(name).parse();
            let is_over = |name: &str| number(name).is_ok_and(crate::discover::is_gone);
            if entry.file_name().to_str().is_some_and(is_over) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}
