//! Where lines go: stdout or a file, and stderr for all else. A destination that breaks never stops the trace:
//! the first failure is remembered.

use anyhow::{Context, Result, anyhow};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Says something to the user on stderr, if anybody listens there.
pub fn say(message: impl Display) {
    let _ = writeln!(io::stderr(), "{message}");
}

/// A destination that can break without taking the trace with it.
pub struct Output {
    target: Box<dyn Write>,
    name: PathBuf,
    closed: bool,
    failure: Option<io::Error>,
}

impl Output {
    /// stdout.
    pub fn stdout() -> Output {
        Output {
            target: Box::new(io::stdout()),
            name: PathBuf::from("stdout"),
            closed: false,
            failure: None,
        }
    }

    /// stderr.
    pub fn stderr() -> Output {
        Output {
            target: Box::new(io::stderr()),
            name: PathBuf::from("stderr"),
            closed: false,
            failure: None,
        }
    }

    /// Whatever takes bytes, by the name that messages call it.
    pub fn to(target: Box<dyn Write>, name: &Path) -> Output {
        Output {
            target,
            name: name.to_owned(),
            closed: false,
            failure: None,
        }
    }

    /// A file that is made or emptied now.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn create(path: &Path) -> Result<Output> {
        let file = File::create(path).with_context(|| {
            format!(
                "failed to create {}\nhint: is its directory there and writable?",
                path.display()
            )
        })?;
        Ok(Output {
            target: Box::new(file),
            name: path.to_owned(),
            closed: false,
            failure: None,
        })
    }

    /// Writes `bytes`, unless an earlier write failed.
    pub fn write(&mut self, bytes: &[u8]) {
        if self.closed || self.failure.is_some() {
            return;
        }
        match self.target.write_all(bytes).and_then(|()| self.target.flush()) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.closed = true,
            Err(error) => self.failure = Some(error),
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
                "failed to write {}: {error}; what was written before is complete\nhint: free some space, or write less: -q, --filter, --max-size",
                self.name.display()
            )),
        }
    }
}
