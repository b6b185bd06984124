//! The live allocations of one process and everything that is summed up over them.
//!
//! Owns the sums: whoever adds or closes an allocation does it here, so that they always agree.

use super::account::{Account, Anomalies, Ended, Ending};
use super::group::GroupKey;
use super::peak::{self, Height, Peak, Sum};
use crate::catalog::{Family, Holder};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

/// The device of an allocation is not known.
pub const UNKNOWN_DEVICE: i16 = -1;
/// Not on a device.
pub const HOST: i16 = -2;

/// Live allocations of one process that are followed: more than any program has that means no harm.
const FOLLOWED: usize = 16 << 20;
/// Keys of ended allocations that are remembered, to tell a double free from a free of something unknown.
const REMEMBERED_FREES: usize = 16_384;

/// One allocation. Small: there may be a million.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Live {
    pub bytes: u64,
    /// When the call that made it returned, CLOCK_MONOTONIC ns.
    pub at: u64,
    /// Index into [`Ledger::groups`].
    pub group: u32,
    /// Interned context; 0: not known.
    pub context: u16,
    /// Interned pool; 0: none of the program's own.
    pub pool: u16,
}

/// An allocation whose key was handed out again: the free may still be on its way.
#[derive(Debug, Clone, Copy)]
struct Displaced {
    space: Family,
    key: u64,
    live: Live,
    at: u64,
}

/// All of it; see the module.
#[derive(Debug, Default)]
pub struct Ledger {
    /// By space, then by key: a million entries should take no more room than they need.
    live: BTreeMap<Family, HashMap<u64, Live>>,
    displaced: Vec<Displaced>,
    group_of: HashMap<GroupKey, u32>,
    groups: Vec<(GroupKey, Account)>,
    families: BTreeMap<(Family, i16), Account>,
    devices: BTreeMap<i16, Account>,
    endings: BTreeMap<Ending, Ended>,
    /// What the program gave back, by the function that did it.
    freed_by: BTreeMap<u32, Ended>,
    /// Row of the call that changes the ledger now.
    pub by: u32,
    /// Bytes that it has given back.
    pub given_back: Option<u64>,
    heights: BTreeMap<Sum, Height>,
    freed: HashSet<(Family, u64)>,
    freed_order: VecDeque<(Family, u64)>,
    pub anomalies: Anomalies,
}

/// What a free means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Match {
    Live(Live),
    /// It gave back what had been displaced.
    Late,
    FreedBefore,
    Unknown,
}

impl Ledger {
    /// The number of a group, made when it is new.
    pub(crate) fn group(&mut self, key: GroupKey) -> u32 {
        let groups = &mut self.groups;
        *self.group_of.entry(key).or_insert_with(|| {
            groups.push((key, Account::default()));
            groups.len() as u32 - 1
        })
    }

    /// Family and device of an allocation.
    pub(crate) fn group_key(&self, live: &Live) -> GroupKey {
        self.groups[live.group as usize].0
    }

    /// Adds an allocation that nothing is keyed by (its owner holds it).
    pub fn open(&mut self, live: &Live) {
        if let Some(sum) = Sum::of(self.group_key(live).family) {
            self.heights.entry(sum).or_default().add(live.bytes, live.at);
        }
        self.for_each_account(live.group, |account| account.add(live.bytes, live.at));
    }

    /// Takes away an allocation that [`Ledger::open`] added.
    pub fn close(&mut self, live: &Live, how: Ending) {
        self.withdraw(live);
        self.settle(live, how);
    }

    /// Its bytes are no longer held.
    fn withdraw(&mut self, live: &Live) {
        if let Some(sum) = Sum::of(self.group_key(live).family) {
            self.lower(sum, live.bytes);
        }
        self.for_each_account(live.group, |account| account.remove(live.bytes));
    }

    fn lower(&mut self, sum: Sum, bytes: u64) {
        let height = self.heights.entry(sum).or_default();
        if height.is_summit() {
            height.keep(peak::shares(&self.groups, sum));
        }
        height.remove(bytes);
    }

    /// Sums near their highest.
    pub(crate) fn peaks(&self) -> impl Iterator<Item = (Sum, Peak)> {
        let heights = self.heights.iter();
        heights.map(|(sum, height)| (*sum, height.peak(peak::shares(&self.groups, *sum))))
    }

    /// It is known how it ended.
    fn settle(&mut self, live: &Live, how: Ending) {
        if how == Ending::Freed {
            self.for_each_account(live.group, |account| account.note_free(live.bytes));
            self.given_back = Some(self.given_back.unwrap_or(0).saturating_add(live.bytes));
        }
        if self.group_key(live).family.holder() == Holder::Nobody {
            return;
        }
        self.endings.entry(how).or_default().add(live.bytes);
        if how == Ending::Freed {
            self.freed_by.entry(self.by).or_default().add(live.bytes);
        }
    }

    fn for_each_account(&mut self, group: u32, mut change: impl FnMut(&mut Account)) {
        let Some((key, account)) = self.groups.get_mut(group as usize) else {
            return;
        };
        change(account);
        let (family, device) = (key.family, key.device);
        change(self.families.entry((family, device)).or_default());
        if family.holder() != Holder::Nobody {
            change(self.devices.entry(device).or_default());
        }
    }

    /// An attempt that failed.
    pub(crate) fn note_failure(&mut self, family: Family, device: i16) {
        self.families.entry((family, device)).or_default().failed_allocations += 1;
        if family.holder() != Holder::Nobody {
            self.devices.entry(device).or_default().failed_allocations += 1;
        }
    }

    /// Adds an allocation under its key.
    pub fn insert(&mut self, space: Family, key: u64, live: Live) {
        if self.live.values().map(HashMap::len).sum::<usize>() >= FOLLOWED {
            self.anomalies.unfollowed += 1;
            return;
        }
        if let Some(old) = self.live.entry(space).or_default().insert(key, live) {
            // first, or the peak would hold both
            self.withdraw(&old);
            let at = live.at;
            self.displaced.push(Displaced {
                space,
                key,
                live: old,
                at,
            });
        }
        self.forget_freed(space, key);
        self.open(&live);
    }

    /// Takes away what a free entered at `entered` gives back. A call that was entered before the allocation under
    /// its key was returned to the program means the one that had the key before.
    pub(crate) fn free(&mut self, space: Family, key: u64, entered: u64) -> Match {
        let current = self.get(space, key).copied();
        if current.is_none_or(|live| entered < live.at)
            && let Some(index) = self.displaced_index(space, key, entered)
        {
            let old = self.displaced.swap_remove(index);
            self.settle(&old.live, Ending::Freed);
            return Match::Late;
        }
        match current {
            Some(live) => {
                self.take(space, key);
                self.close(&live, Ending::Freed);
                self.remember_freed(space, key);
                Match::Live(live)
            }
            None if self.was_freed(space, key) => Match::FreedBefore,
            None => Match::Unknown,
        }
    }

    fn displaced_index(&self, space: Family, key: u64, entered: u64) -> Option<usize> {
        let fits = |old: &Displaced| old.space == space && old.key == key && entered < old.at;
        self.displaced.iter().position(fits)
    }

    /// What had this key was freed.
    pub(crate) fn remember_freed(&mut self, space: Family, key: u64) {
        if self.freed.insert((space, key)) {
            self.freed_order.push_back((space, key));
        }
        if self.freed_order.len() > REMEMBERED_FREES
            && let Some(oldest) = self.freed_order.pop_front()
        {
            self.freed.remove(&oldest);
        }
    }

    /// Something has this key again.
    pub(crate) fn forget_freed(&mut self, space: Family, key: u64) {
        self.freed.remove(&(space, key));
    }

    /// Whether the last thing known under a key is that it was freed.
    pub(crate) fn was_freed(&self, space: Family, key: u64) -> bool {
        self.freed.contains(&(space, key))
    }

    /// What is live under a key.
    pub fn get(&self, space: Family, key: u64) -> Option<&Live> {
        self.live.get(&space)?.get(&key)
    }

    /// Keys and allocations of one space.
    pub fn space(&self, space: Family) -> impl Iterator<Item = (u64, &Live)> {
        let live = self.live.get(&space).into_iter().flatten();
        live.map(|(key, live)| (*key, live))
    }

    fn take(&mut self, space: Family, key: u64) {
        if let Some(live) = self.live.get_mut(&space) {
            live.remove(&key);
        }
    }

    /// Ends every allocation that `ends` picks.
    pub(crate) fn close_where(&mut self, how: Ending, mut ends: impl FnMut(&GroupKey, &Live) -> bool) {
        let groups = &self.groups;
        let mut picked = Vec::new();
        for live in self.live.values_mut() {
            picked.extend(
                live.extract_if(|_, live| ends(&groups[live.group as usize].0, live))
                    .map(|(_, live)| live),
            );
        }
        let displaced = std::mem::take(&mut self.displaced);
        let (over, waiting): (Vec<_>, Vec<_>) = displaced
            .into_iter()
            .partition(|old| ends(&groups[old.live.group as usize].0, &old.live));
        self.displaced = waiting;
        for live in picked {
            self.close(&live, how);
        }
        for old in over {
            self.settle(&old.live, how);
        }
    }

    /// Gives up waiting for frees of what was displaced before `horizon`.
    pub(crate) fn settle_displaced(&mut self, horizon: u64) {
        let mut index = 0;
        while index < self.displaced.len() {
            if self.displaced[index].at >= horizon {
                index += 1;
                continue;
            }
            let old = self.displaced.swap_remove(index);
            self.settle(&old.live, Ending::PointerReused);
            self.anomalies.reused_pointers += 1;
        }
    }

    /// Everything that is live under a key.
    pub(crate) fn all_live(&self) -> impl Iterator<Item = (&GroupKey, &Live)> {
        let live = self.live.values().flat_map(HashMap::values);
        live.map(|live| (&self.groups[live.group as usize].0, live))
    }

    /// The same, each with its key.
    pub(crate) fn placed(&self) -> impl Iterator<Item = (u64, &GroupKey, &Live)> {
        let live = self.live.values().flatten();
        live.map(|(key, live)| (*key, &self.groups[live.group as usize].0, live))
    }

    pub(crate) fn groups(&self) -> &[(GroupKey, Account)] {
        &self.groups
    }

    pub fn families(&self) -> &BTreeMap<(Family, i16), Account> {
        &self.families
    }

    /// By device; [`HOST`] and [`UNKNOWN_DEVICE`] are among them.
    pub fn devices(&self) -> &BTreeMap<i16, Account> {
        &self.devices
    }

    /// By row.
    pub(crate) fn freed_by(&self) -> &BTreeMap<u32, Ended> {
        &self.freed_by
    }

    pub(crate) fn endings(&self) -> &BTreeMap<Ending, Ended> {
        &self.endings
    }
}
