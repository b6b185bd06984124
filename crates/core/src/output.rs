//! Where lines go: stdout or a file, and stderr for all else. A destination that breaks never stops the trace:
//! the first failure is remembered.

pub mod file;
mod syscall;
mod trust;
mod walk;

use anyhow::{Result, anyhow};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Says something to the user on stderr, if anybody listens there; at once, lest other processes' words come between.
pub fn say(message: impl Display) {
    let _ = io::stderr().write_all(format!("{message}\n").as_bytes());
}

/// A destination that can break without taking the trace with it.
pub struct Output {
    target: Box<dyn Write>,
    /// Where a plain file ends, to be cut off there when it takes only a part of something.
    plain: Option<Plain>,
    name: PathBuf,
    closed: bool,
    failure: Option<io::Error>,
}

/// A file that only we write to.
struct Plain {
    file: File,
    bytes: u64,
}

impl Plain {
    fn of(file: &File) -> Option<Plain> {
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

impl Output {
    /// stdout.
    pub fn stdout() -> Output {
        Output::to(Box::new(io::stdout()), Path::new("stdout"))
    }

    /// stderr.
    pub fn stderr() -> Output {
        Output::to(Box::new(io::stderr()), Path::new("stderr"))
    }

    /// Whatever takes bytes, by the name that messages call it.
    pub fn to(target: Box<dyn Write>, name: &Path) -> Output {
        Output {
            target,
            plain: None,
            name: name.to_owned(),
            closed: false,
            failure: None,
        }
    }

    /// A file that is made or emptied now, as [`file::create`] has it.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn create(path: &Path) -> Result<Output> {
        let file = file::create(path)?;
        Ok(Output {
            plain: Plain::of(&file),
            ..Output::to(Box::new(file), path)
        })
    }

    /// Writes `bytes`, unless an earlier write failed.
    pub fn write(&mut self, bytes: &[u8]) {
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

    /// Whether the reader has gone away.
    pub fn closed(&self) -> bool {
        self.closed
    }

    /// The first failure; a closed pipe is none.
    ///
    /// # Errors
    /// What went wrong, with the name of the destination.
    pub fn check(&self) -> Result<()> {
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
            "free some space, or write less: -q, --filter, --max-size"
        }
        io::ErrorKind::FileTooLarge => "ulimit -f allows no more; or write less: -q, --filter, --max-size",
        _ => "write elsewhere, or see what the kernel says of that disk (dmesg)",
    }
}
