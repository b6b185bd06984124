//! Device memory over time, by process, and who asked for it.

use super::bins::{Bins, Merge};
use super::functions::View;
use super::kernels::{index, seen};
use super::site::{self, Apart};
use super::texts::Texts;
use crate::catalog::Class;
use crate::model::snapshot::Holder;
use crate::record::Record;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// Processes whose memory is followed over time.
const PROCESSES: usize = 64;
/// Call sites that are told.
const SITES: usize = 20;

/// Device memory of the traced processes.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Memory {
    /// Most at any moment first.
    pub processes: Vec<Held>,
    /// Allocations and frees that succeeded, and their bytes; the driver's, or the runtime's where no driver is seen.
    pub allocations: u64,
    pub allocated_bytes: u64,
    pub allocation_ns: u64,
    pub frees: u64,
    pub free_ns: u64,
    pub failed: u64,
    /// Most bytes first.
    pub sites: Vec<MemorySite>,
}

impl Memory {
    /// The most that one process held, bytes; `None`: not known.
    #[must_use]
    pub(crate) fn peak_bytes(&self) -> Option<u64> {
        self.processes.iter().map(|process| process.peak_bytes).max()
    }

    /// Those that held something, or may have.
    pub(super) fn holders(&self) -> impl Iterator<Item = &Held> {
        self.processes.iter().filter(|held| held.peak_bytes > 0 || held.late)
    }

    /// Whether a process may have held more than is known.
    #[must_use]
    pub(crate) fn has_late(&self) -> bool {
        self.processes.iter().any(|process| process.late)
    }

    /// With what totals of the run say of its processes.
    pub(super) fn with_totals(mut self, holders: Option<&[Holder]>) -> Memory {
        let late = |pid: u32| holders.is_some_and(|all| all.iter().any(|holder| holder.pid == pid && holder.late));
        for process in &mut self.processes {
            process.late = late(process.pid);
        }
        self
    }
}

/// What one process held.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Held {
    pub pid: u32,
    pub peak_bytes: u64,
    pub(crate) peak_at_ns: i64,
    /// After the last row that says so.
    pub(crate) last_bytes: u64,
    pub(crate) last_at_ns: i64,
    /// Length of a step of `points`, ns.
    pub(crate) step_ns: u64,
    /// It ran before it was watched: what it held then is not known, and is in none of these.
    pub(crate) late: bool,
    /// Least and most in each step.
    pub(crate) points: Vec<Point>,
}

/// What numbers are of, where processes may have held more than is known.
pub(crate) fn since_words(late: bool) -> &'static str {
    match late {
        true => ", of what was allocated since it was watched",
        false => "",
    }
}

/// Bytes held in a step around `at_ns`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Point {
    pub at_ns: i64,
    pub min_bytes: u64,
    pub max_bytes: u64,
}

/// Where memory was asked for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MemorySite {
    /// The frame that a person looks for, with those that tell it from others.
    pub site: String,
    pub allocations: u64,
    pub bytes: u64,
}

#[derive(Debug, Clone, Copy)]
struct Extremes {
    min: u64,
    max: u64,
}

impl Default for Extremes {
    fn default() -> Extremes {
        Extremes { min: u64::MAX, max: 0 }
    }
}

impl Merge for Extremes {
    fn merge(&mut self, later: &Extremes) {
        self.min = self.min.min(later.min);
        self.max = self.max.max(later.max);
    }
}

#[derive(Debug, Clone)]
struct Track {
    peak: (u64, i64),
    last: (u64, i64),
    steps: Bins<Extremes>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    allocations: u64,
    bytes: u64,
    allocation_ns: u64,
    frees: u64,
    free_ns: u64,
    failed: u64,
}

/// Device memory over time.
#[derive(Debug, Clone, Default)]
pub(super) struct MemoryTally {
    tracks: BTreeMap<u32, Track>,
    stacks: Texts,
    sites: [HashMap<u32, (u64, u64)>; 2],
    of: [Tally; 2],
}

impl MemoryTally {
    /// A process holds `bytes` from `at` on.
    pub(super) fn hold(&mut self, pid: u32, at: i64, bytes: u64, origin: i64) {
        if self.tracks.len() >= PROCESSES && !self.tracks.contains_key(&pid) {
            return;
        }
        let track = self.tracks.entry(pid).or_insert_with(|| Track {
            peak: (bytes, at),
            last: (bytes, at),
            steps: Bins::from(origin),
        });
        if bytes > track.peak.0 {
            track.peak = (bytes, at);
        }
        if at >= track.last.1 {
            track.last = (bytes, at);
        }
        let step = track.steps.at(at);
        step.merge(&Extremes { min: bytes, max: bytes });
    }

    /// A call that allocates or frees.
    pub(super) fn take(&mut self, event: &Record<'_>, view: View) {
        let Some(index) = index(view) else { return };
        let tally = &mut self.of[index];
        let (ns, bytes) = (event.ns.unwrap_or(0), event.bytes.unwrap_or(0));
        match (event.failed, event.class) {
            (true, _) => tally.failed += 1,
            (false, Class::Alloc) => {
                tally.allocations += 1;
                tally.bytes = tally.bytes.saturating_add(bytes);
                tally.allocation_ns = tally.allocation_ns.saturating_add(ns);
                if let Some(stack) = event.stack {
                    let stack = self.stacks.number(stack);
                    let site = self.sites[index].entry(stack).or_default();
                    site.0 += 1;
                    site.1 = site.1.saturating_add(bytes);
                }
            }
            (false, _) => {
                tally.frees += 1;
                tally.free_ns = tally.free_ns.saturating_add(ns);
            }
        }
    }

    pub(super) fn report(&self) -> Memory {
        let seen = seen(&self.of.map(|tally| tally.allocations + tally.frees + tally.failed));
        let tally = &self.of[seen];
        let mut processes: Vec<Held> = self.tracks.iter().map(|(pid, track)| track.held(*pid)).collect();
        processes.sort_by(|a, b| b.peak_bytes.cmp(&a.peak_bytes).then(a.pid.cmp(&b.pid)));
        Memory {
            processes,
            allocations: tally.allocations,
            allocated_bytes: tally.bytes,
            allocation_ns: tally.allocation_ns,
            frees: tally.frees,
            free_ns: tally.free_ns,
            failed: tally.failed,
            sites: self.by_site(seen),
        }
    }

    fn by_site(&self, seen: usize) -> Vec<MemorySite> {
        let mut places: HashMap<String, (u64, u64)> = HashMap::new();
        let stacks = self.sites[seen].iter();
        let stacks = stacks.map(|(stack, sums)| (site::frames(self.stacks.text(*stack)), sums));
        let known: Vec<_> = stacks.filter(|(frames, _)| !frames.is_empty()).collect();
        let apart = Apart::of(known.iter().map(|(frames, _)| frames.as_slice()));
        for (frames, (allocations, bytes)) in &known {
            let sum = places.entry(apart.label(frames)).or_default();
            *sum = (sum.0 + allocations, sum.1.saturating_add(*bytes));
        }
        let sites = places.into_iter().map(|(site, (allocations, bytes))| MemorySite {
            site,
            allocations,
            bytes,
        });
        let mut sites: Vec<MemorySite> = sites.collect();
        sites.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.site.cmp(&b.site)));
        sites.truncate(SITES);
        sites
    }
}

impl Track {
    fn held(&self, pid: u32) -> Held {
        // steps without a change are left out: it stays as it was
        let changed = self.steps.iter().filter(|(_, step)| step.max >= step.min);
        let points = changed.map(|(at_ns, step)| Point {
            at_ns,
            min_bytes: step.min,
            max_bytes: step.max,
        });
        Held {
            pid,
            peak_bytes: self.peak.0,
            peak_at_ns: self.peak.1,
            last_bytes: self.last.0,
            last_at_ns: self.last.1,
            step_ns: self.steps.width(),
            late: false,
            points: points.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_held_nothing_is_shown_only_where_it_may_have_held_something() {
        let held = |pid: u32, peak_bytes: u64, late: bool| Held {
            pid,
            peak_bytes,
            peak_at_ns: 0,
            last_bytes: 0,
            last_at_ns: 0,
            step_ns: 1,
            late,
            points: Vec::new(),
        };
        let memory = Memory {
            processes: vec![held(1, 512, false), held(2, 0, true), held(3, 0, false)],
            ..Memory::default()
        };
        let shown: Vec<u32> = memory.holders().map(|held| held.pid).collect();
        assert_eq!(shown, [1, 2]);
    }
}
