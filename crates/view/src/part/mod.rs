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

    /// Has `read` hand rows to what hands on to `taker` those that are of it. Totals are of the whole, so a part has
    /// none: they only say how far its rows can be relied on.
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
            of_whole: end.summary,
            snapshot: None,
            cut: end.cut,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Kind, Record};

    #[derive(Default)]
    struct Kept(Vec<i64>);

    impl Taker for Kept {
        fn take(&mut self, record: &Record<'_>) {
            self.0.push(record.at);
        }
    }

    fn left(part: &Part) -> (Vec<i64>, End) {
        let mut kept = Kept::default();
        let end = part.through(&mut kept, |to| {
            (0..10).for_each(|at| to.take(&Record::new(Kind::Call, at, 7)));
            End {
                rows: 10,
                all_rows: 11,
                summary: Some("{}".to_owned()),
                ..End::default()
            }
        });
        (kept.0, end)
    }

    #[test]
    fn a_part_has_its_rows_and_no_totals() {
        let (rows, end) = left(&Part::All);
        assert_eq!((rows.len(), end.all_rows, end.summary.as_deref()), (10, 11, Some("{}")));
        let part = Part::Steps(steps::Part {
            first: 2,
            last: 3,
            of: 9,
            from: 4,
            to: 6,
        });
        let (rows, end) = left(&part);
        assert_eq!((rows, end.rows, end.summary), (vec![4, 5], 2, None));
        assert_eq!(end.of_whole.as_deref(), Some("{}"));
        assert_eq!(part.words().as_deref(), Some("only steps 2 to 3 of 9"));
        assert_eq!(part.covers(Covers::All), Covers::From(4));
    }
}
