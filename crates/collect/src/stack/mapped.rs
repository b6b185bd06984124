//! Names for addresses in one file that processes map.

use super::debug_info;
use super::merge::{Native, Part, part_of};
use super::namer::{self, Question};
use super::names::nameless;
use super::naming::{Named, Place};
use crate::foreign::ForeignFile;
use crate::frame::Frame;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

/// A file that was mapped, or what the kernel maps in place of one.
pub struct Mapped {
    pub module: String,
    pub path: PathBuf,
    /// `None`: there is none, or it could not be opened.
    pub file: Option<ForeignFile>,
    /// It is the kernel's, or code made at run time.
    pub(crate) fileless: bool,
    /// What is not asked any more: 1: lines; 2: names.
    refused: Cell<usize>,
}

impl Mapped {
    /// Code that is in no file, or in the file at `path`, which is not open yet.
    pub(crate) fn new(module: String, path: Option<PathBuf>) -> Mapped {
        Mapped {
            module,
            fileless: path.is_none(),
            path: path.unwrap_or_default(),
            file: None,
            refused: Cell::new(0),
        }
    }

    /// The functions at each of these offsets, innermost first, and what is to be noted of the file.
    pub fn functions(&self, offsets: &[u64], notes: &mut BTreeSet<String>) -> Vec<Native> {
        if self.fileless {
            return offsets.iter().map(|offset| self.fileless(*offset)).collect();
        }
        let named = self.file.as_ref().map(|file| self.named(file, offsets, notes));
        let frames = named.unwrap_or_else(|| self.nameless(offsets));
        let part = |frames: &[Frame]| {
            frames
                .last()
                .map_or(Part::Other, |frame| part_of(&frame.function, &self.module))
        };
        frames.into_iter().map(|frames| (part(&frames), frames)).collect()
    }

    fn named(&self, file: &ForeignFile, offsets: &[u64], notes: &mut BTreeSet<String>) -> Vec<Vec<Frame>> {
        let named = self.ask(file, offsets, notes);
        if let Some(bytes) = named.too_large {
            notes.insert(self.without_lines(bytes));
        }
        let frames = |(frames, offset): (Vec<Place>, &u64)| match frames.is_empty() {
            true => vec![nameless(Some(&self.module), *offset)],
            false => frames
                .into_iter()
                .map(|frame| frame.frame(&self.module, *offset))
                .collect(),
        };
        named.frames.into_iter().zip(offsets).map(frames).collect()
    }

    /// What has ended or held up who reads it is not read again: what it says of lines first, then what it says at all.
    fn ask(&self, file: &ForeignFile, offsets: &[u64], notes: &mut BTreeSet<String>) -> Named {
        let question = Question {
            file,
            module: &self.module,
            path: &self.path,
            offsets,
            lines: true,
        };
        for (lines, missing) in [
            (true, "source lines and inlined functions are"),
            (false, "functions' names are"),
        ] {
            if self.refused.get() > usize::from(!lines) {
                continue;
            }
            match namer::ask(Question { lines, ..question }) {
                Ok(named) => return named,
                Err(error) => {
                    self.refused.set(usize::from(!lines) + 1);
                    notes.insert(self.unnamed(&error, missing));
                }
            }
        }
        Named {
            frames: vec![Vec::new(); offsets.len()],
            too_large: None,
        }
    }

    fn unnamed(&self, error: &io::Error, missing: &str) -> String {
        let why = match error.kind() {
            io::ErrorKind::TimedOut => "takes too long to read",
            _ => "is damaged, or made to end who reads it",
        };
        format!("{}: what it says of itself {why}: {missing} not shown", self.module)
    }

    fn without_lines(&self, bytes: u64) -> String {
        format!(
            "{}: {} MiB of debug information, of which at most {} MiB are read: source lines and inlined functions are not shown",
            self.module,
            bytes >> 20,
            debug_info::MOST_BYTES >> 20
        )
    }

    fn nameless(&self, offsets: &[u64]) -> Vec<Vec<Frame>> {
        let frame = |offset: &u64| vec![nameless(Some(&self.module), *offset)];
        offsets.iter().map(frame).collect()
    }

    fn fileless(&self, offset: u64) -> Native {
        let function = self.module.clone();
        let frame = Frame {
            function,
            ..nameless(None, offset)
        };
        (Part::Other, vec![frame])
    }
}
