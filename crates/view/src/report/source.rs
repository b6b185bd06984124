//! Where the rows of a report came from, and how far they are known.

use super::words::at;
use crate::clock::Clock;
use crate::record::Meta;
use crate::text::quantity::plural;
use std::fmt;

/// Where the rows came from.
#[derive(Debug, Clone, Default)]
pub struct Source {
    /// Name of the file, or what was traced.
    pub name: String,
    pub meta: Option<Meta>,
    /// With that of the totals.
    pub rows: u64,
    /// Why reading ended early.
    pub cut: Option<String>,
    /// Why its summary is none.
    pub unreadable: Option<String>,
    /// There is no summary: totals are those of a snapshot.
    pub until: Option<Until>,
    /// Until when, ns since the start of the trace, there are totals of the whole trace, of which these are not all rows.
    pub of_more_until: Option<i64>,
    /// Which part of it alone, as a sentence.
    pub part: Option<String>,
    /// It is a trace of now, not a recording.
    pub live: bool,
}

/// Until when totals are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Until {
    /// ns since the start of the trace.
    pub at: i64,
    /// Rows behind it, where that is known.
    pub(crate) rows_after: Option<u64>,
}

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "totals are those up to {} (its last snapshot)", at(self.at))?;
        match self.rows_after {
            Some(rows) => write!(f, "; {} came after it", plural(rows, "row")),
            None => Ok(()),
        }
    }
}

impl Source {
    /// When the trace began.
    #[must_use]
    pub fn clock(&self) -> Option<Clock> {
        self.meta.as_ref().map(|meta| meta.clock)
    }
}
