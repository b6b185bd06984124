//! Sums of idle time by cause, and where most of each came from.

use super::causes::Why;
use super::threads::Place;
use super::total::Total;
use crate::model::outside::ELSEWHERE;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::rc::Rc;

/// Time of one cause.
#[derive(Debug, Clone, Default)]
pub(super) struct Sum {
    pub(super) total: Total,
    by_site: HashMap<u64, u64>,
    by_stack: HashMap<Rc<str>, u64>,
}

/// By cause.
pub(super) type Sums = BTreeMap<Why, Sum>;

/// What is reported of one cause on one device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CauseTotal {
    pub why: Why,
    pub total: Total,
    /// Where most of it came from: a call site, and a place outside CUDA in words.
    pub site: Option<u64>,
    pub place: Option<String>,
    /// At least so much came from there: of the place, where there is one.
    pub there_ns: u64,
}

/// `ns` more of `place`, of which at most `most` are told apart.
fn grow<K: Eq + Hash>(places: &mut HashMap<K, u64>, place: K, ns: u64, most: usize) {
    if places.len() < most || places.contains_key(&place) {
        *places.entry(place).or_default() += ns;
    }
}

impl Sum {
    /// `total` more, from `place`; at most `most` places are told apart.
    pub(super) fn add(&mut self, total: &Total, place: &Place, most: usize) {
        self.total.join(total);
        match (&place.stack, place.site) {
            (Some(stack), _) => grow(&mut self.by_stack, Rc::clone(stack), total.ns, most),
            (None, Some(site)) => grow(&mut self.by_site, site, total.ns, most),
            (None, None) => {}
        }
    }

    /// All of another one.
    pub(super) fn join(&mut self, other: &Sum, most: usize) {
        self.total.join(&other.total);
        for (stack, ns) in &other.by_stack {
            grow(&mut self.by_stack, Rc::clone(stack), *ns, most);
        }
        for (site, ns) in &other.by_site {
            grow(&mut self.by_site, *site, *ns, most);
        }
    }

    fn report(&self, why: Why) -> CauseTotal {
        let site = self.by_site.iter().max_by_key(|(site, ns)| (**ns, **site));
        let place = self.place();
        CauseTotal {
            why,
            total: self.total,
            there_ns: place
                .as_ref()
                .map(|(_, ns)| *ns)
                .or(site.map(|(_, ns)| *ns))
                .unwrap_or(0),
            site: site.map(|(site, _)| *site),
            place: place.map(|(place, _)| place),
        }
    }

    /// Stacks that lead to the same place are of one.
    fn place(&self) -> Option<(String, u64)> {
        let mut places: BTreeMap<String, u64> = BTreeMap::new();
        for (stack, ns) in &self.by_stack {
            if let Some(place) = crate::frame::json::place_of(stack) {
                *places.entry(place).or_default() += ns;
            }
        }
        let most = places.into_iter().max_by_key(|(_, ns)| *ns);
        most.filter(|(place, _)| place != ELSEWHERE)
    }
}

/// All causes, in their order.
pub(super) fn report(sums: &Sums) -> Vec<CauseTotal> {
    sums.iter().map(|(why, sum)| sum.report(*why)).collect()
}

/// Has `all` add up to `idle_ns`, most time first: what was not made out has no known cause.
pub(super) fn complete(all: &mut Vec<CauseTotal>, idle_ns: u64) {
    if !all.is_empty() {
        fill(all, idle_ns);
    }
    all.sort_by_key(|one| (std::cmp::Reverse(one.total.ns), one.why));
}

fn fill(all: &mut Vec<CauseTotal>, idle_ns: u64) {
    let known: u64 = all.iter().map(|one| one.total.ns).sum();
    let other = match all.iter().position(|one| one.why == Why::Other) {
        Some(other) => other,
        None => {
            all.push(Sum::default().report(Why::Other));
            all.len() - 1
        }
    };
    all[other].total.ns += idle_ns.saturating_sub(known);
    // work that came late has filled some of it
    let mut more = known.saturating_sub(idle_ns);
    let order = std::iter::once(other).chain((0..all.len()).rev().filter(|one| *one != other));
    for one in order.collect::<Vec<usize>>() {
        let less = more.min(all[one].total.ns);
        all[one].total.ns -= less;
        more -= less;
    }
    all.retain(|one| one.total.ns > 0);
}
