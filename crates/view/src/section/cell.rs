//! Cells: values of a kind, of which each form makes what it needs.

use super::words::{at, bandwidth, change, hours, percent};
use crate::text::quantity::{bytes, count, duration};

/// Per cent.
const NEARLY_ALL: u64 = 90;
const TELLING: u64 = 5;

/// One value. Texts are as they are in the trace.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Not known, or not said: `-`.
    Unknown,
    Count(u64),
    Bytes(u64),
    /// ns.
    Duration(u64),
    /// Seconds that are told in hours, as those of devices are.
    Hours(f64),
    /// ns; more or less than before.
    More(i64),
    /// ns since the start of the trace.
    Moment(i64),
    /// Of 1.
    Share(f64),
    /// As a part of what it was.
    Change(f64),
    /// Bytes per second.
    Bandwidth(f64),
    AtLeast(Box<Cell>),
    AtMost(Box<Cell>),
    /// Running text.
    Text(String),
    /// The same, which only a page has room for.
    Aside(String),
    /// A name from the trace.
    Name(String),
    /// The name of what went wrong.
    Error(String),
    /// A call, and its arguments.
    Call {
        name: String,
        args: String,
    },
    /// A line of the program, and the stack behind it.
    Site {
        place: String,
        stack: Vec<String>,
    },
}

/// How much of a time a place stands for, per cent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    AtLeast(u64),
    /// By samples.
    About(u64),
}

impl Part {
    pub(crate) fn of(percent: Option<u64>, is_estimated: bool) -> Option<Part> {
        percent.map(if is_estimated { Part::About } else { Part::AtLeast })
    }

    fn percent(self) -> u64 {
        let (Part::AtLeast(percent) | Part::About(percent)) = self;
        percent
    }
}

impl Cell {
    /// A value that may not be known.
    #[must_use]
    pub fn of<T>(value: Option<T>, kind: impl FnOnce(T) -> Cell) -> Cell {
        value.map_or(Cell::Unknown, kind)
    }

    /// A line of the program whose stack is not kept.
    #[must_use]
    pub(crate) fn site(place: String) -> Cell {
        Cell::Site {
            place,
            stack: Vec::new(),
        }
    }

    /// The same, where such a part comes from: nearly all needs no word, and what stands for little is left out.
    #[must_use]
    pub(crate) fn site_of(place: Option<String>, part: Option<Part>) -> Cell {
        let percent = part.map(Part::percent);
        let telling = place.filter(|_| percent.is_none_or(|percent| percent >= TELLING));
        Cell::of(telling, |place| {
            Cell::site(match part.filter(|part| part.percent() < NEARLY_ALL) {
                Some(Part::AtLeast(percent)) => format!("{place} (≥ {percent} %)"),
                Some(Part::About(percent)) => format!("{place} (~ {percent} %)"),
                None => place,
            })
        })
    }

    /// As people read it, with its unit; not escaped.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Cell::Unknown => "-".to_owned(),
            Cell::Count(number) => count(*number),
            Cell::Bytes(size) => bytes(*size),
            Cell::Duration(ns) => duration(*ns),
            Cell::Hours(seconds) => hours(*seconds),
            Cell::More(ns) if *ns < 0 => format!("-{}", duration(ns.unsigned_abs())),
            Cell::More(ns) => format!("+{}", duration(ns.unsigned_abs())),
            Cell::Moment(ns) => at(*ns),
            Cell::Share(share) => percent(*share),
            Cell::Change(part) => change(Some(*part)),
            Cell::Bandwidth(rate) => bandwidth(*rate),
            Cell::AtLeast(cell) => format!("≥ {}", cell.words()),
            Cell::AtMost(cell) => format!("≤ {}", cell.words()),
            Cell::Text(text) | Cell::Aside(text) => text.clone(),
            Cell::Name(name) | Cell::Error(name) | Cell::Call { name, .. } => name.clone(),
            Cell::Site { place, .. } => place.clone(),
        }
    }

    /// What it is sorted by, where it is a number.
    pub(super) fn value(&self) -> Option<f64> {
        match self {
            Cell::Count(number) | Cell::Bytes(number) | Cell::Duration(number) => Some(*number as f64),
            Cell::More(ns) | Cell::Moment(ns) => Some(*ns as f64),
            Cell::Hours(number) | Cell::Share(number) | Cell::Change(number) | Cell::Bandwidth(number) => Some(*number),
            Cell::AtLeast(cell) | Cell::AtMost(cell) => cell.value(),
            _ => None,
        }
    }

    pub(super) fn count(&self) -> Option<u64> {
        match self {
            Cell::Count(number) => Some(*number),
            _ => None,
        }
    }

    /// There is something in it to say where there is little room.
    pub(super) fn says(&self) -> bool {
        match self {
            Cell::Unknown | Cell::Aside(_) => false,
            Cell::Text(text) => !text.is_empty(),
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(part: Option<Part>) -> Cell {
        Cell::site_of(Some("train.py:3 step".to_owned()), part)
    }

    #[test]
    fn a_place_says_how_much_it_stands_for_where_that_is_neither_nearly_all_nor_little() {
        let site = |percent| match of(Part::of(percent, false)) {
            Cell::Site { place, .. } => Some(place),
            _ => None,
        };
        assert_eq!(site(None).as_deref(), Some("train.py:3 step"));
        assert_eq!(site(Some(90)).as_deref(), Some("train.py:3 step"));
        assert_eq!(site(Some(89)).as_deref(), Some("train.py:3 step (≥ 89 %)"));
        assert_eq!(site(Some(5)).as_deref(), Some("train.py:3 step (≥ 5 %)"));
        assert_eq!(site(Some(4)), None);
        assert_eq!(Cell::site_of(None, Part::of(Some(50), false)), Cell::Unknown);
        assert_eq!(of(Part::of(Some(41), true)).words(), "train.py:3 step (~ 41 %)");
    }
}
