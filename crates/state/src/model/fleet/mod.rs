//! Sums by owner over all processes: those that live, and those that have ended.
//!
//! Pure. Owns that nothing falls when a process ends, when a kernel gets its name, or when a bound becomes tighter.

mod distinct;
mod earlier;
mod sums;
mod top;
mod waste;

pub use distinct::OTHER_CODE;
pub use earlier::Earlier;
pub use sums::{Allocated, Asked, Calls, Copied, EDGES_NS, Sums, Used, WaitOf, Waited};
pub(crate) use top::Shown;
pub(crate) use waste::Waste;
pub use waste::{Uses, Wasted};

use crate::catalog::Family;
use crate::owner::Owner;
use distinct::Distinct;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use top::Top;

/// Upper limits of the ages of allocations, ns, with their words; the last bucket has none.
pub const AGES: [(u64, &str); 5] = [
    (60_000_000_000, "1m"),
    (600_000_000_000, "10m"),
    (3_600_000_000_000, "1h"),
    (86_400_000_000_000, "1d"),
    (u64::MAX, "older"),
];

/// Number and bytes of allocations, by [`AGES`].
pub(crate) type Ages = [(u64, u64); AGES.len()];

/// Where memory lies; `None`: on the host, or on a device that is not known.
pub type Device = Option<Arc<str>>;

/// What living processes hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Held {
    /// Bytes and allocations.
    pub families: BTreeMap<(Family, Device), (u64, u64)>,
    /// Most that one of them has held at a time.
    pub peak_bytes: BTreeMap<Device, u64>,
    pub ages: Ages,
    /// What the driver counts, by device.
    pub driver_bytes: BTreeMap<Arc<str>, u64>,
    /// What of it no allocation explains, without the next.
    pub unattributed_bytes: BTreeMap<Arc<str>, u64>,
    /// What was there before the processes were watched, at most.
    pub earlier_bytes: BTreeMap<Arc<str>, u64>,
    /// Processes whose idle time is no bound.
    pub inferred: u64,
}

/// A call that has not returned, the outermost of those whose return is hooked: what is within waits for the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LongCall {
    pub function: String,
    /// So far.
    pub ns: u64,
}

/// Of the living processes of one owner.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Living {
    pub processes: u64,
    pub sums: Sums,
    pub held: Held,
    /// The longest of those that are long by now.
    pub open: Option<LongCall>,
}

impl Living {
    /// One of its processes is in such a call.
    pub fn note_open(&mut self, call: LongCall) {
        if self.open.as_ref().is_none_or(|known| known.ns < call.ns) {
            self.open = Some(call);
        }
    }
}

/// What is known of one owner.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    pub owner: Arc<Owner>,
    /// That live.
    pub processes: u64,
    pub sums: Sums,
    pub held: Held,
    pub kernels: Shown,
    /// The longest of those calls that have not returned and are long by now.
    pub open: Option<LongCall>,
}

#[derive(Debug, Default)]
struct Past {
    sums: Sums,
    distinct: Distinct,
    top: Top,
    used: Used,
    /// CLOCK_MONOTONIC ns of when it last had a living process, or one that ended.
    seen_at: u64,
}

/// Sums by owner over all processes.
#[derive(Debug, Default)]
pub struct Fleet {
    past: HashMap<Arc<Owner>, Past>,
    evicted: u64,
}

impl Fleet {
    /// A process of `owner` has ended at `now`, CLOCK_MONOTONIC ns, or has told more of what it did before its end.
    pub fn fold(&mut self, owner: &Arc<Owner>, mut sums: Sums, now: u64) {
        let past = self.past.entry(Arc::clone(owner)).or_default();
        past.distinct.bound(&mut sums);
        past.sums.add(&sums);
        past.sums.bound_places();
        past.seen_at = past.seen_at.max(now);
    }

    /// Everything at `now`, CLOCK_MONOTONIC ns, with so many kernels of each owner by name; by owner.
    pub fn read(&mut self, mut living: HashMap<Arc<Owner>, Living>, now: u64, kernels: usize) -> Vec<Reading> {
        for owner in living.keys() {
            self.past.entry(Arc::clone(owner)).or_default().seen_at = now;
        }
        let past = self.past.iter_mut();
        let mut readings: Vec<Reading> = past
            .map(|(owner, past)| past.read(owner, living.remove(owner).unwrap_or_default(), kernels))
            .collect();
        readings.sort_by(|a, b| a.owner.cmp(&b.owner));
        readings
    }

    /// Forgets owners that had no process since `horizon`, CLOCK_MONOTONIC ns, and tells which.
    pub fn retire(&mut self, horizon: u64) -> Vec<Arc<Owner>> {
        let old = self.dead_since(horizon);
        old.iter().for_each(|owner| self.forget(owner));
        old
    }

    /// Owners that had no process since `horizon`, CLOCK_MONOTONIC ns, those without one for longest first.
    #[must_use]
    pub fn dead_since(&self, horizon: u64) -> Vec<Arc<Owner>> {
        let dead = self.past.iter().filter(|(_, past)| past.seen_at < horizon);
        let mut dead: Vec<(u64, &Arc<Owner>)> = dead.map(|(owner, past)| (past.seen_at, owner)).collect();
        dead.sort();
        dead.into_iter().map(|(_, owner)| Arc::clone(owner)).collect()
    }

    /// Forgets an owner.
    pub fn forget(&mut self, owner: &Arc<Owner>) {
        if let Some(past) = self.past.remove(owner) {
            self.evicted += past.top.evicted;
        }
    }

    /// Owners with figures.
    #[must_use]
    pub fn owners(&self) -> usize {
        self.past.len()
    }

    /// Kernels that were shown by name and had to make room for busier ones.
    #[must_use]
    pub fn evicted_kernels(&self) -> u64 {
        let now: u64 = self.past.values().map(|past| past.top.evicted).sum();
        self.evicted + now
    }
}

impl Past {
    fn read(&mut self, owner: &Arc<Owner>, mut living: Living, kernels: usize) -> Reading {
        self.distinct.bound(&mut living.sums);
        self.sums.admit(&living.sums);
        let mut sums = self.sums.clone();
        sums.add(&living.sums);
        // bounds of time that has passed may become tighter; what was shown was right, too
        self.used.idle_at_least_ns = self.used.idle_at_least_ns.max(sums.used.idle_at_least_ns);
        self.used.busy_at_most_ns = self.used.busy_at_most_ns.max(sums.used.busy_at_most_ns);
        sums.used = self.used;
        Reading {
            owner: Arc::clone(owner),
            processes: living.processes,
            held: living.held,
            open: living.open,
            kernels: self.top.read(&sums.kernels, sums.launched.succeeded, kernels),
            sums,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::kind::HiddenKind;

    fn owner(name: &str) -> Arc<Owner> {
        Arc::new(Owner {
            labels: vec![("comm".to_owned(), name.to_owned())],
        })
    }

    fn launching(name: &str, count: u64) -> Sums {
        let mut sums = Sums::default();
        sums.kernels.insert(name.into(), count);
        sums.launched.succeeded = count;
        sums
    }

    fn living(owner: &Arc<Owner>, sums: Sums) -> HashMap<Arc<Owner>, Living> {
        let living = Living {
            processes: 1,
            sums,
            ..Living::default()
        };
        HashMap::from([(Arc::clone(owner), living)])
    }

    #[test]
    fn what_a_process_did_stays_when_it_ends() {
        let (mut fleet, train) = (Fleet::default(), owner("train"));
        let before = fleet.read(living(&train, launching("k", 7)), 1, 10);
        fleet.fold(&train, launching("k", 7), 2);
        let after = fleet.read(HashMap::new(), 3, 10);
        assert_eq!((before[0].processes, after[0].processes), (1, 0));
        assert_eq!(before[0].sums, after[0].sums);
        assert_eq!(before[0].kernels, after[0].kernels);
    }

    #[test]
    fn a_kernel_that_was_counted_by_name_stays_though_there_are_more_than_there_is_room_for() {
        let (mut fleet, train) = (Fleet::default(), owner("train"));
        let names = |from: usize, to: usize| {
            let mut sums = Sums::default();
            sums.kernels
                .extend((from..to).map(|number| (format!("k{number}").into(), 10)));
            sums.launched.succeeded = 10 * (to - from) as u64;
            sums
        };
        fleet.fold(&train, names(0, 4000), 1);
        let mut shown = || -> Vec<Arc<str>> {
            let reading = fleet.read(living(&train, names(4000, 4500)), 2, 5000).remove(0);
            let mut shown: Vec<Arc<str>> = reading.sums.kernels.into_keys().collect();
            shown.sort();
            shown
        };
        let first = shown();
        assert!(first.len() < 4500);
        assert_eq!(first, shown());
    }

    #[test]
    fn processes_of_one_owner_add_up() {
        let (mut fleet, train) = (Fleet::default(), owner("train"));
        fleet.fold(&train, launching("k", 7), 2);
        fleet.fold(&train, launching("k", 1), 3);
        let all = fleet.read(living(&train, launching("j", 2)), 4, 10);
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].sums.launched.succeeded, 10);
        assert_eq!(all[0].kernels.named, [("k".into(), 8), ("j".into(), 2)]);
    }

    #[test]
    fn a_bound_that_becomes_tighter_does_not_fall() {
        let (mut fleet, train) = (Fleet::default(), owner("train"));
        let used = |idle, busy| Sums {
            used: Used {
                idle_at_least_ns: idle,
                busy_at_most_ns: busy,
            },
            ..Sums::default()
        };
        fleet.read(living(&train, used(0, 100)), 1, 10);
        let later = fleet.read(living(&train, used(90, 20)), 2, 10);
        assert_eq!(
            (later[0].sums.used.idle_at_least_ns, later[0].sums.used.busy_at_most_ns),
            (90, 100)
        );
    }

    #[test]
    fn lines_of_the_living_and_of_the_dead_add_up() {
        let (mut fleet, train) = (Fleet::default(), owner("train"));
        let place: (WaitOf, Arc<str>) = (WaitOf::Hidden(HiddenKind::Item), "train.py:7 step".into());
        let mut sums = Sums::default();
        sums.waits_at.insert(place.clone(), 30);
        fleet.fold(&train, sums.clone(), 1);
        let all = fleet.read(living(&train, sums), 2, 10);
        assert_eq!(all[0].sums.waits_at, HashMap::from([(place, 60)]));
    }

    #[test]
    fn owners_are_kept_for_a_while_after_their_last_process() {
        let (mut fleet, train) = (Fleet::default(), owner("train"));
        fleet.fold(&train, launching("k", 7), 100);
        assert!(fleet.retire(100).is_empty());
        assert_eq!(fleet.retire(101), [train]);
        assert_eq!(fleet.owners(), 0);
    }

    #[test]
    fn who_has_been_dead_for_longest_is_told_first() {
        let (mut fleet, owners) = (Fleet::default(), ["a", "b", "c"].map(owner));
        for (owner, at) in owners.iter().zip([30, 10, 20]) {
            fleet.fold(owner, launching("k", 1), at);
        }
        let [a, b, c] = owners;
        assert_eq!(fleet.dead_since(30), [Arc::clone(&b), c]);
        fleet.forget(&b);
        assert!(!fleet.dead_since(31).contains(&b) && fleet.dead_since(31).contains(&a));
    }
}
