//! What those who make rows and those who keep them tell each other: that something happened, and that there is no room.

use std::cell::Cell;
use std::rc::Rc;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// A call failed.
    Error,
    /// The driver reported a fault.
    Xid,
    /// Somebody asked for it.
    Signal,
    /// The trace is over.
    Exit,
}

impl Cause {
    /// In a sentence.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Cause::Error => "a call failed",
            Cause::Xid => "the driver reported a fault",
            Cause::Signal => "SIGUSR1 came",
            Cause::Exit => "the trace ended",
        }
    }
}

/// That something has happened, and that there is no room; all clones are one.
#[derive(Debug, Clone, Default)]
pub struct Trigger {
    /// The gravest since it was last asked.
    cause: Rc<Cell<Option<Cause>>>,
    full: Rc<Cell<bool>>,
}

impl Trigger {
    /// Tells of `cause`.
    pub fn raise(&self, cause: Cause) {
        self.cause.set(self.cause.get().max(Some(cause)));
    }

    /// What happened, once.
    #[must_use]
    pub fn take(&self) -> Option<Cause> {
        self.cause.take()
    }

    /// Tells that there is room for totals alone.
    pub fn fill(&self) {
        self.full.set(true);
    }

    /// Whether there is.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.full.get()
    }
}
