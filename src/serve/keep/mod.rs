//! The last moments of programs as recordings: who asks for them, when they are written, and where the files are.
//!
//! ```text
//!  POST /-/keep ─► ask ─┐
//!  a call that fails, an Xid ─► alarms ─► (the black box makes a recording) ─► writer, its own thread ─► folder
//! ```
//!
//! Owns files and their bounds. What is in a recording is the business of [`crate::trace`].

mod alarms;
mod ask;
mod folder;
mod writer;

pub(crate) use alarms::{Alarms, Whom};
pub(crate) use ask::{Ask, Asks, Program};
pub(crate) use folder::KeptFile;
pub(crate) use writer::{Job, Writer};

/// Why a recording is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Cause {
    /// A call failed with an error after which nothing works in its process.
    FatalError,
    /// A call failed for want of memory.
    OutOfMemory,
    /// The driver reported a fault.
    Xid,
    /// Somebody asked for it.
    Webhook,
}

impl Cause {
    pub(crate) const ALL: [Cause; 4] = [Cause::FatalError, Cause::OutOfMemory, Cause::Xid, Cause::Webhook];

    /// As the label `cause`, and in names of files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Cause::FatalError => "fatal_error",
            Cause::OutOfMemory => "out_of_memory",
            Cause::Xid => "xid",
            Cause::Webhook => "webhook",
        }
    }

    fn of_name(name: &str) -> Option<Cause> {
        Cause::ALL.into_iter().find(|cause| cause.name() == name)
    }
}
