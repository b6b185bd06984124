//! Columns of numbers, and a name behind them.

use crate::text::fit::GAP;
use crate::text::quantity::escaped;
use std::fmt::Write;

/// Characters of a name in the last column.
const NAME: usize = 48;

/// Appends rows under `heads`; the last column is on the left, all others on the right.
pub fn write(heads: &[&str], rows: &[Vec<String>], out: &mut String) {
    let widths: Vec<usize> = (0..heads.len())
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            let widest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
            widest.max(heads[column].chars().count())
        })
        .collect();
    line(heads.iter().map(|head| (*head).to_owned()), &widths, out);
    for row in rows {
        line(row.iter().cloned(), &widths, out);
    }
}

fn line(cells: impl Iterator<Item = String>, widths: &[usize], out: &mut String) {
    out.push(' ');
    for (column, cell) in cells.enumerate() {
        let last = column + 1 == widths.len();
        let _ = match last {
            true => write!(out, "  {cell}"),
            false => write!(out, " {cell:>width$}{GAP}", width = widths[column]),
        };
    }
    out.push('\n');
}

/// A name from the trace, short enough for the last column.
pub fn name(text: &str) -> String {
    match text.char_indices().nth(NAME) {
        Some((end, _)) => format!("{}…", escaped(&text[..end])),
        None => escaped(text),
    }
}
