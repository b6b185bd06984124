//! Cuts the rows of a process at ranges by which it says what its steps are.
//!
//! A range is told of when it is over, behind the rows that lie in it or among them: rows wait until then, as many as there is
//! room for.

use super::anchor::Anchor;
use super::piece::{Piece, What};
use crate::model::step::{Anchor as Told, Origin, Step};
use std::collections::{BTreeMap, VecDeque};

/// Rows that wait.
const WAITING: usize = 1 << 17;

/// What comes out, in order.
pub(super) enum Out<'a> {
    /// A row. `within`: it is of the step that is under way.
    Row {
        piece: &'a Piece,
        within: bool,
    },
    Step(Step),
}

/// Cuts at ranges.
#[derive(Debug, Clone)]
pub(super) struct Ranged {
    anchor: Anchor,
    waiting: VecDeque<Piece>,
    /// Ranges that are not over for the rows that came out, by their begin.
    ranges: BTreeMap<i64, i64>,
    number: u64,
    launches: u64,
    all_launches: u64,
    explained: u64,
}

impl Ranged {
    pub(super) fn new(anchor: Anchor) -> Ranged {
        Ranged {
            anchor,
            waiting: VecDeque::new(),
            ranges: BTreeMap::new(),
            number: 0,
            launches: 0,
            all_launches: 0,
            explained: 0,
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.anchor.told.pid
    }

    fn key(&self) -> Option<u64> {
        match self.anchor.told.origin {
            Origin::Range { key, .. } => Some(key),
            Origin::Call { .. } => None,
        }
    }

    /// The next row of the process.
    pub(super) fn take(&mut self, piece: &Piece, hand: &mut dyn FnMut(Out<'_>)) {
        if let What::Range(range) = piece.what {
            if Some(range.symbol) == self.key() && self.anchor.told.tid == Some(piece.tid) {
                self.begin(piece.at, piece.end);
                self.make_room(hand);
            }
            return;
        }
        self.waiting.push_back(*piece);
        if self.waiting.len() > WAITING
            && let Some(oldest) = self.waiting.pop_front()
        {
            self.release(&oldest, hand);
        }
    }

    /// One that lies in another of its name, or reaches into it, is none.
    fn begin(&mut self, at: i64, end: i64) {
        let before = self.ranges.range(..=at).next_back();
        if before.is_some_and(|(_, to)| *to > at) {
            return;
        }
        let within: Vec<i64> = self.ranges.range(at..end).map(|(from, _)| *from).collect();
        for from in within {
            self.ranges.remove(&from);
        }
        self.ranges.insert(at, end);
    }

    /// Where a program has ranges and makes no calls.
    fn make_room(&mut self, hand: &mut dyn FnMut(Out<'_>)) {
        if self.ranges.len() > WAITING
            && let Some((at, end)) = self.ranges.pop_first()
        {
            hand(Out::Step(self.step(at, end)));
        }
    }

    fn release(&mut self, piece: &Piece, hand: &mut dyn FnMut(Out<'_>)) {
        while let Some((at, end)) = self.ranges.first_key_value().map(|(at, end)| (*at, *end)) {
            if piece.at < end {
                break;
            }
            self.ranges.pop_first();
            hand(Out::Step(self.step(at, end)));
        }
        let within = self.ranges.first_key_value().is_some_and(|(at, _)| *at <= piece.at);
        let launches = u64::from(piece.launches());
        self.all_launches += launches;
        if within {
            self.launches += launches;
        }
        hand(Out::Row { piece, within });
    }

    fn step(&mut self, at: i64, end: i64) -> Step {
        let launches = std::mem::take(&mut self.launches);
        self.explained += launches;
        self.number += 1;
        Step {
            number: self.number,
            at,
            end,
            launches,
            usual: true,
        }
    }

    /// After the last row.
    pub(super) fn finish(&mut self, hand: &mut dyn FnMut(Out<'_>)) {
        for piece in std::mem::take(&mut self.waiting) {
            self.release(&piece, hand);
        }
        for (at, end) in std::mem::take(&mut self.ranges) {
            hand(Out::Step(self.step(at, end)));
        }
    }

    /// What is cut at, with how much of the work lies in steps.
    pub(super) fn told(&self) -> Told {
        Told {
            launches: self.explained / self.number.max(1),
            explained: self.explained,
            of: self.all_launches,
            ..self.anchor.told.clone()
        }
    }
}
