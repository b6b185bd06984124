//! A read lease on each probed file: whoever wants to overwrite it in place has to wait until we let go.
//!
//! Overwriting a file under a probe leaves the breakpoint's bytes inconsistent and crashes the next process
//! that maps it; with the lease the kernel tells us first. Owns the lease, and who can have none.

mod guardian;

pub use guardian::GUARDIAN;

use crate::engine::Engine;
use crate::foreign::ForeignFile;
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};

/// A writer is noticed by looking; without a handler the kernel's signal would end us, and ignoring it would be inherited.
extern "C" fn on_break(_signal: i32) {}

/// What stands between a probed file and who would overwrite it.
#[derive(Debug)]
pub(crate) enum Guard {
    Leased(Lease),
    /// Nothing, and why that cannot be changed by waiting.
    None(Unleased),
    /// Nothing: the file stays as it is, whoever traces the programs that map it.
    NotNeeded,
}

/// The guard that a file needs while `engine` hooks its functions.
///
/// # Errors
/// Somebody writes it now.
pub(super) fn guard(engine: &dyn Engine, file: &ForeignFile) -> Result<Guard, OpenForWriting> {
    match engine.is_inside() {
        Some(_) => Ok(Guard::NotNeeded),
        None => take(file),
    }
}

/// Why a file has no lease although nobody writes to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Unleased {
    /// Its file system keeps none, or keeps them for its server alone.
    FileSystem,
    /// It belongs to somebody else, and we lack CAP_LEASE.
    NotOurs,
    /// The kernel says no in another way.
    Refused(i32),
}

/// Somebody has the file open for writing: what was read of it may be something else in the next moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "not probed while somebody has it open for writing: programs that load it would crash once it is overwritten; hint: fuser -v tells who"
)]
pub(crate) struct OpenForWriting;

impl Unleased {
    /// What follows for all files of which this is so.
    pub(crate) fn words(self, files: usize) -> String {
        let (what, have) = match files {
            1 => ("a probed file has".to_owned(), "its"),
            _ => (format!("{files} probed files have"), "their"),
        };
        let why = match self {
            Unleased::FileSystem => format!("as {have} file system keeps none"),
            Unleased::NotOurs => "as the owner is somebody else; hint: run as root, or with cap_lease".to_owned(),
            Unleased::Refused(error) => format!("as the kernel says: {}", io::Error::from_raw_os_error(error)),
        };
        format!(
            "{what} no lease, {why}: who overwrites one in place meanwhile may crash programs that load it; replacing it \
             by another (mv, package managers) is safe"
        )
    }
}

/// What is to be said of the files without a lease.
pub(crate) fn words(guards: impl Iterator<Item = Unleased>) -> Vec<String> {
    let guards: Vec<Unleased> = guards.collect();
    let kinds: BTreeSet<Unleased> = guards.iter().copied().collect();
    let count = |kind| guards.iter().filter(|guard| **guard == kind).count();
    kinds.into_iter().map(|kind| kind.words(count(kind))).collect()
}

/// A lease, given back when dropped: that lets a writer go on.
#[derive(Debug)]
pub struct Lease {
    file: File,
    /// What the guardian knows it by; `None`: it does not.
    number: Option<u64>,
    /// To a process that has the same descriptor, and gives it back.
    left: bool,
}

impl Lease {
    /// Whether somebody waits to write to the file; or has done so, as the kernel waits for us for a while only.
    pub(crate) fn is_wanted(&self) -> bool {
        is_wanted(&self.file)
    }

    pub(super) fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.left {
            return;
        }
        // SAFETY: changes a flag of an open descriptor
        unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_SETLEASE, libc::F_UNLCK) };
        if let Some(number) = self.number {
            guardian::forget(number);
        }
    }
}

/// While a break is pending the kernel tells the lease to fall back to.
pub(super) fn is_wanted(file: &impl AsRawFd) -> bool {
    // SAFETY: reads a flag of an open descriptor
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLEASE) != libc::F_RDLCK }
}

fn set(file: &File) -> io::Result<()> {
    // SAFETY: changes a flag of an open descriptor
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_RDLCK) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Takes a read lease on `file`, or says why there can be none.
///
/// # Errors
/// Somebody has it open for writing.
pub(crate) fn take(file: &ForeignFile) -> Result<Guard, OpenForWriting> {
    let number = |error: io::Error| error.raw_os_error().unwrap_or(libc::EIO);
    // a lease is its description's: this one is opened for it
    let own = match file.open_here() {
        Ok(Some(own)) => own,
        Ok(None) => return Ok(Guard::None(Unleased::FileSystem)),
        Err(error) => return Ok(Guard::None(Unleased::Refused(number(error)))),
    };
    // SAFETY: installs an async-signal-safe handler
    unsafe { libc::signal(libc::SIGIO, on_break as *const () as libc::sighandler_t) };
    let Err(refused) = set(&own) else {
        return Ok(Guard::Leased(Lease {
            file: own,
            number: None,
            left: false,
        }));
    };
    match number(refused) {
        libc::EAGAIN => Err(OpenForWriting),
        libc::EINVAL => Ok(Guard::None(Unleased::FileSystem)),
        libc::EACCES => Ok(Guard::None(Unleased::NotOurs)),
        other => Ok(Guard::None(Unleased::Refused(other))),
    }
}

/// Leases that were [left](Guard::leave) last until that process has ended.
pub(super) fn leave_to(pid: u32) {
    guardian::leave_to(pid);
}

static NEXT: AtomicU64 = AtomicU64::new(1);

impl Guard {
    pub(super) fn lease(&self) -> Option<&Lease> {
        match self {
            Guard::Leased(lease) => Some(lease),
            Guard::None(_) | Guard::NotNeeded => None,
        }
    }

    /// It lasts until a process ends that has [its descriptor](Lease::descriptor), too.
    pub(super) fn leave(&mut self) {
        if let Guard::Leased(lease) = self {
            lease.left = true;
        }
    }

    /// Has a lease given back in time even if this process is stopped: to be called before there are probes in `file`.
    pub(crate) fn watch(&mut self, file: &ForeignFile) {
        if let Guard::Leased(lease) = self {
            let number = *lease.number.get_or_insert_with(|| NEXT.fetch_add(1, Ordering::Relaxed));
            guardian::watch(number, file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lib.so");
        std::fs::write(&path, "code").unwrap();
        (folder, path)
    }

    #[test]
    fn a_lease_is_wanted_once_somebody_writes() {
        let (_folder, path) = file();
        let Ok(Guard::Leased(lease)) = take(&ForeignFile::find(&path).unwrap()) else {
            panic!("our own file on a local file system has a lease");
        };
        assert!(!lease.is_wanted());
        let mut options = std::fs::OpenOptions::new();
        let impatient = std::os::unix::fs::OpenOptionsExt::custom_flags(options.write(true), libc::O_NONBLOCK);
        assert_eq!(impatient.open(&path).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert!(lease.is_wanted());
        drop(lease);
        options.open(&path).unwrap();
    }

    #[test]
    fn a_file_that_is_open_for_writing_is_told_from_one_that_can_have_no_lease() {
        let (_folder, path) = file();
        let writer = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        assert_eq!(take(&ForeignFile::find(&path).unwrap()).unwrap_err(), OpenForWriting);
        drop(writer);
        assert!(take(&ForeignFile::find(&path).unwrap()).is_ok());
        // what the kernel makes up has none
        let made_up = take(&ForeignFile::find(std::path::Path::new("/proc/version")).unwrap()).unwrap();
        assert!(matches!(made_up, Guard::None(_)), "{made_up:?}");
    }

    #[test]
    fn files_without_a_lease_are_said_once_for_each_reason() {
        let said = words([Unleased::NotOurs, Unleased::FileSystem, Unleased::NotOurs].into_iter());
        assert_eq!(said.len(), 2);
        assert!(said[0].starts_with("a probed file has no lease, as its file system"));
        assert!(said[1].starts_with("2 probed files have no lease") && said[1].contains("cap_lease"));
    }
}
