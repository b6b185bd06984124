//! What processes have done since they began: only ever grows. Sums of several add up.

use super::Waste;
use crate::catalog::{Catalog, Class, Family, Holder, LibraryId};
use crate::model::kind::{CopyClass, HiddenKind};
use crate::model::waiting::Waiting;
use crate::wire::{DRIVER_SUBJECT, DriverShare, FailureKey, ShareKey, Total, TotalKey};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Upper edges of the buckets of durations, ns: every second power of two. An edge itself is in the next bucket.
pub const EDGES_NS: [u64; EDGES] = {
    let mut edges = [0; EDGES];
    let mut index = 0;
    while index < EDGES {
        edges[index] = 1 << (FIRST_OCTAVE + 2 * index as u32);
        index += 1;
    }
    edges
};
const EDGES: usize = 12;
const FIRST_OCTAVE: u32 = 10;
/// Of the kernel's buckets, which begin at 2^5 ns.
const OCTAVE: u32 = 5;
const BUCKETS_OF_OCTAVE: usize = 4;
/// Places of waits of one owner's ended processes.
const MOST_PLACES: usize = 1024;
/// Names of kernels that are told apart for one owner.
const NAMES: usize = 4096;

/// Calls of one class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Calls {
    pub calls: u64,
    /// Of these, calls with a duration.
    pub timed: u64,
    pub total_ns: u64,
    /// By [`EDGES_NS`]; timed calls in none of them were longer.
    pub buckets: [u64; EDGES],
}

/// Launches of kernels, as the driver was asked for them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Launched {
    pub succeeded: u64,
    pub failed: u64,
    pub call_ns: u64,
}

/// Memory of one family.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allocated {
    pub allocations: u64,
    pub allocated_bytes: u64,
    pub frees: u64,
    pub freed_bytes: u64,
    pub failed: u64,
}

/// Copies of one class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Copied {
    pub count: u64,
    pub bytes: u64,
    pub call_ns: u64,
    pub timed_bytes: u64,
    pub timed_ns: u64,
}

/// Waits of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waited {
    pub count: u64,
    pub ns: u64,
}

/// What was waited in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WaitOf {
    /// A function, by row.
    Asked(u32),
    Hidden(HiddenKind),
}

/// What was waited in, and the line of a program.
pub type WaitPlace = (WaitOf, Arc<str>);

/// When devices surely did nothing, and may have worked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Used {
    pub idle_at_least_ns: u64,
    pub busy_at_most_ns: u64,
}

/// Calls to the kernel driver.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Asked {
    pub calls: u64,
    pub ns: u64,
}

/// What processes have done since they began.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sums {
    /// Without those to the kernel driver.
    pub calls: BTreeMap<(LibraryId, Class), Calls>,
    /// Calls to the kernel driver by row and variant; 0: what they are about is not told apart.
    pub asked: BTreeMap<(u32, u64), Asked>,
    /// What of the time of `calls` was spent in the kernel driver.
    pub driver_shares: BTreeMap<(LibraryId, Class), Asked>,
    /// By row and code.
    pub failures: BTreeMap<(u32, i32), u64>,
    pub launched: Launched,
    /// Launches that succeeded, by name; those without one, or beyond as many as are told apart, are in `launched` alone.
    pub kernels: HashMap<Arc<str>, u64>,
    pub graph_launches: u64,
    pub graph_kernels: u64,
    /// Of families that hold memory.
    pub memory: BTreeMap<Family, Allocated>,
    /// Held by processes when they ended.
    pub unreturned_bytes: u64,
    pub copies: BTreeMap<CopyClass, Copied>,
    /// By row.
    pub waits: BTreeMap<u32, Waited>,
    pub hidden: BTreeMap<HiddenKind, Waited>,
    /// ns that threads waited, by what and at which line of a program, as far as that is known and told apart.
    pub waits_at: HashMap<WaitPlace, u64>,
    pub used: Used,
    /// Idle time by device and reason.
    pub waste: Waste,
}

impl Sums {
    /// Adds one entry of the counting plane. `kernel`: it launches kernels, of that name if there is one.
    pub fn count(&mut self, catalog: &Catalog, key: &TotalKey, total: &Total, kernel: Option<Option<Arc<str>>>) {
        let Some(row) = catalog.rows.get(key.row as usize) else {
            return;
        };
        if catalog.driver.is_some_and(|driver| driver.contains(key.row)) {
            return self.ask(key, total);
        }
        self.calls.entry((row.library, row.class)).or_default().count(total);
        let Some(name) = kernel else { return };
        let succeeded = total.calls().saturating_sub(total.errors);
        self.launched.succeeded += succeeded;
        self.launched.failed += total.errors;
        self.launched.call_ns += total.total_ns;
        if let Some(name) = name {
            self.launch(name, succeeded);
        }
    }

    fn ask(&mut self, key: &TotalKey, total: &Total) {
        let told_apart = key.variant & DRIVER_SUBJECT != 0;
        let variant = if told_apart { key.variant } else { 0 };
        let asked = self.asked.entry((key.row, variant)).or_default();
        asked.add(Asked {
            calls: total.calls(),
            ns: total.total_ns,
        });
    }

    /// Adds what calls of a function have spent in the kernel driver.
    pub fn share(&mut self, catalog: &Catalog, key: &ShareKey, share: DriverShare) {
        let Some(row) = catalog.rows.get(key.row as usize) else {
            return;
        };
        let sum = self.driver_shares.entry((row.library, row.class)).or_default();
        sum.add(Asked {
            calls: share.calls,
            ns: share.ns,
        });
    }

    fn launch(&mut self, name: Arc<str>, count: u64) {
        if self.kernels.len() < NAMES || self.kernels.contains_key(&name) {
            *self.kernels.entry(name).or_default() += count;
        }
    }

    /// Has room kept for kernels of `more`, as long as there is some: once counted by name, one always is.
    pub(super) fn admit(&mut self, more: &Sums) {
        let mut new: Vec<&Arc<str>> = more
            .kernels
            .keys()
            .filter(|name| !self.kernels.contains_key(*name))
            .collect();
        new.sort();
        let room = NAMES.saturating_sub(self.kernels.len());
        self.kernels
            .extend(new.into_iter().take(room).map(|name| (Arc::clone(name), 0)));
    }

    /// Adds one entry of the table of failures.
    pub fn fail(&mut self, key: &FailureKey, count: u64) {
        *self.failures.entry((key.row, key.code)).or_default() += count;
    }

    /// Adds memory of one family.
    pub(crate) fn allocate(&mut self, family: Family, more: &Allocated) {
        if family.holder() != Holder::Nobody {
            self.memory.entry(family).or_default().add(more);
        }
    }

    /// Adds everything of `other`.
    pub fn add(&mut self, other: &Sums) {
        for (key, calls) in &other.calls {
            self.calls.entry(*key).or_default().add(calls);
        }
        for (key, count) in &other.failures {
            *self.failures.entry(*key).or_default() += count;
        }
        for (key, asked) in &other.asked {
            self.asked.entry(*key).or_default().add(*asked);
        }
        for (key, share) in &other.driver_shares {
            self.driver_shares.entry(*key).or_default().add(*share);
        }
        self.launched.succeeded += other.launched.succeeded;
        self.launched.failed += other.launched.failed;
        self.launched.call_ns += other.launched.call_ns;
        for (name, count) in &other.kernels {
            self.launch(Arc::clone(name), *count);
        }
        self.graph_launches += other.graph_launches;
        self.graph_kernels += other.graph_kernels;
        self.add_memory(other);
        self.add_work(other);
    }

    fn add_memory(&mut self, other: &Sums) {
        for (family, more) in &other.memory {
            self.memory.entry(*family).or_default().add(more);
        }
        self.unreturned_bytes = self.unreturned_bytes.saturating_add(other.unreturned_bytes);
    }

    fn add_work(&mut self, other: &Sums) {
        for (class, more) in &other.copies {
            self.copies.entry(*class).or_default().add(more);
        }
        for (row, more) in &other.waits {
            self.waits.entry(*row).or_default().add(*more);
        }
        for (kind, more) in &other.hidden {
            self.hidden.entry(*kind).or_default().add(*more);
        }
        for (place, ns) in &other.waits_at {
            *self.waits_at.entry(place.clone()).or_default() += ns;
        }
        self.used.idle_at_least_ns += other.used.idle_at_least_ns;
        self.used.busy_at_most_ns += other.used.busy_at_most_ns;
        self.add_waste(&other.waste);
    }

    /// Of very many places of waits, keeps those with the most.
    pub(crate) fn bound_places(&mut self) {
        if self.waits_at.len() <= MOST_PLACES {
            return;
        }
        let mut all: Vec<(WaitPlace, u64)> = self.waits_at.drain().collect();
        all.sort_unstable_by(|one, other| (other.1, &one.0).cmp(&(one.1, &other.0)));
        all.truncate(MOST_PLACES / 2);
        self.waits_at.extend(all);
    }

    /// Lines of programs that threads waited at, those with the most time first, each with what was waited in there.
    #[must_use]
    pub fn lines(&self, most: usize) -> Vec<(&Arc<str>, BTreeMap<WaitOf, u64>)> {
        let mut lines: HashMap<&Arc<str>, BTreeMap<WaitOf, u64>> = HashMap::new();
        for ((of, line), ns) in &self.waits_at {
            lines.entry(line).or_default().insert(*of, *ns);
        }
        let mut lines: Vec<_> = lines
            .into_iter()
            .map(|(line, waits)| (waited_ns(&waits), line, waits))
            .collect();
        lines.sort_by(|one, other| other.0.total_cmp(&one.0).then_with(|| one.1.cmp(other.1)));
        lines.truncate(most);
        lines.into_iter().map(|(_, line, waits)| (line, waits)).collect()
    }

    /// Adds idle time.
    pub fn add_waste(&mut self, waste: &Waste) {
        for (key, ns) in waste {
            let sum = self.waste.entry(key.clone()).or_default();
            *sum = sum.saturating_add(*ns);
        }
    }
}

/// At least.
fn waited_ns(waits: &BTreeMap<WaitOf, u64>) -> f64 {
    let mut waiting = Waiting::default();
    for (of, ns) in waits {
        let hidden = match of {
            WaitOf::Asked(_) => None,
            WaitOf::Hidden(kind) => Some(kind.name()),
        };
        waiting.note(hidden, Some(*ns as f64));
    }
    waiting.at_least().unwrap_or(0.0)
}

impl Calls {
    fn count(&mut self, total: &Total) {
        self.calls += total.calls();
        self.timed += total.calls() - total.untimed;
        self.total_ns = self.total_ns.saturating_add(total.total_ns);
        for (index, count) in total.bucket.iter().enumerate() {
            let octave = OCTAVE + (index / BUCKETS_OF_OCTAVE) as u32;
            // a bucket of the octave that begins at 2^n lies below the first edge that is above 2^n
            let edge = (octave + 1).saturating_sub(FIRST_OCTAVE).div_ceil(2) as usize;
            if let Some(bucket) = self.buckets.get_mut(edge) {
                *bucket += count;
            }
        }
    }

    fn add(&mut self, other: &Calls) {
        self.calls += other.calls;
        self.timed += other.timed;
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        for (sum, more) in self.buckets.iter_mut().zip(other.buckets) {
            *sum += more;
        }
    }
}

impl Asked {
    /// Adds other calls.
    pub fn add(&mut self, other: Asked) {
        self.calls += other.calls;
        self.ns = self.ns.saturating_add(other.ns);
    }
}

impl Allocated {
    fn add(&mut self, other: &Allocated) {
        self.allocations += other.allocations;
        self.allocated_bytes = self.allocated_bytes.saturating_add(other.allocated_bytes);
        self.frees += other.frees;
        self.freed_bytes = self.freed_bytes.saturating_add(other.freed_bytes);
        self.failed += other.failed;
    }
}

impl Copied {
    /// Adds what another class or process has copied.
    pub fn add(&mut self, other: &Copied) {
        self.count += other.count;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.call_ns = self.call_ns.saturating_add(other.call_ns);
        self.timed_bytes = self.timed_bytes.saturating_add(other.timed_bytes);
        self.timed_ns = self.timed_ns.saturating_add(other.timed_ns);
    }
}

impl Waited {
    /// Adds other waits.
    pub fn add(&mut self, other: Waited) {
        self.count += other.count;
        self.ns = self.ns.saturating_add(other.ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_ns(durations: &[(usize, u64)]) -> Calls {
        let mut total = Total::NONE;
        for (bucket, count) in durations {
            total.bucket[*bucket] = *count;
        }
        let mut calls = Calls::default();
        calls.count(&total);
        calls
    }

    #[test]
    fn a_bucket_of_the_kernel_lies_below_the_next_edge() {
        // 2^5 ns, the last quarter below 2^10, the first from 2^10, the last below 2^12, the first from 2^12
        let calls = of_ns(&[(0, 1), (19, 2), (20, 4), (27, 8), (28, 16)]);
        assert_eq!(calls.buckets[..3], [3, 12, 16]);
        assert_eq!((calls.calls, calls.timed), (31, 31));
    }

    fn waiting(places: &[(WaitOf, &str, u64)]) -> Sums {
        let places = places.iter().map(|(of, line, ns)| ((*of, Arc::from(*line)), *ns));
        Sums {
            waits_at: places.collect(),
            ..Sums::default()
        }
    }

    #[test]
    fn lines_are_ordered_by_their_waits_none_of_which_counts_twice() {
        let (sync, item) = (WaitOf::Asked(7), WaitOf::Hidden(HiddenKind::Item));
        let sums = waiting(&[(sync, "a", 50), (item, "a", 60), (sync, "b", 70), (sync, "c", 1)]);
        let lines = sums.lines(2);
        let names: Vec<&str> = lines.iter().map(|(line, _)| &***line).collect();
        assert_eq!(names, ["b", "a"]);
        assert_eq!(lines[1].1, BTreeMap::from([(sync, 50), (item, 60)]));
    }

    #[test]
    fn of_very_many_places_those_with_the_most_are_kept() {
        let place = |number: u64| ((WaitOf::Asked(1), Arc::from(format!("a.py:{number}"))), number);
        let mut sums = Sums {
            waits_at: (0..=MOST_PLACES as u64).map(place).collect(),
            ..Sums::default()
        };
        sums.bound_places();
        assert_eq!(sums.waits_at.len(), MOST_PLACES / 2);
        assert!(sums.waits_at.values().all(|ns| *ns > MOST_PLACES as u64 / 2));
    }

    #[test]
    fn calls_beyond_the_last_edge_are_in_no_bucket() {
        // 2^32 ns is the last edge: the octave before it is the last one in a bucket
        let calls = of_ns(&[((31 - 5) * 4 + 3, 1), ((32 - 5) * 4, 1)]);
        assert_eq!((calls.buckets[EDGES - 1], calls.timed), (1, 2));
        assert_eq!(EDGES_NS[EDGES - 1], 1 << 32);
    }
}
