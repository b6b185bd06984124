//! A recording, in whichever of our forms it was written.

use super::lines::{Lines, are_lines};
use super::reader::{End, Reader, open_file};
use super::schema::Covers;
use crate::record::{Meta, Taker};
use anyhow::{Context, Result};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// Something to be read.
pub enum Recording {
    /// What `record` writes.
    Arrow(Box<Reader<BufReader<File>>>),
    /// What `run -o FILE.jsonl` and `export` write.
    Lines(Box<Lines<BufReader<File>>>, Option<File>),
}

/// Whether the recording at `path` is there once more when it was read: a file, or several.
#[must_use]
pub fn can_be_read_again(path: &Path) -> bool {
    std::fs::metadata(path).map_or(true, |about| about.is_file())
}

impl Recording {
    /// Opens a file, or, where there is none of that name, the parts that `record --rotate` has made under it.
    ///
    /// # Errors
    /// It cannot be read, is no recording, or one of a newer version.
    pub fn open(path: &Path) -> Result<Recording> {
        if !path.exists() {
            return Ok(Recording::Arrow(Box::new(Reader::open(path)?)));
        }
        let failed = || format!("failed to read {}", path.display());
        let mut file = open_file(path)?;
        if !are_lines(&mut file).with_context(failed)? {
            return Ok(Recording::Arrow(Box::new(Reader::new(file).with_context(failed)?)));
        }
        let place = file.get_ref().try_clone().ok();
        Ok(Recording::Lines(
            Box::new(Lines::new(file).with_context(failed)?),
            place,
        ))
    }

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
