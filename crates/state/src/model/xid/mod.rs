//! Xids that came, each once, and their counts. Pure.
//!
//! Owns what makes two tellings one report. What a line of the log means is [`crate::driver::xid`]'s business.

mod pairing;
mod tally;
#[cfg(test)]
mod tests;

pub use pairing::Pairing;
pub use tally::{Faults, Tally};

use crate::driver::xid::Xid;

/// Who told of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The kernel's log, which alone names a process.
    Log,
    /// The tracepoint, which knows when it was.
    Tracepoint,
    Both,
}

impl Source {
    /// As in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Source::Log => "log",
            Source::Tracepoint => "tracepoint",
            Source::Both => "log+tracepoint",
        }
    }
}

/// One reported fault, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    pub xid: Xid,
    /// CLOCK_MONOTONIC ns: by the tracepoint when it was, by the log alone when it was read.
    pub at: u64,
    pub source: Source,
    /// Whether the process that it names is one of those that are traced.
    pub traced: bool,
}

impl Report {
    /// One that has just come.
    #[must_use]
    pub fn new(xid: Xid, at: u64, source: Source) -> Report {
        Report {
            xid,
            at,
            source,
            traced: false,
        }
    }
}
