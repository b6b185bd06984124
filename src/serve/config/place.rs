//! Where a value was written, and what is wrong with it.

use crate::text::quantity::escaped;
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Longest part of a wrong value that is shown.
const SHOWN: usize = 60;
/// Mistakes that are shown.
const MISTAKES: usize = 20;

/// Where a value was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// With its dashes.
    Flag(&'static str),
    /// Line and column from 1, in characters.
    File {
        path: Arc<Path>,
        line: usize,
        column: usize,
    },
}

impl Place {
    /// What stands at `span`, in bytes, of the text of the file.
    pub(super) fn in_file(path: &Arc<Path>, text: &str, span: Range<usize>) -> Place {
        let mut start = span.start.min(text.len());
        while !text.is_char_boundary(start) {
            start -= 1;
        }
        let before = &text[..start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Place::File {
            path: Arc::clone(path),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Flag(name) => f.write_str(name),
            Place::File { path, line, column } => {
                write!(f, "{}:{line}:{column}", escaped(&path.display().to_string()))
            }
        }
    }
}

/// All that is wrong, each with its place and cure.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mistakes(pub(super) Vec<String>);

impl Mistakes {
    pub(super) fn add(&mut self, place: &Place, what: impl fmt::Display) {
        self.0.push(format!("{place}: {what}"));
    }

    /// `value`, unless something is wrong.
    ///
    /// # Errors
    /// What is wrong.
    pub(super) fn or<T>(self, value: T) -> Result<T, Mistakes> {
        match self.0.is_empty() {
            true => Ok(value),
            false => Err(self),
        }
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: Vec<&str> = self.0.iter().take(MISTAKES).map(String::as_str).collect();
        f.write_str(&shown.join("\n"))?;
        match self.0.len() - shown.len() {
            0 => Ok(()),
            rest => write!(f, "\n… and {rest} more"),
        }
    }
}

impl std::error::Error for Mistakes {}

/// A value in double quotes, without anything that a terminal obeys, and not too long.
pub(super) fn quoted(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        None => format!("\"{}\"", escaped(text)),
        Some((end, _)) => format!("\"{}…\"", escaped(&text[..end])),
    }
}
