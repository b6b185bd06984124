//! Cuts the rows of a process at what was found, and numbers what lies between.

use super::anchor::{Anchor, Origin};
use super::work::{Place, Role, Sequence, Work};
use crate::record::{Counting, Kind, Record};

/// One iteration. Times are ns since the start of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// From 1.
    pub number: u64,
    pub at: i64,
    pub end: i64,
    pub launches: u64,
    /// It did about the work of the others.
    pub usual: bool,
}

impl Step {
    /// How long it took.
    #[must_use]
    pub fn ns(&self) -> u64 {
        u64::try_from(self.end.saturating_sub(self.at)).unwrap_or(0)
    }
}

/// A row: what it is to steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cut {
    /// It is a call of the process, at the layer where work is counted.
    pub counts: bool,
    /// It ends with this row if the anchor waits, and before it if not.
    pub step: Option<Step>,
}

/// Cuts the rows of a process at what was found.
#[derive(Debug, Clone)]
pub struct Cutter {
    anchor: Anchor,
    counting: Counting,
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
    pub fn new(anchor: Anchor) -> Cutter {
        Cutter {
            anchor,
            counting: Counting::default(),
            sequence: Sequence::default(),
            open: None,
            at_head: true,
            until: i64::MIN,
            number: 0,
        }
    }

    /// What is cut at.
    #[must_use]
    pub fn anchor(&self) -> &Anchor {
        &self.anchor
    }

    /// The next row.
    pub fn take(&mut self, event: &Record<'_>) -> Cut {
        let counts = event.kind == Kind::Call && self.counting.counts(event) && event.pid == self.anchor.pid;
        let ours = counts && self.anchor.tid.is_none_or(|tid| tid == event.tid);
        let work = ours.then(|| Work::of(event)).flatten();
        Cut {
            counts,
            step: work.and_then(|work| self.work(&work)),
        }
    }

    fn work(&mut self, work: &Work<'_>) -> Option<Step> {
        let Origin::Call { key, .. } = self.anchor.origin;
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
        let Origin::Call { waits, .. } = self.anchor.origin;
        waits
    }

    /// The anchor: one step is over, the next begins.
    fn border(&mut self, work: &Work<'_>) -> Option<Step> {
        let now = self.sequence.now;
        let open = self.open.replace((work.border(), now));
        let was_head = std::mem::take(&mut self.at_head);
        let (at, from) = open?;
        let between = now.since(&from);
        if between.launches == 0 {
            return None;
        }
        let usual = self.is_usual(&between);
        if was_head && (self.anchor.varies() || !usual) {
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
    pub fn finish(&mut self) -> Option<Step> {
        let (at, from) = self.open.take()?;
        let whole = !self.anchor.varies() && self.is_usual(&self.sequence.now.since(&from));
        (whole && !self.at_head).then(|| self.step(at, self.until, &from, true))
    }
}
