//! A file system that hangs when it is told to.

use super::mounted::Mounted;
use std::path::{Path, PathBuf};

/// A file system with one file.
pub struct Hanging(Mounted);

impl Hanging {
    /// Its file holds what `source` holds.
    pub fn with(source: &Path) -> Hanging {
        Hanging(Mounted::by("hanging", include_str!("hanging.c"), &[source.as_os_str()]))
    }

    /// Its file.
    pub fn file(&self) -> PathBuf {
        self.0.folder().join("file")
    }

    /// From now on it answers nobody.
    pub fn hang(&self) {
        self.0.signal(libc::SIGSTOP);
    }

    /// It answers again.
    pub fn go_on(&self) {
        self.0.signal(libc::SIGCONT);
    }
}
