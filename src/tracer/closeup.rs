//! What is known of one living process beyond its sums: calls by function, calls that have not returned, allocations held.
//!
//! Made when somebody looks at that process: of all of them it would take too long.

use super::Tracer;
use crate::clock::monotonic_ns;
use crate::discover;
use crate::frame::lines::frame_place;
use crate::model::fleet::LongCall;
use crate::model::memory::{AllocationMap, SiteReport, Wanted};
use crate::model::summary::Summary;
use crate::probe::open_calls::{NotSeen, OpenCall};
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Threads that are looked at.
const MOST_THREADS: usize = 1024;
/// The same, of all processes together.
const MOST_OF_ALL: usize = 4096;
/// Call sites that are named.
const MOST_SITES: usize = 200;

/// What is known of one living process beyond its sums.
#[derive(Debug, Clone, Default)]
pub struct Closeup {
    pub functions: Vec<Function>,
    pub(crate) in_progress: Vec<InProgress>,
    /// Why calls in progress are not seen of all threads.
    pub unseen: Option<String>,
    /// Most bytes first.
    pub sites: Vec<SiteReport>,
    /// `None`: nobody wants it, or the process is not known.
    pub map: Option<AllocationMap>,
    /// Lines of the program, by call site of these.
    pub places: HashMap<u64, String>,
}

/// Calls of one function that have ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Function {
    pub layer: String,
    pub name: String,
    pub calls: u64,
    pub errors: u64,
    /// `None`: its return is not hooked.
    pub total_ns: Option<u64>,
}

/// Calls that one thread is in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct InProgress {
    pub tid: u32,
    pub comm: String,
    /// The outermost first.
    pub functions: Vec<String>,
    /// How long ago the outermost began.
    pub ns: u64,
}

impl Tracer {
    /// Calls that have not returned for `ns` or longer: the longest of each process.
    pub(super) fn longest_calls(&mut self, ns: u64) -> HashMap<u32, LongCall> {
        let now = monotonic_ns();
        let mut longest: HashMap<u32, LongCall> = HashMap::new();
        for (tid, pid) in self.open.threads().into_iter().take(MOST_OF_ALL) {
            let calls = match self.engine.open_calls(pid, tid) {
                Ok(calls) => calls,
                Err(NotSeen::Gone) => {
                    self.open.gone(tid, None);
                    continue;
                }
                Err(NotSeen::OldKernel) => continue,
            };
            let known = longest.get(&pid).map_or(ns, |one| one.ns);
            let is_longer = |call: &OpenCall| now.saturating_sub(call.entered) >= known;
            if calls.first().is_some_and(is_longer) {
                let long = self.in_calls((pid, tid), &calls, now).and_then(outermost);
                longest.extend(long.map(|call| (pid, call)));
            }
        }
        longest
    }

    /// What process `pid` has done by function, is doing, and holds; `wanted` of that also one by one.
    ///
    /// # Errors
    /// A table of the kernel cannot be read.
    pub(crate) fn closeup(&mut self, pid: u32, wanted: Option<Wanted>) -> Result<Closeup> {
        let (in_progress, unseen) = self.in_progress(pid);
        let (catalog, now) = (&self.rows.catalog, monotonic_ns());
        let sites = self.memory.sites_of(pid, catalog, now);
        let map = wanted.and_then(|wanted| self.memory.map_of(pid, wanted, catalog, now));
        let held = sites.iter().filter(|site| site.account.held_bytes > 0);
        let held = held.map(|site| site.site).take(MOST_SITES);
        let shown = map.iter().flat_map(|map| &map.shown).map(|allocation| allocation.site);
        let called: BTreeSet<u64> = held.chain(shown).collect();
        Ok(Closeup {
            functions: self.functions_of(pid)?,
            in_progress,
            unseen,
            places: self.places_of(called),
            sites,
            map,
        })
    }

    /// Names the places in `summary` where processes have waited longest: that of a run that goes on has no call stacks.
    pub(crate) fn name_waits(&mut self, summary: &mut Summary) {
        let waits = summary.work.iter().flat_map(|process| {
            let asked = process.waits.iter().map(|wait| (wait.total_ns, wait.site));
            asked.chain(process.hidden.iter().map(|wait| (wait.total_ns, wait.site)))
        });
        let mut waits: Vec<(u64, u64)> = waits.filter(|(_, site)| *site != 0).collect();
        waits.sort_unstable_by_key(|(ns, _)| std::cmp::Reverse(*ns));
        for (_, site) in waits.into_iter().take(MOST_SITES) {
            if let Some(shown) = self.memory.sites.frames(site) {
                summary.memory.stacks.insert(site, shown.frames.clone());
            }
        }
    }

    fn places_of(&mut self, sites: BTreeSet<u64>) -> HashMap<u64, String> {
        let mut place = |site: u64| Some((site, frame_place(&self.memory.sites.frames(site)?.frames)?));
        sites.into_iter().filter_map(&mut place).collect()
    }

    fn functions_of(&self, pid: u32) -> Result<Vec<Function>> {
        let mut by_row: BTreeMap<u32, Function> = BTreeMap::new();
        let catalog = &self.rows.catalog;
        self.engine.read_counts(
            |key, total| {
                let is_of_driver = catalog.driver.is_some_and(|driver| driver.contains(key.row));
                if key.tgid != pid || is_of_driver {
                    return;
                }
                let function = by_row.entry(key.row).or_default();
                function.calls += total.calls();
                function.errors += total.errors;
                if self.rows.timed(key.row) {
                    *function.total_ns.get_or_insert_default() += total.total_ns;
                }
            },
            |_, _| {},
        )?;
        let named = by_row.into_iter().filter_map(|(row, function)| {
            let row = catalog.rows.get(row as usize)?;
            Some(Function {
                layer: catalog.library_with(row.library)?.name.clone(),
                name: row.symbol.clone(),
                ..function
            })
        });
        let mut functions: Vec<Function> = named.collect();
        functions.sort_by_key(|function| std::cmp::Reverse((function.total_ns, function.calls)));
        Ok(functions)
    }

    fn in_progress(&self, pid: u32) -> (Vec<InProgress>, Option<String>) {
        let now = monotonic_ns();
        let (mut all, mut unseen) = (Vec::new(), None);
        let threads = discover::threads(pid);
        if threads.len() > MOST_THREADS {
            unseen = Some(format!("calls of threads beyond {MOST_THREADS} are not looked at"));
        }
        for tid in threads.into_iter().take(MOST_THREADS) {
            match self.engine.open_calls(pid, tid) {
                Ok(calls) => all.extend(self.in_calls((pid, tid), &calls, now)),
                Err(NotSeen::Gone) => {}
                Err(NotSeen::OldKernel) => {
                    unseen = Some("of other threads than the first: that needs Linux 6.9".to_owned());
                }
            }
        }
        all.sort_by_key(|one| std::cmp::Reverse(one.ns));
        (all, unseen)
    }

    fn in_calls(&self, (pid, tid): (u32, u32), calls: &[OpenCall], now: u64) -> Option<InProgress> {
        let first = calls.first()?;
        let name = |call: &OpenCall| Some(self.rows.catalog.rows.get(call.row as usize)?.symbol.clone());
        Some(InProgress {
            tid,
            comm: discover::comm(pid, tid).unwrap_or_default(),
            functions: calls.iter().filter_map(name).collect(),
            ns: now.saturating_sub(first.entered),
        })
    }
}

/// As those are named that look at many processes.
fn outermost(calls: InProgress) -> Option<LongCall> {
    Some(LongCall {
        function: calls.functions.into_iter().next()?,
        ns: calls.ns,
    })
}
