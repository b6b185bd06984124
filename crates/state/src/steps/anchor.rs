//! What steps are cut at.

use super::candidate::Label;
use super::sketch::Sketch;
use super::work::Role;
use crate::findings::interner::Interner;
use crate::model::step::{Anchor as Told, Origin};

/// How sure that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Evidence {
    /// The work of a step; `None`: it varies.
    pub sketch: Option<Sketch>,
    pub launches: u64,
    pub explained: u64,
    pub of: u64,
}

/// What the steps of one process are cut at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anchor {
    pub told: Told,
    pub(super) sketch: Option<Sketch>,
}

impl Anchor {
    pub(super) fn of_call(key: u64, label: &Label, evidence: Evidence, interner: &Interner) -> Anchor {
        let after = Some(interner.name(label.after)).filter(|_| label.after != 0);
        Anchor {
            told: Told {
                pid: 0,
                tid: None,
                origin: Origin::Call {
                    key,
                    name: interner.name(label.name).to_owned(),
                    after: after.map(str::to_owned),
                    waits: label.role == Role::Wait,
                    launches: label.role == Role::Launch,
                },
                varies: evidence.sketch.is_none(),
                launches: evidence.launches,
                explained: evidence.explained,
                of: evidence.of,
            },
            sketch: evidence.sketch,
        }
    }

    /// Of a range of the program's own.
    pub(super) fn of_range(key: u64, name: &str) -> Anchor {
        Anchor {
            told: Told {
                pid: 0,
                tid: None,
                origin: Origin::Range {
                    key,
                    name: name.to_owned(),
                },
                varies: true,
                launches: 0,
                explained: 0,
                of: 0,
            },
            sketch: None,
        }
    }

    /// Of a process, or one thread of it.
    pub(super) fn of_process(self, pid: u32, tid: Option<u32>) -> Anchor {
        Anchor {
            told: Told { pid, tid, ..self.told },
            ..self
        }
    }

    /// Whether steps begin at the same places where they are cut at `other`.
    pub(super) fn is_at_the_place_of(&self, other: &Anchor) -> bool {
        let of = |anchor: &Anchor| (anchor.told.pid, anchor.told.tid);
        of(self) == of(other) && self.told.origin == other.told.origin
    }

    /// Whether they are also the same.
    pub(super) fn cuts_as(&self, other: &Anchor) -> bool {
        self.sketch == other.sketch && self.is_at_the_place_of(other)
    }
}
