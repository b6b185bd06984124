//! Ranges (NVTX) by which a program says itself what its steps are.
//!
//! Ranges of one name are one; what counts something in a name stands for any number. A name that is one of iterations comes
//! first; else the one that comes back most often at the outermost level of its thread, if it covers most of the time.

use super::anchor::Anchor;
use super::period::LEAST;
use crate::findings::interner::{Id, Interner};
use crate::findings::table::{Bounded, Grow, is_percent};
use std::borrow::Cow;

/// Names of a process that are told apart.
const NAMES: usize = 256;
/// Of the time from the first to the last, ranges that are no iterations by name cover so much.
const COVER_PERCENT: u64 = 50;
/// What iterations are called, without anything but letters.
const ITERATIONS: [&str; 9] = [
    "step",
    "iteration",
    "iter",
    "profilerstep",
    "trainstep",
    "trainingstep",
    "trainingiteration",
    "optimizationstep",
    "globalstep",
];

/// `step 12` as `step *`: what is the same of each.
pub(super) fn of_any_number(name: &str) -> Cow<'_, str> {
    if !name.bytes().any(|byte| byte.is_ascii_digit()) {
        return Cow::Borrowed(name);
    }
    let mut out = String::with_capacity(name.len());
    for one in name.chars() {
        match one.is_ascii_digit() {
            true if out.ends_with('*') => {}
            true => out.push('*'),
            false => out.push(one),
        }
    }
    Cow::Owned(out)
}

fn is_of_iterations(name: &str) -> bool {
    let letters: String = name.chars().filter(char::is_ascii_alphabetic).collect();
    ITERATIONS.contains(&letters.to_ascii_lowercase().as_str())
}

/// A range that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub name: Id,
    /// Stands for it.
    pub symbol: u64,
    /// It is in no other of its thread.
    pub(crate) outermost: bool,
}

/// Those of one name on one thread.
#[derive(Debug, Clone, Copy, Default)]
struct Named {
    name: Id,
    symbol: u64,
    tid: u32,
    count: u64,
    ns: u64,
    outermost: u64,
    from: i64,
    to: i64,
}

impl Named {
    fn covers(&self) -> bool {
        let span = u64::try_from(self.to.saturating_sub(self.from)).unwrap_or(0);
        self.outermost == self.count && is_percent(self.ns, span, COVER_PERCENT)
    }
}

/// The ranges of a process.
#[derive(Debug)]
pub(super) struct Said(Bounded<Named>);

impl Default for Said {
    fn default() -> Said {
        Said(Bounded::new(NAMES))
    }
}

impl Said {
    pub(super) fn take(&mut self, range: Range, tid: u32, (at, end): (i64, i64)) {
        let Some(named) = self.0.entry(range.symbol ^ u64::from(tid).rotate_left(32)) else {
            return;
        };
        if named.count == 0 {
            (named.from, named.to) = (at, end);
        }
        (named.name, named.symbol, named.tid) = (range.name, range.symbol, tid);
        named.count += 1;
        named.outermost += u64::from(range.outermost);
        named.ns.grow(end.abs_diff(at));
        (named.from, named.to) = (named.from.min(at), named.to.max(end));
    }

    /// What the program says that its steps are.
    pub(super) fn anchor(&self, names: &Interner, launches_from: impl Fn(u32) -> bool) -> Option<(Anchor, u32)> {
        let often = self
            .0
            .iter()
            .map(|(_, named)| named)
            .filter(|named| named.count >= LEAST);
        let rank = |named: &&Named| {
            (
                is_of_iterations(names.name(named.name)),
                named.count,
                named.ns,
                named.symbol,
            )
        };
        let best = often
            .filter(|named| is_of_iterations(names.name(named.name)) || named.covers() && launches_from(named.tid))
            .max_by_key(rank)?;
        Some((Anchor::of_range(best.symbol, names.name(best.name)), best.tid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_count_are_one() {
        assert_eq!(of_any_number("ProfilerStep#12"), "ProfilerStep#*");
        assert_eq!(of_any_number("epoch 3, step 140"), "epoch *, step *");
        assert_eq!(of_any_number("step"), "step");
    }

    #[test]
    fn iterations_are_known_by_name() {
        for name in ["ProfilerStep#*", "step", "Iteration *", "train_step", "training step *"] {
            assert!(is_of_iterations(name), "{name}");
        }
        for name in ["forward", "optimizer step", "stepper", "*"] {
            assert!(!is_of_iterations(name), "{name}");
        }
    }
}
