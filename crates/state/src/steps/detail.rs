//! What a step's time went to, and in what that differs from others.

use super::piece::{Call, Piece};
use super::sample::median;
use crate::catalog::Class;
use crate::findings::interner::{Id, Interner};
use crate::findings::table::{Grow, is_percent};
use crate::model::step::{Difference, Step, Where};

const CLASSES: usize = Class::ALL.len();
/// Of the time that a step took longer, what is told of explains at least so much.
const TELLING_PERCENT: u64 = 10;
/// Differences that are told of a step.
const DIFFERENCES: usize = 3;

/// Calls of one class.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Part {
    calls: u64,
    ns: u64,
    longest_ns: u64,
    longest: Id,
}

/// One step in detail.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Detail {
    pub step: Step,
    parts: [Part; CLASSES],
    pub allocated_bytes: u64,
    /// Some thread of the process was in a call.
    in_calls_ns: u64,
    /// Nothing that the process had submitted can have been running, by who says so.
    pub(super) idle_ns: [u64; SAID_BY],
}

/// Who says that devices had nothing to do: rows of idle time, of 20 µs and more; or devices, which told of all that they did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Rows,
    Devices,
}

pub(super) const SAID_BY: usize = 2;

/// A step that is under way.
#[derive(Debug, Clone)]
pub(super) struct Open {
    parts: [Part; CLASSES],
    allocated_bytes: u64,
    in_calls_ns: u64,
    /// Until when some thread is in a call.
    reach: i64,
}

impl Default for Open {
    fn default() -> Open {
        Open {
            parts: [Part::default(); CLASSES],
            allocated_bytes: 0,
            in_calls_ns: 0,
            reach: i64::MIN,
        }
    }
}

impl Open {
    /// A call of the process that is in no other.
    pub(super) fn outermost(&mut self, piece: &Piece) {
        let from = piece.at.max(self.reach);
        self.in_calls_ns
            .grow(u64::try_from(piece.end.saturating_sub(from)).unwrap_or(0));
        self.reach = self.reach.max(piece.end);
    }

    /// A call that counts.
    pub(super) fn call(&mut self, call: &Call, ns: u64) {
        let part = &mut self.parts[call.class as usize];
        part.calls += 1;
        part.ns.grow(ns);
        if ns > part.longest_ns {
            part.longest_ns = ns;
            part.longest = call.function;
        }
        self.allocated_bytes.grow(call.allocated_bytes);
    }

    /// It is over; the next one begins.
    pub(super) fn close(&mut self, step: Step) -> Detail {
        let next = Open {
            reach: self.reach.max(step.end),
            ..Open::default()
        };
        let open = std::mem::replace(self, next);
        Detail {
            step,
            parts: open.parts,
            allocated_bytes: open.allocated_bytes,
            in_calls_ns: open.in_calls_ns.min(step.ns()),
            idle_ns: [0; SAID_BY],
        }
    }
}

impl Detail {
    /// All threads were in no call.
    #[must_use]
    pub(crate) fn outside_ns(&self) -> u64 {
        self.step.ns().saturating_sub(self.in_calls_ns)
    }

    /// A step of which every number is the middle one of all of these.
    pub(super) fn median_of(details: &[&Detail]) -> Option<Detail> {
        let middle = |of: &dyn Fn(&Detail) -> u64| median(details.iter().map(|detail| of(detail)).collect());
        let first = details.first()?;
        let parts = std::array::from_fn(|class| Part {
            calls: middle(&|detail| detail.parts[class].calls),
            ns: middle(&|detail| detail.parts[class].ns),
            ..Part::default()
        });
        let ns = middle(&|detail| detail.step.ns());
        let outside_ns = middle(&Detail::outside_ns);
        Some(Detail {
            step: Step {
                number: 0,
                at: 0,
                end: i64::try_from(ns).unwrap_or(i64::MAX),
                launches: middle(&|detail| detail.step.launches),
                usual: first.step.usual,
            },
            parts,
            allocated_bytes: middle(&|detail| detail.allocated_bytes),
            in_calls_ns: ns.saturating_sub(outside_ns),
            idle_ns: std::array::from_fn(|by| middle(&|detail| detail.idle_ns[by])),
        })
    }

    /// Where it spent the time that it took longer than `typical`, most first.
    pub(super) fn differences(&self, typical: &Detail, interner: &Interner) -> Vec<Difference> {
        let longer_ns = self.step.ns().saturating_sub(typical.step.ns());
        let of_class = |class: &Class| {
            let (part, usual) = (&self.parts[*class as usize], &typical.parts[*class as usize]);
            Difference {
                place: Where::Calls(*class),
                more_ns: part.ns.saturating_sub(usual.ns),
                more_calls: part.calls.saturating_sub(usual.calls),
                longest: Some((interner.name(part.longest).to_owned(), part.longest_ns)),
            }
        };
        let outside = Difference {
            place: Where::Outside,
            more_ns: self.outside_ns().saturating_sub(typical.outside_ns()),
            more_calls: 0,
            longest: None,
        };
        let all = Class::ALL.iter().map(of_class).chain([outside]);
        let telling = |one: &Difference| one.more_ns > 0 && is_percent(one.more_ns, longer_ns, TELLING_PERCENT);
        let mut telling: Vec<Difference> = all.filter(telling).collect();
        telling.sort_by_key(|one| std::cmp::Reverse(one.more_ns));
        telling.truncate(DIFFERENCES);
        telling
    }

    /// What of a gap lies in it.
    pub(super) fn overlap(&self, at: i64, end: i64) -> u64 {
        let (from, to) = (at.max(self.step.at), end.min(self.step.end));
        u64::try_from(to.saturating_sub(from)).unwrap_or(0)
    }

    pub(super) fn idles(&mut self, by: By, at: i64, end: i64) {
        let ns = self.overlap(at, end);
        self.idle_ns[by as usize].grow(ns);
    }
}
