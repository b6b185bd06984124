//! Cuts the rows of a process at what was found, and numbers what lies between.

use super::anchor::Anchor;
use super::piece::Piece;
use super::work::{Place, Role, Sequence, Work};
use crate::model::step::{Origin, Step};

/// Cuts the rows of a process at what was found.
#[derive(Debug, Clone)]
pub(crate) struct Cutter {
    anchor: Anchor,
    sequence: Sequence,
    /// Since when, and from where in the sequence, a step is under way.
    open: Option<(i64, Place)>,
    /// No anchor has come yet.
    at_head: bool,
    until: i64,
    number: u64,
}

impl Cutter {
    /// At that.
    #[must_use]
    pub(crate) fn new(anchor: Anchor) -> Cutter {
        Cutter {
            anchor,
            sequence: Sequence::default(),
            open: None,
            at_head: true,
            until: i64::MIN,
            number: 0,
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.anchor.told.pid
    }

    /// The next row. The step that is over ends with it if the anchor waits, and before it if not.
    pub(super) fn take(&mut self, piece: &Piece) -> Option<Step> {
        let ours = piece.pid == self.pid() && self.anchor.told.tid.is_none_or(|tid| tid == piece.tid);
        let work = ours.then(|| piece.work()).flatten();
        work.and_then(|work| self.work(&work))
    }

    fn work(&mut self, work: &Work) -> Option<Step> {
        let Origin::Call { key, .. } = self.anchor.told.origin else {
            return None;
        };
        let is_anchor = self.sequence.keys(work).contains(&Some(key));
        self.until = self.until.max(work.end);
        if work.role == Role::Wait {
            // before the first wait a step may have begun with the first work
            self.sequence.take(work);
            if !is_anchor {
                return None;
            }
            return self.border(work);
        }
        let step = is_anchor.then(|| self.border(work)).flatten();
        if self.at_head && self.open.is_none() && self.waits() {
            self.open = Some((work.at, self.sequence.now));
        }
        self.sequence.take(work);
        step
    }

    fn waits(&self) -> bool {
        matches!(self.anchor.told.origin, Origin::Call { waits: true, .. })
    }

    /// The anchor: one step is over, the next begins. Where nothing was launched since the last one, that goes on.
    fn border(&mut self, work: &Work) -> Option<Step> {
        let now = self.sequence.now;
        let open = self.open.map(|(at, from)| (at, from, now.since(&from)));
        if self.number > 0 && open.is_some_and(|(.., between)| between.launches == 0) {
            return None;
        }
        self.open = Some((work.border(), now));
        let was_head = std::mem::take(&mut self.at_head);
        let (at, from, between) = open.filter(|(.., between)| between.launches > 0)?;
        let usual = self.is_usual(&between);
        if was_head && (self.anchor.told.varies || !usual) {
            return None;
        }
        Some(self.step(at, work.border(), &from, usual))
    }

    fn is_usual(&self, work: &Place) -> bool {
        self.anchor.sketch.is_none_or(|usual| usual.is_like(&work.sketch))
    }

    fn step(&mut self, at: i64, end: i64, from: &Place, usual: bool) -> Step {
        self.number += 1;
        Step {
            number: self.number,
            at,
            end: end.max(at),
            launches: self.sequence.now.since(from).launches,
            usual,
        }
    }

    /// After the last row: what began last is a step if it has done the work of one.
    pub(crate) fn finish(&mut self) -> Option<Step> {
        let (at, from) = self.open.take()?;
        let whole = !self.anchor.told.varies && self.is_usual(&self.sequence.now.since(&from));
        (whole && !self.at_head).then(|| self.step(at, self.until, &from, true))
    }
}
