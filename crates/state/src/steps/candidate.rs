//! A call that may come once in each step: what lies between its occurrences.

use super::sketch::Sketch;
use super::work::{Place, Role};
use crate::findings::interner::Id;
use crate::findings::table::Grow;

/// Kinds of work between two occurrences that are told apart.
const KINDS: usize = 3;
/// Fewer pieces of work between two occurrences are no step.
const LEAST_PIECES: u64 = 2;

/// Times that about the same work lay between two occurrences.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Alike {
    pub sketch: Sketch,
    /// How many more there were than others: it makes room at 0.
    votes: u64,
    pub count: u64,
    /// Of them, where it was the same to the last piece.
    pub same: u64,
    /// Of all of them.
    pub launches: u64,
    /// Other times before the first of them, as while a program warms up.
    pub before: u64,
}

impl Alike {
    /// Launches that they would be if the one under way were one more of them.
    pub(super) fn covered(&self) -> u64 {
        self.launches.saturating_add(self.mean_launches())
    }

    pub(super) fn mean_launches(&self) -> u64 {
        self.launches / self.count.max(1)
    }
}

/// How it is called.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Label {
    pub role: Role,
    pub name: Id,
    /// Of the launch that it comes behind; 0: behind any.
    pub after: Id,
}

/// How long nothing was called before a call, or behind it if it waits: the geometric mean, which a few long ones do not
/// change much.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pauses {
    count: u64,
    doublings: f64,
}

impl Pauses {
    pub(super) fn push(&mut self, ns: u64) {
        self.count += 1;
        self.doublings += (ns.saturating_add(1) as f64).log2();
    }

    /// As a power of two of ns.
    pub(super) fn doublings(&self) -> f64 {
        self.doublings / self.count.max(1) as f64
    }
}

/// A call that may come once in each step.
#[derive(Debug, Clone, Default)]
pub(super) struct Candidate {
    pub label: Label,
    /// Launches before its first occurrence.
    pub first: u64,
    last: Option<Place>,
    kinds: [Alike; KINDS],
    /// Between two occurrences there were launches: how often, how many in sum, and their squares.
    pub count: u64,
    pub launches: u64,
    squares: f64,
    pub pauses: Pauses,
}

impl Candidate {
    /// It comes at that place.
    pub(super) fn occurs(&mut self, now: &Place) {
        let Some(last) = self.last else {
            self.last = Some(*now);
            self.first = now.launches;
            return;
        };
        let between = now.since(&last);
        // copies or waits in a row are parts of the step that is under way; before the first, as where parameters are loaded,
        // of nothing
        if between.launches > 0 || self.count == 0 {
            self.last = Some(*now);
        }
        if between.launches == 0 {
            return;
        }
        self.count += 1;
        self.launches.grow(between.launches);
        self.squares += (between.launches as f64).powi(2);
        if between.sketch.pieces() >= LEAST_PIECES {
            self.vote(&between);
        }
    }

    fn vote(&mut self, between: &Place) {
        let like = |kind: &&mut Alike| kind.votes > 0 && kind.sketch.is_like(&between.sketch);
        if let Some(kind) = self.kinds.iter_mut().find(like) {
            kind.votes += 1;
            kind.count += 1;
            kind.same += u64::from(kind.sketch == between.sketch);
            kind.launches.grow(between.launches);
        } else if let Some(kind) = self.kinds.iter_mut().find(|kind| kind.votes == 0) {
            *kind = Alike {
                sketch: between.sketch,
                votes: 1,
                count: 1,
                same: 1,
                launches: between.launches,
                before: self.count - 1,
            };
        } else {
            self.kinds.iter_mut().for_each(|kind| kind.votes -= 1);
        }
    }

    /// The work that lay between its occurrences most of all.
    pub(super) fn most(&self) -> Alike {
        let kinds = self.kinds.iter().copied();
        kinds.max_by_key(|kind| kind.launches).unwrap_or_default()
    }

    /// How much the number of launches between varies: the standard deviation as a part of the mean.
    pub(super) fn variation(&self) -> f64 {
        let count = self.count.max(1) as f64;
        let mean = self.launches as f64 / count;
        let variance = (self.squares / count - mean * mean).max(0.0);
        variance.sqrt() / mean.max(f64::MIN_POSITIVE)
    }
}
