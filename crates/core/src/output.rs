//! Where lines go: stdout or a file, and stderr for all else. A destination that breaks never stops the trace:
//! the first failure is remembered.

mod aside;
pub mod file;
mod straight;
mod syscall;
mod trust;
mod walk;

use anyhow::Result;
use aside::{Aside, Movable};
use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;
use straight::{Plain, Straight};

/// Says something to the user on stderr, if anybody listens there; at once, lest other processes' words come between.
pub fn say(message: impl Display) {
    let _ = io::stderr().write_all(format!("{message}\n").as_bytes());
}

/// A destination that can break without taking the trace with it.
pub struct Output(Way);

enum Way {
    Here(Straight<Box<dyn Write>>),
    Movable(Movable),
    Aside(Aside),
    /// For a moment, while it becomes another one.
    Nowhere,
}

impl Output {
    /// stdout.
    pub fn stdout() -> Output {
        Output::movable(Box::new(io::stdout()), Path::new("stdout"), None)
    }

    /// stderr.
    pub fn stderr() -> Output {
        Output::movable(Box::new(io::stderr()), Path::new("stderr"), None)
    }

    /// Whatever takes bytes, by the name that messages call it.
    pub fn to(target: Box<dyn Write>, name: &Path) -> Output {
        Output(Way::Here(Straight::new(target, name, None)))
    }

    /// A file that is made or emptied now, as [`file::create`] has it.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn create(path: &Path) -> Result<Output> {
        let file = file::create(path)?;
        let plain = Plain::of(&file);
        Ok(Output::movable(Box::new(file), path, plain))
    }

    fn movable(target: Box<dyn Write + Send>, name: &Path, plain: Option<Plain>) -> Output {
        Output(Way::Movable(Straight::new(target, name, plain)))
    }

    /// From now on who writes to stdout, stderr or a file does not wait for whoever reads that, as long as no more than 16 MiB have
    /// come meanwhile: a thread writes, which does `first` before all else. Failures are seen a moment later, surely after
    /// [`Output::settled`].
    pub fn write_aside(&mut self, first: fn()) {
        self.0 = match std::mem::replace(&mut self.0, Way::Nowhere) {
            Way::Movable(to) => Aside::start(to, first).map_or_else(Way::Movable, Way::Aside),
            other => other,
        };
    }

    /// Writes `bytes`, unless an earlier write failed.
    pub fn write(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            Way::Here(to) => to.write(bytes),
            Way::Movable(to) => to.write(bytes),
            Way::Aside(aside) => aside.write(bytes),
            Way::Nowhere => {}
        }
    }

    /// The same as [`Output::check`], when all that was given is written, or cannot be.
    ///
    /// # Errors
    /// What went wrong.
    pub fn settled(&self) -> Result<()> {
        if let Way::Aside(aside) = &self.0 {
            aside.settle();
        }
        self.check()
    }

    /// Whether the reader has gone away.
    pub fn closed(&self) -> bool {
        match &self.0 {
            Way::Here(to) => to.closed(),
            Way::Movable(to) => to.closed(),
            Way::Aside(aside) => aside.closed(),
            Way::Nowhere => false,
        }
    }

    /// The first failure; a closed pipe is none.
    ///
    /// # Errors
    /// What went wrong, with the name of the destination.
    pub fn check(&self) -> Result<()> {
        match &self.0 {
            Way::Here(to) => to.check(),
            Way::Movable(to) => to.check(),
            Way::Aside(aside) => aside.check(),
            Way::Nowhere => Ok(()),
        }
    }
}
