//! Chapters for a terminal: numbers on the left, all words behind them. What is wider than the terminal is
//! `text::fit`'s to break.

use super::names::Names;
use super::table::{Column, Room, Row, Side, Table};
use super::{Cell, Chapter};
use crate::text::fit::GAP;
use crate::text::quantity::escaped;
use std::fmt::Write;

/// Columns of running text.
const WIDTH: usize = 96;
const INDENT: &str = "  ";

/// Appends all sections of a chapter, each with a heading of its own.
pub fn write(chapter: &Chapter, ink: Ink, out: &mut String) {
    for section in &chapter.sections {
        let heading = escaped(&chapter.heading(section));
        let _ = writeln!(out, "\n{}", ink.strong(&heading));
        section.lines.iter().for_each(|line| sentence(line, out));
        table(&section.table, ink, out);
        section.below.iter().for_each(|line| sentence(line, out));
    }
}

fn sentence(line: &str, out: &mut String) {
    let _ = write!(out, "{INDENT}{}", wrapped(&escaped(line), INDENT));
}

/// Appends a table and what it leaves out.
pub(crate) fn table(table: &Table, ink: Ink, out: &mut String) {
    if table.rows.is_empty() {
        return;
    }
    let columns = table.columns_of(Room::Pages);
    let (numbers, words): (Vec<_>, Vec<_>) = columns.into_iter().partition(|(_, column)| column.side == Side::Number);
    let style = Style {
        ink,
        names: Names::of(names(table)),
    };
    let mut lines = vec![heads(&numbers, &words)];
    for row in table.shown() {
        lines.push(line(&row.cells, &numbers, style.said(&row.cells, &words)));
        let parts = row.shown_parts(table.few_parts);
        lines.extend(parts.map(|cells| part(row, cells, &numbers, &words, &style)));
    }
    let least: Vec<usize> = numbers.iter().map(|(_, column)| column.least).collect();
    aligned(&lines, &least, out);
    if let Some(rest) = table.rest() {
        let _ = writeln!(out, "{INDENT}{rest}");
    }
}

type Columns<'a> = [(usize, &'a Column)];

fn heads(numbers: &Columns<'_>, words: &Columns<'_>) -> Vec<String> {
    let last = words.first().map_or("", |(_, column)| column.name);
    let numbers = numbers.iter().map(|(_, column)| column.name.to_owned());
    numbers.chain([last.to_owned()]).collect()
}

fn line(cells: &[Cell], numbers: &Columns<'_>, last: String) -> Vec<String> {
    let word = |(index, _): &(usize, &Column)| cells.get(*index).map_or_else(String::new, Cell::words);
    numbers.iter().map(word).chain([last]).collect()
}

/// What a row is part of is not said again.
fn part(row: &Row, cells: &[Cell], numbers: &Columns<'_>, words: &Columns<'_>, style: &Style) -> Vec<String> {
    let words: Vec<_> = words
        .iter()
        .filter(|(index, _)| row.is_new(cells, *index))
        .copied()
        .collect();
    line(cells, numbers, format!("{INDENT}{}", style.said(cells, &words)))
}

/// Names of the rows that are shown.
fn names(table: &Table) -> impl Iterator<Item = &str> {
    let rows = table.shown().iter();
    let cells = rows.flat_map(|row| std::iter::once(&row.cells).chain(row.shown_parts(table.few_parts)));
    cells.flatten().filter_map(|cell| match cell {
        Cell::Name(name) | Cell::Call { name, .. } => Some(name.as_str()),
        _ => None,
    })
}

/// How the words of a table are written.
struct Style {
    ink: Ink,
    names: Names,
}

impl Style {
    fn said(&self, cells: &[Cell], words: &Columns<'_>) -> String {
        let pieces = words.iter().filter_map(|(index, column)| {
            let cell = cells.get(*index).filter(|cell| cell.says())?;
            Some(format!("{}{}", column.before, self.word(cell)))
        });
        pieces.collect::<String>().trim_start().to_owned()
    }

    fn word(&self, cell: &Cell) -> String {
        match cell {
            Cell::Name(name) | Cell::Call { name, .. } => self.names.shown(name),
            Cell::Error(name) => self.ink.bad(&escaped(name)),
            other => escaped(&other.words()),
        }
    }
}

/// The last column is on the left, all others on the right.
fn aligned(lines: &[Vec<String>], least: &[usize], out: &mut String) {
    let size = |line: &Vec<String>, column: usize| line.get(column).map_or(0, |cell| cell.chars().count());
    let widest = |column: usize| lines.iter().map(|line| size(line, column)).max().unwrap_or(0);
    let widths = least
        .iter()
        .enumerate()
        .map(|(column, least)| widest(column).max(*least));
    let widths: Vec<usize> = widths.collect();
    for line in lines {
        out.push(' ');
        for (cell, width) in line.iter().zip(&widths) {
            let _ = write!(out, " {cell:>width$}{GAP}");
        }
        let _ = writeln!(out, "  {}", line.last().map_or("", String::as_str));
    }
}

/// Where colours are wanted, those.
#[derive(Debug, Clone, Copy)]
pub struct Ink(pub bool);

impl Ink {
    fn with(self, code: &str, text: &str) -> String {
        match self.0 {
            true => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            false => text.to_owned(),
        }
    }

    pub fn strong(self, text: &str) -> String {
        self.with("1", text)
    }

    pub fn warn(self, text: &str) -> String {
        self.with("33", text)
    }

    pub fn bad(self, text: &str) -> String {
        self.with("1;31", text)
    }

    pub fn weak(self, text: &str) -> String {
        self.with("2", text)
    }
}

/// `text` in lines, of which the first stands behind as much as `indent`, too; all others begin with it.
pub fn wrapped(text: &str, indent: &str) -> String {
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
    fn rows_of_different_kernels_are_written_differently() {
        let row = |inner: &str| {
            let name = format!("elementwise_kernel<128,2,gpu_kernel_impl_nocast<CUDAFunctor_add<{inner}>>::lambda#1>");
            vec![Cell::Count(1), Cell::Name(name)]
        };
        let columns = vec![Column::number("runs"), Column::text("kernel")];
        let mut out = String::new();
        table(
            &Table::flat(columns, ["float", "Half"].into_iter().map(row)),
            Ink(false),
            &mut out,
        );
        assert!(out.contains("add<float>") && out.contains("add<Half>"), "{out}");
    }

    #[test]
    fn long_text_is_wrapped_between_words() {
        let text = "word ".repeat(60);
        let lines = wrapped(text.trim_end(), "  ");
        assert!(lines.lines().all(|line| line.chars().count() <= WIDTH + 2) && lines.lines().count() > 3);
        assert_eq!(lines.split_whitespace().count(), 60);
    }
}
