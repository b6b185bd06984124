//! The report for a terminal: what is wrong first, then totals. At most 100 columns.

mod findings;
mod sections;
pub(super) mod table;

use super::{Report, words};
use crate::text::fit::fit;
use crate::text::quantity::escaped;
use std::fmt::Write;

/// Columns of running text.
const WIDTH: usize = 96;

/// The whole report.
#[must_use]
pub fn page(report: &Report, colour: bool) -> String {
    page_within(report, colour, None)
}

/// The same in lines of at most `columns` characters, for a terminal.
#[must_use]
pub fn page_within(report: &Report, colour: bool, columns: Option<usize>) -> String {
    fit(&whole_lines(report, colour), columns)
}

fn whole_lines(report: &Report, colour: bool) -> String {
    let ink = Ink(colour);
    let mut out = String::new();
    let _ = writeln!(out, "{}", ink.strong(&escaped(&words::title(report))));
    let _ = writeln!(out, "{}", escaped(&words::circumstances(report).join(", ")));
    for note in &report.notes {
        out.push_str(&ink.warn(&wrapped(&format!("! {}", escaped(note)), "  ")));
    }
    findings::write(report, ink, &mut out);
    sections::write(report, ink, &mut out);
    out
}

/// Where colours are wanted, those.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ink(pub(super) bool);

impl Ink {
    fn with(self, code: &str, text: &str) -> String {
        match self.0 {
            true => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            false => text.to_owned(),
        }
    }

    pub(super) fn strong(self, text: &str) -> String {
        self.with("1", text)
    }

    pub(super) fn warn(self, text: &str) -> String {
        self.with("33", text)
    }

    pub(super) fn bad(self, text: &str) -> String {
        self.with("1;31", text)
    }

    pub(super) fn weak(self, text: &str) -> String {
        self.with("2", text)
    }
}

/// `text` in lines, of which the first stands behind as much as `indent`, too; all others begin with it.
pub(super) fn wrapped(text: &str, indent: &str) -> String {
    let room = WIDTH.saturating_sub(indent.chars().count());
    let mut out = String::new();
    let mut length = 0;
    for word in text.split(' ') {
        let size = word.chars().count();
        if length > 0 && length + 1 + size > room {
            out.push('\n');
            out.push_str(indent);
            length = 0;
        } else if length > 0 {
            out.push(' ');
            length += 1;
        }
        out.push_str(word);
        length += size;
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_wrapped_between_words() {
        let text = "word ".repeat(60);
        let lines = wrapped(text.trim_end(), "  ");
        assert!(lines.lines().all(|line| line.chars().count() <= WIDTH + 2) && lines.lines().count() > 3);
        assert_eq!(lines.split_whitespace().count(), 60);
    }
}
