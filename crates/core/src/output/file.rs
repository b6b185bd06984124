//! Files that we make: where a path leads, who may have put what lies there, and whose the new file is.
//!
//! gpuscope runs as root in folders of others. A symbolic link is followed if it belongs to root, to us or to who called
//! sudo: nobody else decides what we write to. A new file is its owner's alone (0600), for it may hold arguments,
//! command lines and stacks, and belongs to who called sudo.

use super::syscall::{open_at, outcome};
use super::trust::{Trust, give};
use super::walk::{Found, Walk};
use crate::user;
use anyhow::{Context, Result, anyhow, bail};
use std::ffi::{CString, OsStr};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// A name may change while we look at it; not so often.
const ATTEMPTS: usize = 16;

/// A name in a folder that is open: nobody can move it elsewhere.
#[derive(Clone, Debug)]
pub struct Target {
    folder: Rc<OwnedFd>,
    name: CString,
    path: PathBuf,
}

/// The file at `path`, made now or emptied. Pipes and devices are opened as they are.
///
/// # Errors
/// It cannot be written, or somebody else has put something there.
pub fn create(path: &Path) -> Result<File> {
    with(path, &Trust::here(), false, |target, trust| target.emptied(trust))
}

/// A new file at `path`; what is there already is left alone.
///
/// # Errors
/// Something is there, or it cannot be made.
pub fn create_new(path: &Path) -> Result<File> {
    with(path, &Trust::here(), false, |target, trust| Ok(target.made(trust)?))
}

/// Makes the folder and all that lead there.
///
/// # Errors
/// It cannot be made, or a link of somebody else is in the way.
pub fn create_folder(path: &Path) -> Result<()> {
    let trust = Trust::here();
    let failed = || format!("failed to make the folder {}", path.display());
    Walk::new(&trust, true).folder(path).map(drop).with_context(failed)
}

fn with(path: &Path, trust: &Trust, make: bool, open: impl Fn(&Target, &Trust) -> Result<File>) -> Result<File> {
    Target::find(path, trust, make)
        .and_then(|target| open(&target, trust))
        .with_context(|| create_failed(path))
}

/// Says which file cannot be made, and what to look at.
#[must_use]
pub fn create_failed(path: &Path) -> String {
    format!(
        "failed to create {}\nhint: is its directory there and writable?",
        path.display()
    )
}

impl Target {
    /// The name that `path` ends in, in its folder.
    ///
    /// # Errors
    /// There is no such folder, or it is reached by a link of somebody else.
    pub fn of(path: &Path) -> Result<Target> {
        Target::find(path, &Trust::here(), false).with_context(|| create_failed(path))
    }

    fn find(path: &Path, trust: &Trust, make: bool) -> Result<Target> {
        let name = path.file_name().ok_or_else(|| anyhow!("it names no file"))?;
        if path.as_os_str().as_bytes().ends_with(b"/") {
            bail!("it names a folder");
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        Ok(Target {
            folder: Rc::new(Walk::new(trust, make).folder(folder.unwrap_or(Path::new(".")))?),
            name: CString::new(name.as_bytes())?,
            path: path.to_owned(),
        })
    }

    /// Another name in the same folder.
    ///
    /// # Errors
    /// It is no name.
    pub fn beside(&self, name: &OsStr) -> Result<Target> {
        if name.as_bytes().contains(&b'/') {
            bail!("{} is no name", name.display());
        }
        Ok(Target {
            folder: Rc::clone(&self.folder),
            name: CString::new(name.as_bytes())?,
            path: self.path.with_file_name(name),
        })
    }

    /// As the user calls it.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A new file; what is there already is left alone.
    ///
    /// # Errors
    /// Something is there, or it cannot be made.
    pub fn create_new(&self) -> io::Result<File> {
        self.made(&Trust::here())
    }

    fn made(&self, trust: &Trust) -> io::Result<File> {
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        let file = File::from(open_at(self.folder.as_raw_fd(), &self.name, flags)?);
        if let Some(owner) = trust.owner {
            give(file.as_raw_fd(), owner);
        }
        Ok(file)
    }

    fn emptied(&self, trust: &Trust) -> Result<File> {
        for _ in 0..ATTEMPTS {
            match self.made(trust) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => return Ok(made?),
            }
            match self.reopened(trust) {
                Ok(Some(file)) => return Ok(file),
                Ok(None) => {}
                Err(error) => return Err(error),
            }
        }
        bail!("it comes and goes")
    }

    /// What is there; `None`: not any more.
    fn reopened(&self, trust: &Trust) -> Result<Option<File>> {
        let found = match Walk::new(trust, false).last(&self.folder, &self.name) {
            Err(error) if is_absent(&error) => return Ok(None),
            found => found?,
        };
        match found {
            Found::There(there) => open_there(&there, trust).map(Some),
            // a link of ours to a file that is yet to be made
            Found::Missing { folder, name } => {
                let target = Target {
                    folder: Rc::new(folder),
                    name,
                    path: self.path.clone(),
                };
                Ok(Some(target.made(trust)?))
            }
        }
    }

    /// Whether there is anything of that name, be it a link that leads nowhere.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        let flags = libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        open_at(self.folder.as_raw_fd(), &self.name, flags).is_ok()
    }

    /// Deletes it.
    ///
    /// # Errors
    /// It is not there, or not ours to delete.
    pub fn remove(&self) -> io::Result<()> {
        // SAFETY: the folder is open and the name ends in a zero
        outcome(unsafe { libc::unlinkat(self.folder.as_raw_fd(), self.name.as_ptr(), 0) })
    }

    /// Gives it the name of `other`, in the place of what has that name.
    ///
    /// # Errors
    /// It cannot be renamed.
    pub fn rename_to(&self, other: &Target) -> io::Result<()> {
        let (from, to) = (self.folder.as_raw_fd(), other.folder.as_raw_fd());
        // SAFETY: the folders are open and the names end in a zero
        outcome(unsafe { libc::renameat(from, self.name.as_ptr(), to, other.name.as_ptr()) })
    }
}

fn is_absent(error: &anyhow::Error) -> bool {
    let cause = error.downcast_ref::<io::Error>();
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::NotFound)
}

/// Opens what was found, once more and for writing, and empties it.
fn open_there(there: &OwnedFd, trust: &Trust) -> Result<File> {
    let again = format!("/proc/self/fd/{}", there.as_raw_fd());
    let about = File::from(there.try_clone()?).metadata()?;
    check_owner(&about, trust)?;
    let mut options = File::options();
    let file = options.write(true).truncate(about.is_file()).open(again)?;
    Ok(file)
}

/// A file of others would show them what we write; one with two names may be in a place that nobody named.
fn check_owner(about: &Metadata, trust: &Trust) -> Result<()> {
    let kind = about.file_type();
    if about.is_dir() {
        bail!("it is a folder");
    }
    if kind.is_socket() {
        bail!("it is a socket");
    }
    if trust.powerful && !trust.covers(about.uid()) {
        bail!(
            "it is there already and belongs to {}\nhint: another name",
            user::name_of(about.uid())
        );
    }
    if trust.powerful && about.is_file() && about.nlink() > 1 {
        bail!("it is there already and has a second name elsewhere\nhint: another name");
    }
    Ok(())
}

#[cfg(test)]
mod tests;
