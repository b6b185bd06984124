//! When each step was, for who shows what happened when, and for who asks for some by their numbers.

use super::anchor::Anchor;
use super::cutter::Cutter;
use super::follower::{Follow, Followed};
use super::piece::Piece;
use super::ranged::{Out, Ranged};
use crate::model::step::{Origin, Step};
use crate::record::{Kind, Record, Taker};

/// Steps of a process that are kept.
const MOST: usize = 1 << 20;

/// Keeps them.
#[derive(Debug)]
pub struct Spans {
    cutter: Cutter,
    /// Where the program says what its steps are, that cuts.
    ranged: Option<Box<Ranged>>,
    steps: Vec<Step>,
    count: u64,
}

impl Follow for Spans {
    fn of(anchor: &Anchor) -> Spans {
        let is_range = matches!(anchor.told.origin, Origin::Range { .. });
        Spans {
            ranged: is_range.then(|| Box::new(Ranged::new(anchor.clone()))),
            cutter: Cutter::new(anchor.clone()),
            steps: Vec::new(),
            count: 0,
        }
    }

    fn take(&mut self, piece: &Piece) {
        let Some(mut ranged) = self.ranged.take() else {
            self.cutter.take(piece).into_iter().for_each(|step| self.keep(step));
            return;
        };
        if piece.pid == ranged.pid() {
            ranged.take(piece, &mut |out| self.take_out(&out));
        }
        self.ranged = Some(ranged);
    }
}

impl Spans {
    fn keep(&mut self, step: Step) {
        self.count = step.number;
        if self.steps.len() < MOST {
            self.steps.push(step);
        }
    }

    fn take_out(&mut self, out: &Out<'_>) {
        if let Out::Step(step) = out {
            self.keep(*step);
        }
    }

    pub(super) fn numbered(mut self) -> Numbered {
        if let Some(step) = self.cutter.finish() {
            self.keep(step);
        }
        let said = self.ranged.take();
        let marked = said.is_some();
        if let Some(mut ranged) = said {
            ranged.finish(&mut |out| self.take_out(&out));
        }
        Numbered {
            pid: self.cutter.pid(),
            marked,
            count: self.count,
            steps: self.steps,
        }
    }
}

/// The steps of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Numbered {
    pub pid: u32,
    /// The program says itself what its steps are.
    pub marked: bool,
    /// Number 1 first.
    pub steps: Vec<Step>,
    /// Of all, also of those that were too many to be kept.
    pub count: u64,
}

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

impl Numbered {
    /// From the beginning of step `first` to the end of step `last`; `None`: one of them is not there.
    #[must_use]
    pub fn part(&self, first: u64, last: u64) -> Option<Part> {
        let of_number = |number: u64| self.steps.get(usize::try_from(number).ok()?.checked_sub(1)?);
        Some(Part {
            first,
            last,
            of: self.count,
            from: of_number(first)?.at,
            to: of_number(last)?.end,
        })
    }

    /// Those that can be asked for.
    #[must_use]
    pub fn kept(&self) -> u64 {
        self.steps.len() as u64
    }

    /// Hands each to `taker`, as a row.
    pub fn hand(&self, taker: &mut dyn Taker) {
        for step in &self.steps {
            let name = format!("step {}", step.number);
            let args = format!("{{\"launches\":{},\"usual\":{}}}", step.launches, step.usual);
            taker.take(&Record {
                name: &name,
                layer: if self.marked { "nvtx" } else { "" },
                args: Some(&args),
                count: step.number,
                ns: Some(step.ns()),
                ..Record::new(Kind::Step, step.at, self.pid)
            });
        }
    }
}

impl Followed<Spans> {
    /// When the steps of each process were.
    #[must_use]
    pub fn numbered(self) -> Vec<Numbered> {
        self.cuts.into_iter().map(|cut| cut.to.numbered()).collect()
    }
}
