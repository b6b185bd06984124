//! One file with everything.

use super::segment::Segment;
use super::stream::{Group, Stream};
use super::{Keeper, Kept};
use crate::output::file;
use crate::trace::schema::Piece;
use crate::trace::trigger::Trigger;
use anyhow::{Context, Result};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// Room for the totals at the end.
const TOTALS: u64 = 64 << 10;
/// How many times as large as the largest batch so far the last one may be.
const LAST: u64 = 3;

/// One file with everything.
pub(super) struct Whole {
    path: PathBuf,
    /// Until the stream begins.
    file: Option<File>,
    segment: Option<Segment>,
    budget: u64,
    largest: u64,
}

impl Whole {
    /// Makes the file.
    ///
    /// # Errors
    /// It cannot be made.
    pub(super) fn create(path: &Path, budget: Option<u64>) -> Result<Whole> {
        let file = match path == Path::new("-") {
            // a descriptor of its own: closing it must not close that of the program
            true => io::stdout()
                .as_fd()
                .try_clone_to_owned()
                .map(File::from)
                .context("failed to open stdout")?,
            false => file::create(path)?,
        };
        Ok(Whole {
            path: path.to_owned(),
            file: Some(file),
            segment: None,
            budget: budget.unwrap_or(u64::MAX),
            largest: TOTALS,
        })
    }

    fn segment(&mut self) -> io::Result<&mut Segment> {
        self.segment
            .as_mut()
            .ok_or_else(|| io::Error::other("it has not begun"))
    }
}

impl Keeper for Whole {
    fn begin(&mut self, stream: &Stream) -> io::Result<()> {
        if let Some(file) = self.file.take() {
            self.segment = Some(Segment::of(file, &self.path, &stream.header(Piece::Whole, None)?)?);
        }
        Ok(())
    }

    fn take(&mut self, _stream: &Stream, group: &Group) -> io::Result<()> {
        let bytes = group.bytes();
        self.largest = self.largest.max(bytes.len() as u64);
        self.segment()?.write(&bytes, group.rows)
    }

    fn end(&mut self, _stream: &Stream, _trigger: &Trigger) -> io::Result<()> {
        self.segment()?.end()
    }

    fn kept(&self) -> Kept {
        let segment = self.segment.as_ref();
        let (bytes, rows) = segment.map_or((0, 0), |segment| (segment.bytes, segment.rows));
        Kept {
            files: vec![self.path.clone()],
            bytes,
            rows,
            deleted: 0,
            // a last batch and the totals are yet to come; what has waited meanwhile makes that one larger than those before
            full: bytes.saturating_add(LAST * self.largest + TOTALS) >= self.budget,
        }
    }
}
