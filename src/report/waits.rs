//! Time in calls that wait for a device, by function and by where they were called from.

use super::functions::{Functions, View};
use super::kernels::{index, seen};
use super::site;
use super::texts::Texts;
use crate::trace::Event;
use serde::Serialize;
use std::collections::HashMap;

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

/// Where some of them were called from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WaitSite {
    /// The frame that a person looks for.
    pub site: String,
    pub calls: u64,
    pub total_ns: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    calls: u64,
    ns: u64,
    max_ns: u64,
}

/// See the module.
#[derive(Debug, Clone, Default)]
pub(super) struct Waits {
    stacks: Texts,
    /// By function and stack.
    of: [HashMap<(usize, Option<u32>), Tally>; 2],
    pub(super) calls: [u64; 2],
}

impl Waits {
    pub(super) fn take(&mut self, event: &Event<'_>, function: usize, view: View) {
        let (Some(index), Some(ns)) = (index(view), event.ns) else {
            return;
        };
        let stack = event.stack.map(|stack| self.stacks.number(stack));
        let waits = &mut self.of[index];
        let is_new = waits.len() >= LIMIT && !waits.contains_key(&(function, stack));
        let tally = waits.entry((function, stack.filter(|_| !is_new))).or_default();
        tally.calls += event.count;
        tally.ns = tally.ns.saturating_add(ns);
        tally.max_ns = tally.max_ns.max(ns);
        self.calls[index] += event.count;
    }

    /// Most time first.
    pub(super) fn list(&self, functions: &Functions) -> Vec<Wait> {
        let mut waits: HashMap<usize, (Wait, HashMap<String, WaitSite>)> = HashMap::new();
        for ((function, stack), tally) in &self.of[seen(&self.calls)] {
            let (wait, sites) = waits.entry(*function).or_insert_with(|| {
                let name = functions.name(*function).to_owned();
                (Wait::named(name), HashMap::new())
            });
            wait.calls += tally.calls;
            wait.total_ns += tally.ns;
            wait.max_ns = wait.max_ns.max(tally.max_ns);
            let place = stack.and_then(|stack| site::place(self.stacks.text(stack)));
            if let Some(place) = place {
                let site = sites.entry(place.clone()).or_insert_with(|| WaitSite {
                    site: place,
                    calls: 0,
                    total_ns: 0,
                });
                site.calls += tally.calls;
                site.total_ns += tally.ns;
            }
        }
        let mut waits: Vec<Wait> = waits.into_values().map(|(wait, sites)| wait.with(sites)).collect();
        waits.sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then_with(|| a.name.cmp(&b.name)));
        waits
    }
}

impl Wait {
    fn named(name: String) -> Wait {
        Wait {
            name,
            calls: 0,
            total_ns: 0,
            max_ns: 0,
            sites: Vec::new(),
        }
    }

    fn with(mut self, sites: HashMap<String, WaitSite>) -> Wait {
        self.sites = sites.into_values().collect();
        self.sites
            .sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then_with(|| a.site.cmp(&b.site)));
        self.sites.truncate(SITES);
        self
    }
}
