//! A trace in other formats, live or from a recording: one format per file.
//!
//! A [`Form`] turns rows into bytes and knows no file; [`writing`] has the bytes go somewhere, [`live`] makes a sink of
//! a form, so that a live run and its recording become the same file. What is a slice, on which track, with which
//! arrows is said once, in [`scene`]; [`chrome`] and [`perfetto`] only draw it.

pub mod chrome;
pub mod csv;
pub mod jsonl;
pub(crate) mod live;
mod nest;
mod object;
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod perfetto;
pub(crate) mod scene;
mod sums;
pub(crate) mod writing;

#[cfg(test)]
pub(crate) mod sample;

use crate::trace::{Event, Meta};
use std::collections::HashMap;

pub use live::Live;
pub use writing::Writing;

/// Asked several times for each row; what comes from the traced side cannot foresee where it lies in it.
type Map<K, V> = HashMap<K, V, ahash::RandomState>;

/// How the rows ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ending<'a> {
    /// The exact totals, as docs/output.md has them.
    pub summary: Option<&'a str>,
    /// Why there are no more rows, if that was not the end of the trace.
    pub cut: Option<&'a str>,
}

/// One format. What it appends to `out` may go to its destination at once.
pub trait Form {
    /// Before all rows.
    fn start(&mut self, meta: &Meta, out: &mut Vec<u8>);
    /// One row, but for the summary.
    fn take(&mut self, event: &Event<'_>, out: &mut Vec<u8>);
    /// After all rows.
    fn finish(&mut self, ending: &Ending<'_>, out: &mut Vec<u8>);
    /// What went wrong, if anything did.
    fn failure(&self) -> Option<String> {
        None
    }
}
