//! Where a recording is kept: in one file, in parts that follow each other, or in memory until something happens.
//!
//! Owns files and how much they may take. Gets the bytes that the recorder wrote, message by message, and never needs
//! to know what is in them: where a file begins, it writes again what the stream began with.

mod parts;
mod ring;
mod segment;
mod stream;
mod whole;

pub use parts::Rotate;
pub(super) use parts::parts_of;
pub use ring::Ring;

use super::frame::{self, Holds, Next};
use super::trigger::Trigger;
use crate::output::Output;
use anyhow::{Context, Result};
use std::cell::RefCell;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use stream::{Group, Stream};

/// How a recording is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub path: PathBuf,
    pub keeping: Keeping,
    /// Most bytes on disk.
    pub budget: Option<u64>,
}

/// What becomes of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeping {
    /// All go to one file, until it has taken its budget.
    Whole,
    /// They go to files that follow each other; the oldest is deleted when all have taken their budget.
    Parts(Rotate),
    /// They stay in memory, and what is left of them goes to a file of its own each time that something happens.
    Ring(Ring),
}

/// One way of keeping.
trait Keeper {
    /// The trace has begun: writes what describes it.
    fn begin(&mut self, stream: &Stream) -> io::Result<()>;
    /// Takes a batch.
    fn take(&mut self, stream: &Stream, group: &Group) -> io::Result<()>;
    /// The trace is over.
    fn end(&mut self, stream: &Stream, trigger: &Trigger) -> io::Result<()>;
    /// Looks at the clock; what there is to be said.
    fn turn(&mut self, _stream: &Stream, _trigger: &Trigger) -> io::Result<Option<String>> {
        Ok(None)
    }
    /// What there is of it now.
    fn kept(&self) -> Kept;
}

/// What there is of a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kept {
    /// In the order in which they were written.
    pub files: Vec<PathBuf>,
    /// Of all these.
    pub bytes: u64,
    /// In all these, with that of the totals.
    pub rows: u64,
    /// Files that were deleted to stay within the budget.
    pub deleted: u64,
    /// It takes no more: the budget is used up.
    pub full: bool,
}

/// A recording that is being kept; all clones are one.
#[derive(Clone)]
pub struct Store {
    inner: Rc<RefCell<Inner>>,
    pub trigger: Trigger,
    path: PathBuf,
}

struct Inner {
    keeper: Box<dyn Keeper>,
    stream: Stream,
    trigger: Trigger,
    rows: u64,
    ended: bool,
}

impl Store {
    /// Makes the file, or looks whether it could be made.
    ///
    /// # Errors
    /// It cannot, or files of another recording are there.
    pub fn create(plan: &Plan) -> Result<Store> {
        let keeper: Box<dyn Keeper> = match plan.keeping {
            Keeping::Whole => Box::new(whole::Whole::create(&plan.path, plan.budget)?),
            Keeping::Parts(rotate) => Box::new(parts::Parts::create(&plan.path, rotate, plan.budget)?),
            Keeping::Ring(ring) => Box::new(ring::Dumps::create(&plan.path, ring, plan.budget)?),
        };
        let trigger = Trigger::default();
        Ok(Store {
            inner: Rc::new(RefCell::new(Inner {
                keeper,
                stream: Stream::default(),
                trigger: trigger.clone(),
                rows: 0,
                ended: false,
            })),
            trigger,
            path: plan.path.clone(),
        })
    }

    /// As that which a tracer writes to.
    #[must_use]
    pub fn output(&self) -> Output {
        Output::to(Box::new(Writer(Rc::clone(&self.inner))), &self.path)
    }

    /// Looks at the clock and at what has happened; what there is to be said of it.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn turn(&self) -> Result<Option<String>> {
        let mut inner = self.inner.borrow_mut();
        let Inner { keeper, stream, .. } = &mut *inner;
        keeper
            .turn(stream, &self.trigger)
            .with_context(|| format!("failed to write the last moments beside {}", self.path.display()))
    }

    /// What there is of it, and how many rows came by.
    #[must_use]
    pub fn kept(&self) -> (Kept, u64) {
        let inner = self.inner.borrow();
        (inner.keeper.kept(), inner.rows)
    }
}

/// Gets what the recorder wrote.
struct Writer(Rc<RefCell<Inner>>);

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut inner = self.0.borrow_mut();
        let mut rest = bytes;
        while !rest.is_empty() {
            inner.take(&mut rest)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Inner {
    fn take(&mut self, bytes: &mut &[u8]) -> io::Result<()> {
        match frame::next(bytes)? {
            Next::Message(frame) => {
                let begins = frame.holds == Holds::Schema;
                if let Some(group) = self.stream.take(frame)? {
                    self.rows += group.rows;
                    self.keeper.take(&self.stream, &group)?;
                    if self.keeper.kept().full {
                        self.trigger.fill();
                    }
                }
                match begins {
                    true => self.keeper.begin(&self.stream),
                    false => Ok(()),
                }
            }
            Next::End if !self.ended => {
                self.ended = true;
                self.keeper.end(&self.stream, &self.trigger)
            }
            _ => Err(io::Error::other("these are no whole messages")),
        }
    }
}

/// `NAME.INFIX.EXTENSION`.
fn beside(path: &Path, infix: &str) -> PathBuf {
    let extension = path.extension().unwrap_or("arrows".as_ref());
    let stem = path.file_stem().unwrap_or_default();
    let mut name = stem.to_owned();
    name.push(".");
    name.push(infix);
    name.push(".");
    name.push(extension);
    path.with_file_name(name)
}

#[cfg(test)]
mod tests;
