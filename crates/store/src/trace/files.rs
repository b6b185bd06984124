//! The files of a recording, opened before any of it is read: who reads them then need not be able to open any.
//!
//! Owns which files these are, and that reading begins at their beginning. What is in them is the readers' business.

use super::lines::{Lines, are_lines};
use super::named::{Named, buffered, failed};
use super::reader::Reader;
use super::recording::Recording;
use super::store::parts_of;
use anyhow::{Context, Result};
use std::fs::File;
use std::io::{self, BufReader, Seek};
use std::path::{Path, PathBuf};

/// The files of a recording.
pub struct Files {
    path: PathBuf,
    first: Named,
    /// Parts that follow, of one that `record --rotate` has made.
    more: Vec<Named>,
    begins_at: u32,
}

impl Files {
    /// Opens a file, or, where there is none of that name, the parts that `record --rotate` has made under it. Reads nothing.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(path: &Path) -> Result<Files> {
        let parts = match path.exists() {
            true => Vec::new(),
            false => parts_of(path),
        };
        let begins_at = parts.first().map_or(1, |(number, _)| *number);
        let mut paths = parts.into_iter().map(|(_, path)| path);
        let first = named(paths.next().unwrap_or_else(|| path.to_owned()))?;
        Ok(Files {
            path: path.to_owned(),
            first,
            more: paths.map(named).collect::<Result<_>>()?,
            begins_at,
        })
    }

    /// As it was asked for.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is there once more when it was read: a file, or several.
    #[must_use]
    pub fn can_be_read_again(&self) -> bool {
        self.first.1.metadata().is_ok_and(|about| about.is_file())
    }

    /// How long it is, if it is one file.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let about = self.first.1.metadata().ok().filter(|_| self.more.is_empty());
        about.map_or(0, |about| about.len())
    }

    /// Begins to read it, in whichever form it was written. One at a time: all read from the same place.
    ///
    /// # Errors
    /// It cannot be read, is no recording, or one of a newer version.
    pub fn recording(&self) -> Result<Recording> {
        let failed = || failed(&self.first.0);
        let mut from = self.begun()?;
        if !self.more.is_empty() || !are_lines(&mut from).with_context(failed)? {
            return Ok(Recording::Arrow(Box::new(self.parts(from).with_context(failed)?)));
        }
        let place = from.get_ref().try_clone().ok();
        let lines = Lines::new(from).with_context(failed)?;
        Ok(Recording::Lines(Box::new(lines), place))
    }

    /// The same of what `record` writes alone.
    ///
    /// # Errors
    /// As [`Files::recording`].
    fn arrow(&self) -> Result<Reader<BufReader<File>>> {
        self.parts(self.begun()?).with_context(|| failed(&self.first.0))
    }

    fn begun(&self) -> Result<BufReader<File>> {
        let (path, file) = &self.first;
        buffered(path, from_beginning(file).with_context(|| failed(path))?)
    }

    fn parts(&self, first: BufReader<File>) -> Result<Reader<BufReader<File>>> {
        let again = |(path, file): &Named| Ok((path.clone(), from_beginning(file)?));
        let more = self.more.iter().map(again).collect::<io::Result<Vec<_>>>()?;
        Ok(Reader::new(first)?.followed_by(more, self.begins_at == 1))
    }
}

impl Reader<BufReader<File>> {
    /// Opens a file, or, where there is none of that name, the parts that `record --rotate` has made under it.
    ///
    /// # Errors
    /// It cannot be read, is no recording, or one of a newer version.
    pub fn open(path: &Path) -> Result<Reader<BufReader<File>>> {
        Files::open(path)?.arrow()
    }
}

fn named(path: PathBuf) -> Result<Named> {
    let file = File::open(&path).with_context(|| failed(&path))?;
    Ok((path, file))
}

/// A pipe has no beginning to go back to.
fn from_beginning(file: &File) -> io::Result<File> {
    let mut file = file.try_clone()?;
    if file.metadata()?.is_file() {
        file.rewind()?;
    }
    Ok(file)
}
