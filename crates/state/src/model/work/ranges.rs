//! Which kind of memory lies at an address, as memory calls tell it.
//!
//! Owns addresses alone: what is held where is `model::memory`'s business. Knows nothing of memory that comes without
//! a memory call, such as a module's variables. The end of a context leaves its ranges: whatever the driver puts
//! there next replaces them.

use crate::catalog::{Family, MemoryKind, Part, Verb};
use crate::model::memory;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

/// Frees on their way that are waited for.
const LATE_FREES: usize = 1024;
/// Memory of another process is mapped in pages of so many bytes; how much of it there is no call says.
const DEVICE_PAGE: u64 = 2 << 20;
const MEM_ALLOC_NODE: u64 = 10;

/// What stays of a range: its bytes and, in the two lowest bits, what it is. 16 bytes a range with its start.
#[derive(Debug, Clone, Copy)]
struct Packed(u64);

const DEVICE: u64 = 0;
const MANAGED: u64 = 1;
const PINNED: u64 = 2;
/// Device memory that a free leaves there, or that comes again.
const KEPT: u64 = 3;

impl Packed {
    fn new(bytes: u64, what: u64) -> Packed {
        Packed(bytes.min(u64::MAX >> 2) << 2 | what)
    }

    fn end(self, start: u64) -> u64 {
        start.saturating_add(self.0 >> 2)
    }

    fn what(self) -> u64 {
        self.0 & 3
    }

    fn kind(self) -> MemoryKind {
        match self.what() {
            MANAGED => MemoryKind::Managed,
            PINNED => MemoryKind::Pinned,
            _ => MemoryKind::Device,
        }
    }
}

/// Ranges by start; none overlaps another.
#[derive(Debug, Default)]
pub(crate) struct Ranges {
    ranges: BTreeMap<u64, Packed>,
    /// How often another process's memory was opened.
    opened: HashMap<u64, u32>,
    /// Streams whose calls become nodes of a graph.
    capturing: HashSet<u64>,
    /// Keys that were handed out again while their free was on its way, and when.
    reused: VecDeque<(u64, u64)>,
}

impl Ranges {
    /// What lies at `address`, if anything is known to.
    #[must_use]
    pub(crate) fn kind_at(&self, address: u64) -> Option<MemoryKind> {
        let (start, range) = self.ranges.range(..=address).next_back()?;
        (address < range.end(*start)).then(|| range.kind())
    }

    /// What is known to lie in a range from elsewhere, and may have been there before any call was seen. Calls know
    /// better.
    pub(crate) fn seed(&mut self, start: u64, end: u64, kind: MemoryKind) {
        let what = match kind {
            MemoryKind::Device => KEPT,
            MemoryKind::Managed => MANAGED,
            MemoryKind::Pinned => PINNED,
        };
        let mut at = start;
        while at < end {
            let below = self.ranges.range(..=at).next_back();
            let covered = below.map(|(start, range)| range.end(*start)).filter(|end| *end > at);
            at = covered.unwrap_or_else(|| {
                let next = self.ranges.range(at..end).next().map_or(end, |(start, _)| *start);
                self.ranges.insert(at, Packed::new(next - at, what));
                next
            });
        }
    }

    /// Does what a memory call did to addresses.
    pub(crate) fn note(&mut self, call: &memory::Call<'_>) {
        let stream = call.number(Part::Stream);
        match call.verb {
            _ if !call.succeeded => {}
            Verb::Alloc => self.allocate(call),
            Verb::Free => self.free(call),
            Verb::Map => self.put(call.key(), call.bytes().unwrap_or(0), DEVICE),
            Verb::Unmap => self.clear(call.key(), call.key().saturating_add(call.number(Part::Size))),
            Verb::GraphAlloc if matches!(call.part(Part::Type), None | Some(MEM_ALLOC_NODE)) => {
                self.put(call.key(), call.bytes().unwrap_or(0), KEPT);
            }
            Verb::CaptureBegin => {
                self.capturing.insert(stream);
            }
            Verb::CaptureEnd => {
                self.capturing.remove(&stream);
            }
            _ => {}
        }
    }

    fn allocate(&mut self, call: &memory::Call<'_>) {
        let key = call.key();
        let bytes = call.bytes().unwrap_or(0);
        match call.family {
            Family::Device | Family::Async if self.is_captured(call) => self.put(key, bytes, KEPT),
            Family::Device | Family::Async | Family::Graph | Family::View | Family::Mapped => {
                self.hand_out(call, bytes, DEVICE);
            }
            Family::Managed => self.hand_out(call, bytes, MANAGED),
            Family::Pinned | Family::Registered => self.hand_out(call, bytes, PINNED),
            Family::Ipc => {
                let opened = self.opened.entry(key).or_default();
                *opened = opened.saturating_add(1);
                let page = (key | (DEVICE_PAGE - 1)).saturating_add(1) - key;
                self.put(key, bytes.max(page), DEVICE);
            }
            _ => {} // its key is a handle, or it lies in memory that is known already
        }
    }

    fn is_captured(&self, call: &memory::Call<'_>) -> bool {
        call.part(Part::Stream)
            .is_some_and(|stream| self.capturing.contains(&stream))
    }

    fn hand_out(&mut self, call: &memory::Call<'_>, bytes: u64, what: u64) {
        let key = call.key();
        if self.ranges.get(&key).is_some_and(|old| frees(call.family, *old)) {
            self.reused.push_back((key, call.raw.returned));
            if self.reused.len() > LATE_FREES {
                self.reused.pop_front();
            }
        }
        self.put(key, bytes, what);
    }

    fn free(&mut self, call: &memory::Call<'_>) {
        let key = call.key();
        let late = |(other, at): &(u64, u64)| *other == key && call.raw.entered < *at;
        if let Some(index) = self.reused.iter().position(late) {
            self.reused.remove(index);
            return;
        }
        if self.is_captured(call) || call.family == Family::Ipc && self.is_still_open(key) {
            return;
        }
        if self.ranges.get(&key).is_some_and(|range| frees(call.family, *range)) {
            self.ranges.remove(&key);
        }
    }

    fn is_still_open(&mut self, key: u64) -> bool {
        let Some(opened) = self.opened.get_mut(&key) else {
            return false;
        };
        *opened = opened.saturating_sub(1);
        let open = *opened > 0;
        if !open {
            self.opened.remove(&key);
        }
        open
    }

    /// The newer range wins where it overlaps older ones.
    fn put(&mut self, start: u64, bytes: u64, what: u64) {
        if start == 0 || bytes == 0 {
            return;
        }
        let range = Packed::new(bytes, what);
        let end = range.end(start);
        self.clear(start, end);
        self.keep(start, end, what);
    }

    fn clear(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        let below = self.ranges.range(..start).next_back();
        if let Some((&first, &old)) = below.filter(|(first, old)| old.end(**first) > start) {
            self.keep(first, start, old.what());
            self.keep(end, old.end(first), old.what());
        }
        while let Some((&first, &old)) = self.ranges.range(start..end).next() {
            self.ranges.remove(&first);
            self.keep(end, old.end(first), old.what());
        }
    }

    fn keep(&mut self, start: u64, end: u64, what: u64) {
        if start < end {
            self.ranges.insert(start, Packed::new(end - start, what));
        }
    }
}

/// Whether a function that frees `family` can end a range.
fn frees(family: Family, range: Packed) -> bool {
    match range.what() {
        KEPT => false,
        PINNED => matches!(family, Family::Pinned | Family::Registered),
        _ => matches!(family.space(), Family::Device | Family::Ipc | Family::Mapped),
    }
}

#[cfg(test)]
#[path = "ranges_tests.rs"]
mod tests;
