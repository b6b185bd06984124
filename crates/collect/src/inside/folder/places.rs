//! Where what programs load may lie: folders that may be written and whose code may be run, else memory.

use super::Library;
use anyhow::{Context, Result};
use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Whether every user may enter it, and all those that it lies in.
pub(super) fn lets_everybody_pass(folder: &Path) -> bool {
    let may = |folder: &Path| fs::metadata(folder).is_ok_and(|facts| facts.mode() & libc::S_IXOTH != 0);
    folder.ancestors().all(may)
}

/// A folder of the user's, memory, and where temporary files go. What is root's alone comes last: root starts programs of others.
pub(in crate::inside) fn places() -> Vec<PathBuf> {
    let named = ["XDG_RUNTIME_DIR", "TMPDIR"].map(|name| std::env::var_os(name).map(PathBuf::from));
    let [own, temporary] = named;
    let fixed = ["/dev/shm", "/tmp", "/var/tmp"].map(PathBuf::from);
    let [memory, usual, last] = fixed;
    let all = [own, Some(memory), temporary, Some(usual), Some(last)];
    let mut all: Vec<PathBuf> = all.into_iter().flatten().filter(|path| path.is_absolute()).collect();
    if crate::user::effective() == 0 {
        all.sort_by_key(|path| !lets_everybody_pass(path));
    }
    all
}

/// Whether the file system lets code of a file be run.
pub(in crate::inside) fn may_be_run(path: &Path) -> Result<()> {
    let file = File::open(path)?;
    // SAFETY: a mapping of our own, which is taken away at once
    unsafe {
        let rights = libc::PROT_READ | libc::PROT_EXEC;
        let at = libc::mmap(
            std::ptr::null_mut(),
            4096,
            rights,
            libc::MAP_PRIVATE,
            file.as_raw_fd(),
            0,
        );
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error()).context("it is mounted noexec");
        }
        libc::munmap(at, 4096);
    }
    Ok(())
}

/// Whether it is a folder of one of these users that nobody else may write to.
pub(in crate::inside) fn is_of(users: &[u32], facts: &fs::Metadata) -> bool {
    facts.is_dir() && users.contains(&facts.uid()) && facts.mode() & 0o022 == 0
}

/// Whoever reads it may run it.
pub(in crate::inside) fn let_run(path: &Path) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

/// A file without a name, which processes of this user find by ours.
pub(super) fn in_memory(library: Library) -> Result<OwnedFd> {
    let name = CString::new(library.file)?;
    // SAFETY: a name that ends, and a descriptor that nobody else owns
    let file = unsafe {
        let fd = libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC);
        if fd < 0 {
            return Err(io::Error::last_os_error()).context("failed to make a file in memory");
        }
        OwnedFd::from_raw_fd(fd)
    };
    let mut file = File::from(file);
    file.write_all(library.bytes)
        .context("failed to write what programs load into memory")?;
    Ok(file.into())
}
