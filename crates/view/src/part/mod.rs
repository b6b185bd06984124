//! The part of a recording that is looked at: all of it, some of its steps, or what lies within ranges of a name.
//!
//! Where a part lies is known once the whole recording was read; then [`Part::through`] leaves out what is not of it.

mod ranges;

pub use ranges::Within;

use crate::record::{Crop, Taker};
use crate::steps;
use crate::trace::{Covers, End};

/// Which.
#[derive(Debug, Clone, Default)]
pub enum Part {
    #[default]
    All,
    Steps(steps::Part),
    Ranges(Within),
}

impl Part {
    /// What is left, as a sentence; `None`: everything.
    #[must_use]
    pub fn words(&self) -> Option<String> {
        match self {
            Part::All => None,
            Part::Steps(part) => Some(format!("only {}", part.words())),
            Part::Ranges(within) => Some(within.words()),
        }
    }

    /// From when on there are all rows, of a recording that has them as it says.
    #[must_use]
    pub fn covers(&self, recording: Covers) -> Covers {
        match self {
            Part::Steps(part) => Covers::From(part.from),
            Part::All | Part::Ranges(_) => recording,
        }
    }

    /// Why nobody can say of its rows what is wrong: it is made of pieces.
    pub(crate) fn why_not_judged(&self) -> Option<&'static str> {
        matches!(self, Part::Ranges(_)).then_some("these are rows of a part of the time")
    }

    /// Has `read` hand rows to what hands on to `taker` those that are of it. Totals are of the whole, so a part has none.
    pub fn through(&self, taker: &mut dyn Taker, read: impl FnOnce(&mut dyn Taker) -> End) -> End {
        let (end, rows) = match self {
            Part::All => return read(taker),
            Part::Steps(part) => {
                let mut crop = Crop::new(part.from, part.to, taker);
                (read(&mut crop), crop.rows)
            }
            Part::Ranges(within) => {
                let mut only = within.only(taker);
                (read(&mut only), only.rows)
            }
        };
        End {
            rows,
            all_rows: rows,
            summary: None,
            snapshot: None,
            cut: end.cut,
        }
    }
}
