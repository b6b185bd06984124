//! Sums of idle time by cause, and where most of each came from.

use super::causes::Why;
use super::threads::Place;
use super::total::Total;
use crate::model::outside::ELSEWHERE;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::rc::Rc;

/// So many looks make an estimate of where a host was.
const TELLING_LOOKS: u64 = 20;

/// Time of one cause.
#[derive(Debug, Clone, Default)]
pub(super) struct Sum {
    pub(super) total: Total,
    by_site: HashMap<u64, u64>,
    by_stack: HashMap<Rc<str>, u64>,
    /// Looks, by where the thread was, and all of them.
    by_look: HashMap<Rc<str>, u64>,
    looks: u64,
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
    /// So much came from there, of the place, where there is one: at least, or by an estimate.
    pub there_ns: u64,
    pub estimated: bool,
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

    /// Where the thread was when it was looked at within the gap.
    pub(super) fn look(&mut self, place: &Place, most: usize) {
        for stack in &place.looks {
            grow(&mut self.by_look, Rc::clone(stack), 1, most);
        }
        self.looks += place.looks.len() as u64;
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
        for (stack, looks) in &other.by_look {
            grow(&mut self.by_look, Rc::clone(stack), *looks, most);
        }
        self.looks += other.looks;
    }

    fn report(&self, why: Why) -> CauseTotal {
        let site = self.by_site.iter().max_by_key(|(site, ns)| (**ns, **site));
        if let Some((place, there_ns)) = self.estimate() {
            return CauseTotal {
                why,
                total: self.total,
                there_ns,
                site: None,
                place: Some(place),
                estimated: true,
            };
        }
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
            estimated: false,
        }
    }

    /// Where most of it came from, and how much of it: samples say that of long gaps, and looks share the rest.
    fn estimate(&self) -> Option<(String, u64)> {
        let looks = self.looks;
        if looks < TELLING_LOOKS {
            return None;
        }
        let sampled: u64 = self.by_stack.values().sum();
        let rest = u128::from(self.total.ns.saturating_sub(sampled));
        let part = |of: u64| (rest * u128::from(of) / u128::from(looks)) as u64;
        let looks = self.by_look.iter().map(|(stack, looks)| (stack, part(*looks)));
        let mut places: BTreeMap<String, u64> = BTreeMap::new();
        for (stack, ns) in looks.chain(self.by_stack.iter().map(|(stack, ns)| (stack, *ns))) {
            let place = crate::frame::json::place_of(stack);
            *places.entry(place.unwrap_or_else(|| ELSEWHERE.to_owned())).or_default() += ns;
        }
        let named = places.into_iter().filter(|(place, _)| place != ELSEWHERE);
        named.max_by_key(|(_, ns)| *ns)
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
