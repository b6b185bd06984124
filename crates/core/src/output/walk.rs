//! Walks a path name by name, so that a link of somebody else is seen before it is followed.

use super::syscall::{open_at, outcome};
use super::trust::{Trust, give};
use crate::user;
use anyhow::{Context, Result, bail};
use std::collections::VecDeque;
use std::ffi::{CStr, CString, OsStr};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// As many links as the kernel follows.
const MOST_LINKS: usize = 40;
const LONGEST_LINK: usize = 4096;
/// Of folders that we make.
const FOLDER: libc::mode_t = 0o755;

/// Walks a path name by name.
pub(super) struct Walk<'a> {
    trust: &'a Trust,
    /// Whether folders that are missing are made.
    make: bool,
    links: usize,
}

/// Where a name leads.
pub(super) enum Found {
    /// Something that is no link, open for looking.
    There(OwnedFd),
    /// A link leads to a name that nothing has.
    Missing { folder: OwnedFd, name: CString },
}

impl<'a> Walk<'a> {
    pub(super) fn new(trust: &'a Trust, make: bool) -> Walk<'a> {
        Walk { trust, make, links: 0 }
    }

    /// The folder at `path`.
    ///
    /// # Errors
    /// It is none, or somebody else's link is on the way.
    pub(super) fn folder(&mut self, path: &Path) -> Result<OwnedFd> {
        let start = match path.is_absolute() {
            true => root()?,
            false => open_at(libc::AT_FDCWD, &c".".to_owned(), looking() | libc::O_DIRECTORY)?,
        };
        self.down(start, names(path.as_os_str())?)
    }

    /// What `name` in `folder` leads to.
    ///
    /// # Errors
    /// Somebody else's link is on the way, or nothing is there.
    pub(super) fn last(&mut self, folder: &OwnedFd, name: &CStr) -> Result<Found> {
        let (mut folder, mut name) = (folder.try_clone()?, name.to_owned());
        loop {
            let here = match open_at(folder.as_raw_fd(), &name, looking()) {
                Err(error) if self.links > 0 && error.kind() == io::ErrorKind::NotFound => {
                    return Ok(Found::Missing { folder, name });
                }
                here => here?,
            };
            let about = about(&here)?;
            if !about.is_symlink() {
                return Ok(Found::There(here));
            }
            self.check(&name, &about)?;
            if is_of_proc(&folder) {
                return Ok(Found::There(open_at(
                    folder.as_raw_fd(),
                    &name,
                    libc::O_PATH | libc::O_CLOEXEC,
                )?));
            }
            let mut way = self.way(&here)?;
            let last = way.names.pop_back().context("a link leads to no name")?;
            let start = if way.from_root { root()? } else { folder };
            folder = self.down(start, way.names)?;
            name = last;
        }
    }

    fn down(&mut self, mut folder: OwnedFd, mut names: VecDeque<CString>) -> Result<OwnedFd> {
        while let Some(name) = names.pop_front() {
            let here = self.enter(&folder, &name)?;
            let about = about(&here)?;
            if !about.is_symlink() {
                if !about.is_dir() {
                    bail!("{} is no folder", name.to_string_lossy());
                }
                folder = here;
                continue;
            }
            self.check(&name, &about)?;
            if is_of_proc(&folder) {
                folder = open_at(folder.as_raw_fd(), &name, libc::O_PATH | libc::O_CLOEXEC)?;
                continue;
            }
            let way = self.way(&here)?;
            if way.from_root {
                folder = root()?;
            }
            way.names.into_iter().rev().for_each(|name| names.push_front(name));
        }
        Ok(folder)
    }

    fn enter(&self, folder: &OwnedFd, name: &CString) -> io::Result<OwnedFd> {
        match open_at(folder.as_raw_fd(), name, looking()) {
            Err(error) if self.make && error.kind() == io::ErrorKind::NotFound => self.make(folder, name),
            entered => entered,
        }
    }

    fn make(&self, folder: &OwnedFd, name: &CString) -> io::Result<OwnedFd> {
        // SAFETY: the folder is open and the name ends in a zero
        let made = outcome(unsafe { libc::mkdirat(folder.as_raw_fd(), name.as_ptr(), FOLDER) });
        let is_new = match made {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            made => made.is_ok(),
        };
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        match (is_new, self.trust.owner) {
            (true, Some(owner)) => {
                let opened = open_at(folder.as_raw_fd(), name, flags)?;
                give(opened.as_raw_fd(), owner);
                Ok(opened)
            }
            _ => open_at(folder.as_raw_fd(), name, looking()),
        }
    }

    fn check(&mut self, name: &CStr, link: &Metadata) -> Result<()> {
        self.links += 1;
        if self.links > MOST_LINKS {
            bail!("there are too many links");
        }
        if !self.trust.covers(link.uid()) {
            bail!(
                "{} is a symbolic link of {}, which is not followed\nhint: another name, or remove it",
                name.to_string_lossy(),
                user::name_of(link.uid())
            );
        }
        Ok(())
    }

    /// Where a link points to.
    fn way(&self, link: &OwnedFd) -> Result<Way> {
        let mut text = vec![0_u8; LONGEST_LINK];
        // SAFETY: there is room for so many bytes, and an empty name is the link itself
        let length = unsafe { libc::readlinkat(link.as_raw_fd(), c"".as_ptr(), text.as_mut_ptr().cast(), text.len()) };
        let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
        text.truncate(length);
        Ok(Way {
            from_root: text.first() == Some(&b'/'),
            names: names(OsStr::from_bytes(&text))?,
        })
    }
}

struct Way {
    from_root: bool,
    names: VecDeque<CString>,
}

fn names(path: &OsStr) -> Result<VecDeque<CString>> {
    let parts = path.as_bytes().split(|byte| *byte == b'/');
    let named = parts.filter(|part| !part.is_empty() && *part != b".");
    Ok(named.map(CString::new).collect::<Result<_, _>>()?)
}

fn looking() -> i32 {
    libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC
}

fn root() -> io::Result<OwnedFd> {
    File::open("/").map(OwnedFd::from)
}

fn about(fd: &OwnedFd) -> io::Result<Metadata> {
    File::from(fd.try_clone()?).metadata()
}

/// What lies in /proc is the kernel's: its links are no texts, and nobody can put one there.
fn is_of_proc(folder: &OwnedFd) -> bool {
    // SAFETY: the call only fills the structure that it is given
    unsafe {
        let mut found = std::mem::zeroed::<libc::statfs>();
        libc::fstatfs(folder.as_raw_fd(), &raw mut found) == 0 && found.f_type == libc::PROC_SUPER_MAGIC
    }
}
