//! A call as a piece of the sequence that steps are looked for in.

use super::sketch::Sketch;
use crate::findings::interner::Id;

/// What a piece is to a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Role {
    #[default]
    Launch,
    /// Copies, and fills memory.
    Move,
    /// A step ends with it, where others begin with their call.
    Wait,
    /// No work of its own, but it may come once a step: an event.
    Mark,
}

/// One call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work {
    pub role: Role,
    /// What is launched, or else the function.
    pub name: Id,
    /// Stands for it.
    pub symbol: u64,
    pub at: i64,
    pub end: i64,
}

impl Work {
    /// Where a step that it is the anchor of begins or ends.
    pub(super) fn border(&self) -> i64 {
        match self.role {
            Role::Wait => self.end,
            _ => self.at,
        }
    }
}

/// Two numbers as one whose upper bits depend on all of both.
pub(super) fn mixed(one: u64, other: u64) -> u64 {
    (one ^ other.rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// A place in a sequence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub sketch: Sketch,
    pub launches: u64,
}

impl Place {
    /// What lies between.
    pub(super) fn since(&self, earlier: &Place) -> Place {
        Place {
            sketch: self.sketch.since(&earlier.sketch),
            launches: self.launches.saturating_sub(earlier.launches),
        }
    }
}

/// Work of a process or a thread, one piece behind the other.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sequence {
    pub now: Place,
    /// The symbol of the launch before, once there is one.
    before: Option<u64>,
}

impl Sequence {
    /// What `work` may be known by: what it is, and, of launches, what they come behind.
    pub(super) fn keys(&self, work: &Work) -> [Option<u64>; 2] {
        let behind = self.before.filter(|_| work.role == Role::Launch);
        [Some(work.symbol), behind.map(|before| mixed(work.symbol, before))]
    }

    pub(super) fn take(&mut self, work: &Work) {
        if work.role != Role::Mark {
            self.now.sketch.add(work.symbol);
        }
        if work.role == Role::Launch {
            self.now.launches += 1;
            self.before = Some(work.symbol);
        }
    }
}
