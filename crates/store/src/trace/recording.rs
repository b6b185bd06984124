//! A recording, in whichever of our forms it was written.

use super::lines::Lines;
use super::reader::{End, Reader};
use super::schema::Covers;
use crate::record::{Meta, Taker};
use std::fs::File;
use std::io::BufReader;

/// Something to be read.
pub enum Recording {
    /// What `record` writes.
    Arrow(Box<Reader<BufReader<File>>>),
    /// What `run -o FILE.jsonl` and `export` write.
    Lines(Box<Lines<BufReader<File>>>, Option<File>),
}

impl Recording {
    /// What is known of the trace.
    #[must_use]
    pub fn meta(&self) -> &Meta {
        match self {
            Recording::Arrow(reader) => reader.meta(),
            Recording::Lines(lines, _) => lines.meta(),
        }
    }

    /// From when on it has all that happened; lines have it from their beginning.
    #[must_use]
    pub fn covers(&self) -> Covers {
        match self {
            Recording::Arrow(reader) => reader.covers(),
            Recording::Lines(..) => Covers::All,
        }
    }

    /// Hands all rows to `taker`, snapshots as totals, and the summary to nobody.
    pub fn read(self, taker: &mut dyn Taker) -> End {
        match self {
            Recording::Arrow(reader) => reader.read_ahead(taker),
            Recording::Lines(lines, _) => lines.read(taker),
        }
    }

    /// The file once more, whose place is always where reading is; of several files the first.
    pub(super) fn place(&self) -> Option<File> {
        match self {
            Recording::Arrow(reader) => reader.place(),
            Recording::Lines(_, place) => place.as_ref().and_then(|file| file.try_clone().ok()),
        }
    }
}
