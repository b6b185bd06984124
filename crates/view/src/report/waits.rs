//! Time in calls that wait for a device: those that say so by their name, and those that wait although nobody asked.

use super::functions::{Functions, View};
use super::kernels::{fuller, index};
use super::site::{self, Apart};
use super::sum;
use super::texts::Texts;
use crate::catalog::Class;
use crate::frame::Frame;
use crate::model::snapshot::{self, Figure, Snapshot};
use crate::model::work::{Certainty, HiddenKind};
use crate::record::Record;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// Functions and stacks that are told apart together; beyond them stacks are left out.
const LIMIT: usize = 1 << 16;
/// Call sites told for one function.
const SITES: usize = 10;

/// Waits of one function. Of all threads together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Wait {
    pub name: String,
    pub calls: u64,
    pub total_ns: u64,
    pub max_ns: u64,
    /// Most time first; calls without a stack are in none.
    pub sites: Vec<WaitSite>,
}

/// Calls of one kind that wait although their names do not say so. Some may be among [`Wait`]s, too.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hidden {
    /// As in docs/output.md: `item`, `blocking_copy`, `pageable_async`, `free`, `alloc`.
    pub kind: String,
    pub calls: u64,
    /// In the calls.
    pub total_ns: u64,
    /// Not all of that time need have been spent waiting.
    pub(crate) at_most: bool,
    pub sites: Vec<WaitSite>,
}

/// Where some of them were called from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WaitSite {
    /// The frame that a person looks for, with those that tell it from others.
    pub site: String,
    pub calls: u64,
    pub total_ns: u64,
}

/// Of `calls` that took `ns`, those that are in none of `sites`, and their time, ns; `None`: all are in some.
#[must_use]
pub(super) fn elsewhere(calls: u64, ns: u64, sites: &[WaitSite]) -> Option<(u64, u64)> {
    let unplaced = calls.saturating_sub(sum(sites.iter().map(|site| site.calls)));
    let placed_ns = sum(sites.iter().map(|site| site.total_ns));
    (unplaced > 0).then(|| (unplaced, ns.saturating_sub(placed_ns)))
}

/// What waited, and which layer says so.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Waited {
    pub waits: Vec<Wait>,
    pub hidden: Vec<Hidden>,
    /// Calls that wait.
    pub calls: Figure,
}

#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    calls: u64,
    ns: u64,
    max_ns: u64,
}

impl Tally {
    fn add(&mut self, calls: u64, ns: u64, max_ns: u64) {
        self.calls = self.calls.saturating_add(calls);
        self.ns = self.ns.saturating_add(ns);
        self.max_ns = self.max_ns.max(max_ns);
    }
}

/// One kind of waits, by call stack.
#[derive(Debug, Default)]
struct Sum {
    all: Tally,
    at: Vec<(Vec<Frame>, Tally)>,
}

impl Sum {
    fn add(&mut self, frames: Vec<Frame>, tally: Tally) {
        self.all.add(tally.calls, tally.ns, tally.max_ns);
        if !frames.is_empty() {
            self.at.push((frames, tally));
        }
    }

    fn sites(&self) -> Vec<WaitSite> {
        let mut sites: BTreeMap<String, Tally> = BTreeMap::new();
        let apart = Apart::of(self.at.iter().map(|(frames, _)| frames.as_slice()));
        for (frames, tally) in &self.at {
            let sum = sites.entry(apart.label(frames)).or_default();
            sum.add(tally.calls, tally.ns, tally.max_ns);
        }
        let mut sites: Vec<WaitSite> = sites
            .into_iter()
            .map(|(site, tally)| WaitSite {
                site,
                calls: tally.calls,
                total_ns: tally.ns,
            })
            .collect();
        sites.sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then_with(|| a.site.cmp(&b.site)));
        sites.truncate(SITES);
        sites
    }
}

/// Waits as rows tell of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Waits {
    stacks: Texts,
    /// By function and stack.
    of: [HashMap<(usize, Option<u32>), Tally>; 2],
    /// Copies that block, by stack.
    copies: [HashMap<Option<u32>, Tally>; 2],
    pub(super) calls: [u64; 2],
}

impl Waits {
    pub(super) fn take(&mut self, event: &Record<'_>, function: usize, view: View) {
        // what was refused has waited for nothing
        let (Some(index), Some(ns), false) = (index(view), event.ns, event.failed) else {
            return;
        };
        let stack = event.stack.map(|stack| self.stacks.number(stack));
        let tally = match event.class {
            Class::Copy => room(&mut self.copies[index], stack, None),
            _ => {
                self.calls[index] = self.calls[index].saturating_add(event.count);
                room(&mut self.of[index], (function, stack), (function, None))
            }
        };
        tally.add(event.count, ns, ns);
    }

    /// Most time first. What `exact` says replaces what rows add up to; `stackless`: where waits were, rows alone know.
    pub(super) fn list(&self, functions: &Functions, exact: Option<&Snapshot>, stackless: bool) -> Waited {
        let calls = exact.map_or_else(|| Figure::fuller(self.calls[0], self.calls[1]), of_summary);
        let by_driver = exact.filter(|_| calls.view == snapshot::View::Driver && !stackless);
        Waited {
            waits: match by_driver {
                Some(exact) => waits(by_function(exact)),
                None => self.by_rows(functions, exact, calls.view),
            },
            hidden: match exact.filter(|exact| !exact.work.is_empty()) {
                Some(exact) => hidden(by_kind(exact)),
                None => self.blocking_copies(),
            },
            calls,
        }
    }

    fn by_rows(&self, functions: &Functions, exact: Option<&Snapshot>, view: snapshot::View) -> Vec<Wait> {
        let index = usize::from(view == snapshot::View::Runtime);
        let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
        for ((function, stack), tally) in &self.of[index] {
            let sum = sums.entry(functions.name(*function).to_owned()).or_default();
            sum.add(self.frames(*stack), *tally);
        }
        let reported = exact.map(|exact| exact.functions.as_slice()).unwrap_or_default();
        let waiting = |one: &&snapshot::Function| (one.layer.as_str(), one.category.as_str()) == (view.name(), "sync");
        let reported = reported.iter().filter(waiting);
        for function in reported {
            let sum = sums.entry(function.name.clone()).or_default();
            sum.all = Tally {
                calls: function.calls,
                ns: function.total_ns.unwrap_or(sum.all.ns),
                max_ns: function.max_ns.unwrap_or(sum.all.max_ns),
            };
        }
        waits(sums)
    }

    /// Rows alone tell of no other kind.
    fn blocking_copies(&self) -> Vec<Hidden> {
        let counts = [0, 1].map(|index| {
            self.copies[index]
                .values()
                .map(|tally| tally.calls)
                .fold(0, u64::saturating_add)
        });
        let mut sum = Sum::default();
        for (stack, tally) in &self.copies[fuller(&counts)] {
            sum.add(self.frames(*stack), *tally);
        }
        let key = (HiddenKind::BlockingCopy.name().to_owned(), false);
        match sum.all.calls {
            0 => Vec::new(),
            _ => hidden(BTreeMap::from([(key, sum)])),
        }
    }

    fn frames(&self, stack: Option<u32>) -> Vec<Frame> {
        stack
            .map(|stack| site::frames(self.stacks.text(stack)))
            .unwrap_or_default()
    }
}

/// The sum of `key`, or, where there are too many, of `without` its stack.
fn room<K: std::hash::Hash + Eq>(of: &mut HashMap<K, Tally>, key: K, without: K) -> &mut Tally {
    let full = of.len() >= LIMIT && !of.contains_key(&key);
    of.entry(if full { without } else { key }).or_default()
}

/// How many calls waited, by the fuller layer.
fn of_summary(exact: &Snapshot) -> Figure {
    let waits = exact.work.iter().flat_map(|work| &work.waits);
    let driver = waits.fold(0, |sum: u64, wait| sum.saturating_add(wait.count));
    Figure::fuller(driver, exact.calls_of("sync", snapshot::View::Runtime))
}

fn by_function(exact: &Snapshot) -> BTreeMap<String, Sum> {
    let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
    for wait in exact.work.iter().flat_map(|work| &work.waits) {
        let tally = Tally {
            calls: wait.count,
            ns: wait.total_ns,
            max_ns: wait.max_ns,
        };
        let sum = sums.entry(wait.function.clone()).or_default();
        sum.add(site::frames_of(&wait.stack), tally);
    }
    sums
}

fn by_kind(exact: &Snapshot) -> BTreeMap<(String, bool), Sum> {
    let mut sums: BTreeMap<(String, bool), Sum> = BTreeMap::new();
    for wait in exact.work.iter().flat_map(|work| &work.hidden) {
        let at_most = wait.certainty != Certainty::Measured.name();
        let tally = Tally {
            calls: wait.count,
            ns: wait.total_ns,
            max_ns: 0,
        };
        let sum = sums.entry((wait.kind.clone(), at_most)).or_default();
        sum.add(site::frames_of(&wait.stack), tally);
    }
    sums
}

fn waits(sums: BTreeMap<String, Sum>) -> Vec<Wait> {
    let all = sums.into_iter().map(|(name, sum)| Wait {
        name,
        calls: sum.all.calls,
        total_ns: sum.all.ns,
        max_ns: sum.all.max_ns,
        sites: sum.sites(),
    });
    let mut waits: Vec<Wait> = all.collect();
    waits.sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then_with(|| a.name.cmp(&b.name)));
    waits
}

fn hidden(sums: BTreeMap<(String, bool), Sum>) -> Vec<Hidden> {
    let all = sums.into_iter().map(|((kind, at_most), sum)| Hidden {
        kind,
        calls: sum.all.calls,
        total_ns: sum.all.ns,
        at_most,
        sites: sum.sites(),
    });
    let mut hidden: Vec<Hidden> = all.collect();
    hidden.sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then_with(|| a.kind.cmp(&b.kind)));
    hidden
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_without_a_site_have_the_time_that_is_left() {
        let site = |calls, total_ns| WaitSite {
            site: "train.py:50 loss".to_owned(),
            calls,
            total_ns,
        };
        assert_eq!(elsewhere(10, 900, &[site(3, 500), site(2, 100)]), Some((5, 300)));
        assert_eq!(elsewhere(5, 900, &[site(3, 500), site(2, 400)]), None);
        assert_eq!(elsewhere(5, 1, &[site(u64::MAX, 7), site(2, u64::MAX)]), None);
        assert_eq!(elsewhere(5, 1, &[site(1, u64::MAX)]), Some((4, 0)));
    }
}
