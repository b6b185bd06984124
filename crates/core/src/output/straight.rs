//! Writes as they come. The first failure is remembered, and nothing is written after it.

use anyhow::{Result, anyhow};
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

pub(super) struct Straight<T> {
    target: T,
    /// Where a plain file ends, to be cut off there when it takes only a part of something.
    plain: Option<Plain>,
    name: PathBuf,
    closed: bool,
    failure: Option<io::Error>,
}

/// A file that only we write to.
pub(super) struct Plain {
    file: File,
    bytes: u64,
}

impl Plain {
    pub(super) fn of(file: &File) -> Option<Plain> {
        let is_plain = file.metadata().is_ok_and(|about| about.is_file());
        let file = file.try_clone().ok().filter(|_| is_plain)?;
        Some(Plain { file, bytes: 0 })
    }

    /// Leaves whole writes alone.
    fn undo(&mut self) -> io::Result<()> {
        self.file.set_len(self.bytes)?;
        self.file.seek(SeekFrom::Start(self.bytes)).map(drop)
    }
}

impl<T: Write> Straight<T> {
    pub(super) fn new(target: T, name: &Path, plain: Option<Plain>) -> Straight<T> {
        Straight {
            target,
            plain,
            name: name.to_owned(),
            closed: false,
            failure: None,
        }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) {
        if self.closed || self.failure.is_some() {
            return;
        }
        match self.target.write_all(bytes).and_then(|()| self.target.flush()) {
            Ok(()) => self
                .plain
                .iter_mut()
                .for_each(|plain| plain.bytes += bytes.len() as u64),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.closed = true,
            Err(error) => {
                // nobody reads the half of a line
                let undone = self.plain.as_mut().map_or(Ok(()), Plain::undo);
                self.failure = Some(undone.err().unwrap_or(error));
            }
        }
    }

    pub(super) fn closed(&self) -> bool {
        self.closed
    }

    pub(super) fn check(&self) -> Result<()> {
        match &self.failure {
            None => Ok(()),
            Some(error) => Err(anyhow!(
                "failed to write {}: {error}; what was written before is whole\nhint: {}",
                self.name.display(),
                cure(error)
            )),
        }
    }
}

/// What helps against a write that failed.
fn cure(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some space, or write less: -q, --filter; of a recording --max-size"
        }
        io::ErrorKind::FileTooLarge => {
            "ulimit -f allows no more; or write less: -q, --filter; of a recording --max-size"
        }
        _ => "write elsewhere, or see what the kernel says of that disk (dmesg)",
    }
}
