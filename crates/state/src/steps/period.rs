//! Which of many periods a step is: neither a layer of a network, nor ten steps behind which a loss is read.

use super::candidate::{Alike, Candidate, Pauses};
use super::work::Role;
use crate::findings::table::is_percent;
use std::cmp::Reverse;

/// As many parts of about the same work are steps.
pub(super) const LEAST: u64 = 4;
/// Of the launches between the first and the last occurrence, steps have at least so many.
pub(super) const EXPLAINED_PERCENT: u64 = 50;
/// A shorter period explains at least so much of what a longer one does, and so many of its parts are alike.
const SHORTER_PERCENT: u64 = 50;
const ALIKE_PERCENT: u64 = 80;
/// And periods that are the same one explain so much of what the best of them does.
const SAME_PERCENT: u64 = 95;
/// Where work is not the same to the last piece: chance would find as much among thousands of calls in one sequence of
/// two to the power of so many, with 11 of them for the calls.
const CHANCE_BITS: f64 = 21.0;
/// The host pauses longer where a step begins than elsewhere, by so many powers of two; and not so much shorter than
/// where another period does.
const STRONG_BORDER: f64 = 2.0;
const AS_STRONG: f64 = 1.0;

/// To wait for the device says more than a pause: as much as one longer by so many powers of two.
const WAIT_DOUBLINGS: f64 = 3.0;

/// A candidate, and what lies between its occurrences most of all.
#[derive(Clone, Copy)]
pub(super) struct Period<'a> {
    pub key: u64,
    pub candidate: &'a Candidate,
    pub alike: Alike,
}

impl<'a> Period<'a> {
    /// `None`: what lies between differs too much.
    pub(super) fn of(key: u64, candidate: &'a Candidate) -> Option<Period<'a>> {
        let alike = candidate.most();
        let explains = is_percent(alike.launches, candidate.launches, EXPLAINED_PERCENT);
        let is_regular = alike.count >= LEAST && explains;
        (is_regular && !is_chance(&alike, candidate.count)).then_some(Period { key, candidate, alike })
    }

    fn launches(&self) -> u64 {
        self.alike.mean_launches()
    }

    fn is_shorter_than(&self, other: &Period<'_>) -> bool {
        self.launches() * 5 <= other.launches() * 4
    }

    /// Whether it is the period of `best`, cut elsewhere.
    fn is_same_as(&self, best: &Period<'_>) -> bool {
        let apart = self.launches().abs_diff(best.launches());
        apart * 5 <= best.launches() && is_percent(self.alike.launches, best.alike.launches, SAME_PERCENT)
    }

    /// Parts that are not like most, since the first that is.
    fn unlike(&self) -> u64 {
        let alike = self.alike.before + self.alike.count;
        self.candidate.count.saturating_sub(alike)
    }

    fn is_mostly_alike(&self) -> bool {
        is_percent(self.alike.count, self.candidate.count, ALIKE_PERCENT)
    }

    /// The more, the more natural it is to cut there: where parts are alike, and the host pauses; of that, at a wait; what
    /// needs least words; and what comes first. Events come in the middle of steps as well.
    fn border(&self) -> (bool, bool, u64, bool, bool, Reverse<u64>) {
        let label = &self.candidate.label;
        let waits = label.role == Role::Wait;
        // pauses of about the same length are the same pause
        let pause = self.candidate.pauses.doublings() + if waits { WAIT_DOUBLINGS } else { 0.0 };
        (
            self.is_mostly_alike(),
            label.role != Role::Mark,
            pause.round() as u64,
            waits,
            label.after == 0,
            Reverse(self.candidate.first),
        )
    }
}

/// Whether so many of `parts` may be alike although calls come in no order: then one in ten or fewer is as long as any
/// given one, and of all ways to choose some of them there are fewer than two to the power of their number.
fn is_chance(alike: &Alike, parts: u64) -> bool {
    let bits = alike.count as f64 * 10f64.log2() - parts as f64;
    let mostly_same = alike.same * 2 >= alike.count;
    !mostly_same && bits < CHANCE_BITS
}

/// The one that is a step's, at its most natural border. `pauses`: between any two pieces of work.
pub(super) fn choose<'a>(all: &[Period<'a>], pauses: &Pauses) -> Option<Period<'a>> {
    let most = |one: &&Period<'a>| (one.alike.launches, one.key);
    let mut best = *all.iter().max_by_key(most)?;
    let is_better = |one: &Period<'a>, best: &Period<'a>| {
        let (here, there) = (longest_pause(all, one), longest_pause(all, best));
        let natural = here >= pauses.doublings() + STRONG_BORDER && here >= there - AS_STRONG;
        // what is different once in each of the longer ones belongs to these
        let irregular = one.unlike() * 2 < best.alike.count;
        natural || irregular
    };
    loop {
        let explains = |one: &&Period<'a>| is_percent(one.alike.covered(), best.alike.launches, SHORTER_PERCENT);
        let shorter = all
            .iter()
            .filter(|one| one.is_shorter_than(&best) && one.is_mostly_alike());
        match shorter
            .filter(explains)
            .filter(|one| is_better(one, &best))
            .max_by_key(most)
        {
            Some(one) => best = *one,
            None => break,
        }
    }
    let same = all.iter().filter(|one| one.is_same_as(&best));
    same.max_by_key(|one| one.border()).copied()
}

/// Where the host pauses longest of all that cut into the same steps, as a power of two.
fn longest_pause(all: &[Period<'_>], best: &Period<'_>) -> f64 {
    let same = all.iter().filter(|one| one.is_same_as(best));
    same.map(|one| one.candidate.pauses.doublings()).fold(0.0, f64::max)
}
