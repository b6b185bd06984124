//! Waits that a program does not seem to ask for: copies that block, or do although they are called asynchronous,
//! memory calls while a device works, and a small copy to the host with a wait right behind it (`.item()`).
//!
//! Each call is in one kind at most. A small copy that may turn out to be an item is in none until its thread's next
//! copy or wait decides, so that no sum ever falls.

use super::StreamName;
use super::report::{Certainty, HiddenWait};
use super::waits::KEYS;
use crate::catalog::{CopyKind, HostMemory};
use crate::model::kind::HiddenKind;
use std::collections::HashMap;

/// A value or a few: facts on hidden synchronisation, rule 7.
const ITEM_BYTES: u64 = 64;
/// A wait that begins within so long after such a copy is for it: the same rule.
const ITEM_GAP_NS: u64 = 50_000;
/// A call that gives something to a device and returns is over by then, however many bytes it is about.
const PROMPT_NS: u64 = 20_000;
/// Any host moves pageable bytes into the driver's buffers faster than that, 1 GB/s.
const STAGING_NS_PER_BYTE: u64 = 1;
/// Threads whose last copy was a small one.
const SMALL_COPIES: usize = 4096;

/// A copy, as far as it may have waited.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CopyWait {
    pub tid: u32,
    /// CLOCK_MONOTONIC ns.
    pub entered: u64,
    pub returned: u64,
    /// `None`: not known.
    pub bytes: Option<u64>,
    pub direction: Option<CopyKind>,
    pub host: Option<HostMemory>,
    /// See [`super::classify::blocks`].
    pub blocking: bool,
    pub stream: StreamName,
    pub site: u64,
}

/// A wait that the program did ask for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SyncWait {
    pub tid: u32,
    /// CLOCK_MONOTONIC ns.
    pub entered: u64,
    pub returned: u64,
    /// `None`: for all streams of a context.
    pub stream: Option<StreamName>,
    pub site: u64,
}

type Key = (HiddenKind, u64);

#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    count: u64,
    total_ns: u64,
}

/// The last copy of a thread, if it was small and did not block.
#[derive(Debug, Clone, Copy)]
struct Small {
    copy: CopyWait,
    /// What it is if no wait follows.
    otherwise: Option<HiddenKind>,
}

/// Hidden waits of one process.
#[derive(Debug, Default)]
pub(crate) struct HiddenWaits {
    tallies: HashMap<Key, Tally>,
    small: HashMap<u32, Small>,
}

impl HiddenWaits {
    /// A call copied; of a batch its first copy stands for all.
    pub(crate) fn copied(&mut self, copy: &CopyWait) {
        let is_small = copy.direction == Some(CopyKind::DtoH) && copy.bytes.is_some_and(|bytes| bytes <= ITEM_BYTES);
        let kind = match (copy.blocking, is_small) {
            (true, true) => Some(HiddenKind::Item),
            (true, false) => Some(HiddenKind::BlockingCopy),
            (false, _) => took_long(copy).then_some(HiddenKind::PageableAsync),
        };
        if let Some(before) = self.small.remove(&copy.tid) {
            self.decide(before);
        }
        if is_small && !copy.blocking {
            let otherwise = kind;
            self.remember(Small { copy: *copy, otherwise });
        } else if let Some(kind) = kind {
            self.add(kind, copy.site, duration(copy));
        }
    }

    /// A thread waited for a stream or a context. Waits for events are none of these.
    pub(crate) fn synced(&mut self, sync: &SyncWait) {
        let Some(small) = self.small.remove(&sync.tid) else {
            return;
        };
        let follows = sync.entered >= small.copy.returned && sync.entered - small.copy.returned <= ITEM_GAP_NS;
        if !follows || sync.stream.is_some_and(|stream| stream != small.copy.stream) {
            self.decide(small);
            return;
        }
        let site = if sync.site == 0 { small.copy.site } else { sync.site };
        let waited = sync.returned.saturating_sub(sync.entered);
        self.add(HiddenKind::Item, site, duration(&small.copy).saturating_add(waited));
    }

    /// No wait followed.
    fn decide(&mut self, small: Small) {
        if let Some(kind) = small.otherwise {
            self.add(kind, small.copy.site, duration(&small.copy));
        }
    }

    /// Memory was taken or given back while the device may have had work: `kind` is [`HiddenKind::Alloc`] or
    /// [`HiddenKind::Free`]. A call that was prompt did not wait.
    pub(crate) fn memory(&mut self, kind: HiddenKind, site: u64, ns: u64) {
        if ns > PROMPT_NS {
            self.add(kind, site, ns);
        }
    }

    fn remember(&mut self, small: Small) {
        if self.small.len() >= SMALL_COPIES {
            self.forget_old(small.copy.entered);
        }
        if self.small.len() < SMALL_COPIES {
            self.small.insert(small.copy.tid, small);
        } else {
            self.decide(small);
        }
    }

    /// Copies of threads that have done neither since.
    fn forget_old(&mut self, now: u64) {
        let is_old = |small: &Small| small.copy.returned.saturating_add(ITEM_GAP_NS) < now;
        let old: Vec<Small> = self
            .small
            .extract_if(|_, small| is_old(small))
            .map(|(_, small)| small)
            .collect();
        old.into_iter().for_each(|small| self.decide(small));
    }

    fn add(&mut self, kind: HiddenKind, site: u64, ns: u64) {
        let full = (kind, site);
        let fits = self.tallies.len() < KEYS || self.tallies.contains_key(&full);
        let key = if fits { full } else { (kind, 0) };
        let tally = self.tallies.entry(key).or_default();
        tally.count += 1;
        tally.total_ns = tally.total_ns.saturating_add(ns);
    }

    /// All that is known, most time first: copies that are undecided count as what they are so far.
    #[must_use]
    pub(crate) fn report(&self) -> Vec<HiddenWait> {
        let mut all = HiddenWaits {
            tallies: self.tallies.clone(),
            small: HashMap::new(),
        };
        self.small.values().for_each(|small| all.decide(*small));
        all.decided()
    }

    /// What will not change any more, most time first.
    #[must_use]
    pub(crate) fn decided(&self) -> Vec<HiddenWait> {
        let mut all: Vec<HiddenWait> = self
            .tallies
            .iter()
            .map(|((kind, site), tally)| HiddenWait {
                kind: *kind,
                site: *site,
                count: tally.count,
                total_ns: tally.total_ns,
                certainty: certainty(*kind),
            })
            .collect();
        all.sort_by_key(|wait| (std::cmp::Reverse(wait.total_ns), wait.kind.name(), wait.site));
        all
    }
}

fn duration(copy: &CopyWait) -> u64 {
    copy.returned.saturating_sub(copy.entered)
}

/// Whether a copy of pageable memory that is called asynchronous waited. To the host it returns only once its bytes
/// have come (CUDA driver API, "API synchronization behavior"): whatever is not prompt was a wait. Else the call may
/// move the bytes itself, which is no wait, but takes no longer than moving them slowly.
fn took_long(copy: &CopyWait) -> bool {
    let moving_ns = match copy.direction {
        Some(CopyKind::DtoH) => 0,
        _ => copy.bytes.unwrap_or(u64::MAX).saturating_mul(STAGING_NS_PER_BYTE),
    };
    copy.host == Some(HostMemory::Pageable) && duration(copy) > moving_ns.saturating_add(PROMPT_NS)
}

/// The calls of these kinds cannot but wait; the others may be slow for another reason.
fn certainty(kind: HiddenKind) -> Certainty {
    match kind {
        HiddenKind::Item | HiddenKind::BlockingCopy => Certainty::Measured,
        HiddenKind::PageableAsync | HiddenKind::Free | HiddenKind::Alloc => Certainty::Inferred,
    }
}

#[cfg(test)]
#[path = "hidden_tests.rs"]
mod tests;
