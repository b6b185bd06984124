//! Single allocations that a process holds: where they lie, how large they are and how old.

use super::group::GroupKey;
use super::ledger::Live;
use super::process::Process;
use crate::catalog::{Family, Holder};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Which allocations are told one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// Those that are as old.
    pub older_ns: u64,
    /// The largest of them.
    pub most: usize,
}

/// One that is held.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Allocation {
    pub bytes: u64,
    pub age_ns: u64,
    /// Of an array its handle; `None`: memory without a mapping.
    pub address: Option<u64>,
    pub family: Family,
    /// [`super::HOST`] and [`super::UNKNOWN_DEVICE`] are among them.
    pub device: i16,
    /// Row of the function that allocated, and its name.
    pub row: u32,
    pub function: String,
    /// Names the stack; 0: not taken.
    pub site: u64,
}

/// Those that are held, most bytes first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllocationMap {
    pub shown: Vec<Allocation>,
    /// As old, and not among them.
    pub left_out: u64,
    pub left_out_bytes: u64,
}

/// Of `process` at `now`, CLOCK_MONOTONIC ns.
pub(super) fn of(process: &Process, wanted: Wanted, now: u64) -> AllocationMap {
    let held = process
        .placed()
        .filter(|(_, key, _)| key.family.holder() != Holder::Nobody);
    let old = held
        .map(|(address, key, live)| allocation(address, &key, live, now))
        .filter(|allocation| allocation.age_ns >= wanted.older_ns);
    let mut map = AllocationMap::default();
    let mut largest: BinaryHeap<Reverse<Allocation>> = BinaryHeap::new();
    for allocation in old {
        largest.push(Reverse(allocation));
        if largest.len() > wanted.most
            && let Some(Reverse(smallest)) = largest.pop()
        {
            map.left_out += 1;
            map.left_out_bytes = map.left_out_bytes.saturating_add(smallest.bytes);
        }
    }
    map.shown = largest
        .into_sorted_vec()
        .into_iter()
        .map(|Reverse(allocation)| allocation)
        .collect();
    map
}

fn allocation(address: Option<u64>, key: &GroupKey, live: &Live, now: u64) -> Allocation {
    Allocation {
        bytes: live.bytes,
        age_ns: now.saturating_sub(live.at),
        address,
        family: key.family,
        device: key.device,
        row: key.row,
        function: String::new(),
        site: key.site,
    }
}
