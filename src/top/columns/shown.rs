//! Which columns of a table are shown, as the user or the room has it, and a line of them.

use super::{COLUMNS, Column};
use crate::top::cells::padded;
use crate::top::model::Process;
use std::ops::Range;
use unicode_width::UnicodeWidthStr;

/// Columns of a lower rank stand where they are, also while nothing is known for them.
pub(crate) const ALWAYS: u8 = 4;

/// The columns that fit into `width`, by their places: those that `is_known` says something of.
pub(crate) fn fitting<T>(columns: &[Column<T>], width: usize, is_known: impl Fn(&Column<T>) -> bool) -> Vec<usize> {
    let mut by_rank: Vec<(usize, &Column<T>)> = columns.iter().enumerate().collect();
    by_rank.sort_by_key(|(_, column)| column.rank);
    // what is never left out has its room before all others
    let always = by_rank.iter().filter(|(_, column)| column.rank == 0);
    let mut taken: usize = always
        .map(|(_, column)| column.width + 1)
        .sum::<usize>()
        .saturating_sub(1);
    let mut chosen = Vec::new();
    for (place, column) in by_rank {
        let fits = column.rank == 0 || taken + column.width < width;
        if fits && is_known(column) {
            taken += if column.rank == 0 { 0 } else { column.width + 1 };
            chosen.push(place);
        }
    }
    chosen.sort_unstable();
    chosen
}

/// The columns that `chosen` names, in its order, as far as they fit; `None`: those that say something.
pub(crate) fn wanted(
    chosen: Option<&[usize]>,
    width: usize,
    is_known: impl Fn(&Column<Process>) -> bool,
) -> Vec<usize> {
    let Some(chosen) = chosen else {
        return fitting(&COLUMNS, width, is_known);
    };
    let is_chosen = |column: &Column<Process>| chosen.iter().any(|place| COLUMNS[*place].title == column.title);
    let room = |place: &usize| COLUMNS.get(*place).map_or(0, |column| column.width + 1);
    let needed: usize = chosen.iter().map(room).sum::<usize>().saturating_sub(1);
    let kept = match needed <= width {
        true => chosen.to_vec(),
        false => fitting(&COLUMNS, width, is_chosen),
    };
    chosen.iter().copied().filter(|place| kept.contains(place)).collect()
}

/// What `--columns` names.
///
/// # Errors
/// There is no such column, or none at all.
pub(crate) fn named(list: &str) -> Result<Vec<usize>, String> {
    let place = |word: &str| {
        COLUMNS
            .iter()
            .position(|column| column.title.eq_ignore_ascii_case(word))
    };
    let words = list.split(',').map(str::trim).filter(|word| !word.is_empty());
    let mut chosen: Vec<usize> = Vec::new();
    for word in words {
        match place(word) {
            Some(place) if !chosen.contains(&place) => chosen.push(place),
            Some(_) => {}
            None => return Err(format!("there is no column {word:?}; {}", all_titles())),
        }
    }
    match chosen.is_empty() {
        true => Err(format!("names no column; {}", all_titles())),
        false => Ok(chosen),
    }
}

fn all_titles() -> String {
    let titles: Vec<&str> = COLUMNS.iter().map(|column| column.title).collect();
    format!("there are {}", titles.join(","))
}

/// Where the cells of a line stand: the column's place, and from where to where. The last column takes what room is left.
pub(crate) fn places<T>(columns: &[Column<T>], chosen: &[usize], width: usize) -> Vec<(usize, Range<usize>)> {
    let mut all: Vec<(usize, Range<usize>)> = Vec::with_capacity(chosen.len());
    for (number, place) in chosen.iter().enumerate() {
        let Some(column) = columns.get(*place) else { continue };
        let from = all.last().map_or(0, |(_, before)| before.end + 1).min(width);
        let is_last = number + 1 == chosen.len();
        let to = if is_last && column.left {
            width
        } else {
            width.min(from + column.width)
        };
        all.push((*place, from..to));
    }
    all
}

/// One line of cells.
pub(crate) fn line<T>(
    columns: &[Column<T>],
    chosen: &[usize],
    width: usize,
    text: impl Fn(&Column<T>) -> String,
) -> String {
    let mut out = String::new();
    for (place, cell) in places(columns, chosen, width) {
        let column = &columns[place];
        out.push_str(&" ".repeat(cell.start.saturating_sub(out.width())));
        out.push_str(&padded(&text(column), cell.len(), column.left));
    }
    out
}
