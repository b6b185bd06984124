//! Files that follow each other, each readable alone.

use super::segment::{Ended, Segment};
use super::stream::{Group, Stream, joined};
use super::{Keeper, Kept, beside};
use crate::output::file;
use crate::trace::schema::Piece;
use crate::trace::trigger::Trigger;
use anyhow::{Result, bail};
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// When the next file begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rotate {
    /// When the file would be larger.
    Bytes(u64),
    Time(Duration),
}

/// Files that follow each other.
pub(super) struct Parts {
    path: PathBuf,
    rotate: Rotate,
    budget: u64,
    /// The first, until the stream begins.
    first: Option<File>,
    current: Option<Segment>,
    begun: Instant,
    /// When the last batch came, CLOCK_MONOTONIC ns: whatever was entered later is in the next ones.
    last: Option<u64>,
    number: u32,
    older: VecDeque<Ended>,
    deleted: u64,
}

/// The file of that number, from 1.
fn part_path(path: &Path, number: u32) -> PathBuf {
    beside(path, &format!("{number:04}"))
}

impl Parts {
    /// Looks whether there is room for the first part.
    ///
    /// # Errors
    /// It cannot be made, or is there already.
    pub(super) fn create(path: &Path, rotate: Rotate, budget: Option<u64>) -> Result<Parts> {
        if let Some(old) = parts_of(path).first() {
            bail!(
                "{} is there already: it is part of another recording\nhint: another name for -o, or remove its parts",
                old.1.display()
            );
        }
        Ok(Parts {
            first: Some(file::create_new(&part_path(path, 1))?),
            path: path.to_owned(),
            rotate,
            budget: budget.unwrap_or(u64::MAX),
            current: None,
            begun: Instant::now(),
            last: None,
            number: 0,
            older: VecDeque::new(),
            deleted: 0,
        })
    }

    fn is_due(&self, current: &Segment, more: usize) -> bool {
        current.rows > 0
            && match self.rotate {
                Rotate::Bytes(most) => current.bytes.saturating_add(more as u64) > most,
                Rotate::Time(most) => self.begun.elapsed() >= most,
            }
    }

    fn turn_over(&mut self, stream: &Stream, first: &Group) -> io::Result<()> {
        if let Some(mut last) = self.current.take() {
            let ended = last.end();
            self.older.push_back(last.into_ended());
            ended?;
        }
        self.number += 1;
        self.begun = Instant::now();
        let path = part_path(&self.path, self.number);
        let header = stream.header(Piece::Part, self.last)?;
        let mut segment = match self.first.take() {
            Some(file) => Segment::of(file, &path, &header)?,
            None => Segment::create(&path, &header)?,
        };
        let written = segment.write(&joined(stream.texts(), &first.batch), first.rows);
        self.current = Some(segment);
        written
    }

    fn bytes(&self) -> u64 {
        let older: u64 = self.older.iter().map(|file| file.bytes).sum();
        older + self.current.as_ref().map_or(0, |current| current.bytes)
    }

    /// Deletes the oldest until there is room for so much more.
    fn make_room(&mut self, more: usize) -> io::Result<()> {
        while self.bytes().saturating_add(more as u64) > self.budget {
            let Some(oldest) = self.older.pop_front() else {
                break;
            };
            oldest.delete()?;
            self.deleted += 1;
        }
        Ok(())
    }
}

impl Keeper for Parts {
    fn begin(&mut self, stream: &Stream) -> io::Result<()> {
        self.turn_over(stream, &Group::default())
    }

    fn take(&mut self, stream: &Stream, group: &Group) -> io::Result<()> {
        let bytes = group.bytes();
        self.make_room(bytes.len())?;
        let fits = |current: &Segment| !self.is_due(current, bytes.len());
        let written = match self.current.as_ref().is_some_and(fits) {
            true => self
                .current
                .as_mut()
                .map_or(Ok(()), |current| current.write(&bytes, group.rows)),
            false => self.turn_over(stream, group),
        };
        self.last = Some(crate::clock::monotonic_ns());
        written
    }

    fn end(&mut self, _stream: &Stream, _trigger: &Trigger) -> io::Result<()> {
        self.current.as_mut().map_or(Ok(()), Segment::end)
    }

    fn kept(&self) -> Kept {
        let older = self.older.iter().map(|file| file.path.clone());
        let current = self.current.as_ref();
        let rows: u64 = self.older.iter().map(|file| file.rows).sum();
        Kept {
            files: older.chain(current.map(|current| current.path.clone())).collect(),
            bytes: self.bytes(),
            rows: rows + current.map_or(0, |current| current.rows),
            deleted: self.deleted,
            full: false,
        }
    }
}

/// The parts of the recording `path` that are there, by number.
pub(crate) fn parts_of(path: &Path) -> Vec<(u32, PathBuf)> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let entries = std::fs::read_dir(folder.unwrap_or(Path::new(".")))
        .into_iter()
        .flatten();
    let number = |name: &std::ffi::OsStr| {
        let stem = Path::new(Path::new(name).file_stem()?);
        let number: u32 = stem.extension()?.to_str()?.parse().ok()?;
        (part_path(path, number).file_name()? == name).then_some(number)
    };
    let mut parts: Vec<(u32, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| Some((number(&entry.file_name())?, path.with_file_name(entry.file_name()))))
        .collect();
    parts.sort_unstable();
    parts
}
