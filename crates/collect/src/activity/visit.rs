//! Calling at a program that waits to be asked what its GPUs execute (`gpuscope preload`).
//!
//! Owns where such programs listen and who is believed to. The program's side is `standby.h`.

use super::shared::{ACTIVITY_MAGIC, ActivityMessage};
use crate::discover;
use crate::inside::door::{folders_of, own_number};
use crate::inside::socket::Caller;
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Whether process `pid` waits to be asked.
#[must_use]
pub fn is_waiting(pid: u32) -> bool {
    socket_of(pid).is_some()
}

/// A connection with process `pid`; `None`: it does not wait.
///
/// # Errors
/// Somebody else listens there, or it does not answer.
pub(super) fn call_at(pid: u32, patience: Duration) -> Result<Option<Caller>> {
    let Some(socket) = socket_of(pid) else { return Ok(None) };
    let path = PathBuf::from(format!("/proc/self/fd/{}", socket.as_raw_fd()));
    let caller = Caller::to(&path).with_context(|| format!("process {pid} does not listen"))?;
    if caller.pid != pid {
        bail!("somebody else listens in place of process {pid}");
    }
    let greeting: Option<ActivityMessage> = caller.hear_within(patience);
    if greeting.is_none_or(|greeting| greeting.magic != ACTIVITY_MAGIC) {
        bail!(
            "process {pid} does not answer: it is stopped, its gpuscope is another one, another gpuscope asks it now, or CUPTI has kept it waiting since an earlier visit"
        );
    }
    Ok(Some(caller))
}

/// The file of its socket, opened without following any link.
fn socket_of(pid: u32) -> Option<File> {
    let (number, owner) = (own_number(pid)?, owner_of(pid)?);
    let root = PathBuf::from(format!("/proc/{pid}/root"));
    let folders = folders_of(&root, owner);
    let mut files = folders
        .into_iter()
        .filter_map(|folder| open(&folder.join(format!("{number}.gpu"))));
    files.find(|file| {
        let is_its = |facts: std::fs::Metadata| facts.file_type().is_socket() && facts.uid() == owner;
        file.metadata().is_ok_and(is_its)
    })
}

fn owner_of(pid: u32) -> Option<u32> {
    let is_there = !discover::has_ended(pid);
    let facts = std::fs::metadata(format!("/proc/{pid}")).ok().filter(|_| is_there)?;
    Some(facts.uid())
}

fn open(path: &Path) -> Option<File> {
    let mut options = File::options();
    options.read(true).custom_flags(libc::O_PATH | libc::O_NOFOLLOW);
    options.open(path).ok()
}
