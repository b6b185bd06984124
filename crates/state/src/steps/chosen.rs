//! Where the steps are that somebody asks for by their numbers.

use super::anchor::Anchor;
use super::cutter::{Cutter, Step};
use crate::record::{Record, Taker};

/// A part of a trace: steps `first` to `last` of so many. Times are ns since the start of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    pub first: u64,
    pub last: u64,
    pub of: u64,
    pub from: i64,
    pub to: i64,
}

impl Part {
    /// `step 7 of 203`, `steps 7 to 9 of 203`.
    #[must_use]
    pub fn words(&self) -> String {
        match self.first == self.last {
            true => format!("step {} of {}", self.first, self.of),
            false => format!("steps {} to {} of {}", self.first, self.last, self.of),
        }
    }
}

/// Looks for them.
#[derive(Debug)]
pub struct Chosen {
    cutter: Cutter,
    first: u64,
    last: u64,
    from: Option<i64>,
    to: Option<i64>,
    count: u64,
}

impl Chosen {
    /// Steps `first` to `last`, of those that are cut there.
    #[must_use]
    pub fn new(anchor: Anchor, first: u64, last: u64) -> Chosen {
        Chosen {
            cutter: Cutter::new(anchor),
            first,
            last,
            from: None,
            to: None,
            count: 0,
        }
    }

    fn pass(&mut self, step: &Step) {
        self.count = step.number;
        if step.number == self.first {
            self.from = Some(step.at);
        }
        if step.number == self.last {
            self.to = Some(step.end);
        }
    }

    /// After the last row; `Err`: there are only so many.
    ///
    /// # Errors
    /// There are not as many.
    pub fn part(mut self) -> Result<Part, u64> {
        if let Some(step) = self.cutter.finish() {
            self.pass(&step);
        }
        let (from, to) = self.from.zip(self.to).ok_or(self.count)?;
        Ok(Part {
            first: self.first,
            last: self.last,
            of: self.count,
            from,
            to,
        })
    }
}

impl Taker for Chosen {
    fn take(&mut self, record: &Record<'_>) {
        if let Some(step) = self.cutter.take(record).step {
            self.pass(&step);
        }
    }
}
