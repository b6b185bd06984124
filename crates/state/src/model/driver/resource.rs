//! What handles name: a resource is counted once, by kind, until the last handle to it is gone.

use std::collections::HashMap;

use crate::driver::tables::ClassKind;

/// A sum of objects of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Held {
    pub count: u64,
    /// Bytes of those whose size is known.
    pub bytes: u64,
    /// Those whose size could not be read.
    pub unsized_count: u64,
}

impl Held {
    pub(super) fn add(&mut self, bytes: Option<u64>) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(bytes.unwrap_or(0));
        self.unsized_count += u64::from(bytes.is_none());
    }

    fn remove(&mut self, bytes: Option<u64>) {
        self.count = self.count.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes.unwrap_or(0));
        self.unsized_count = self.unsized_count.saturating_sub(u64::from(bytes.is_none()));
    }
}

/// A resource, as another client may come to name it too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) id: u64,
    /// Whose table `id` is of: a client of that process.
    pub(super) client: u32,
    pub(super) kind: ClassKind,
    pub(super) bytes: Option<u64>,
}

#[derive(Debug)]
struct Resource {
    kind: ClassKind,
    bytes: Option<u64>,
    handles: u32,
}

/// The resources of one process.
#[derive(Debug, Default)]
pub(super) struct Resources {
    next: u64,
    live: HashMap<u64, Resource>,
    held: HashMap<ClassKind, Held>,
    /// The most bytes held at a time, by kind.
    peak: HashMap<ClassKind, u64>,
}

impl Resources {
    /// A new resource with one handle.
    pub(super) fn add(&mut self, kind: ClassKind, bytes: Option<u64>) -> u64 {
        let bytes = if kind.takes_memory() { bytes } else { Some(0) };
        self.next += 1;
        self.live.insert(
            self.next,
            Resource {
                kind,
                bytes,
                handles: 1,
            },
        );
        let held = self.held.entry(kind).or_default();
        held.add(bytes);
        let peak = self.peak.entry(kind).or_default();
        *peak = (*peak).max(held.bytes);
        self.next
    }

    /// One more handle to a resource of this process; false when it is gone.
    pub(super) fn share(&mut self, id: u64) -> bool {
        self.live.get_mut(&id).is_some_and(|resource| {
            resource.handles = resource.handles.saturating_add(1);
            true
        })
    }

    /// One handle less.
    pub(super) fn release(&mut self, id: u64) {
        let Some(resource) = self.live.get_mut(&id) else { return };
        resource.handles -= 1;
        if resource.handles > 0 {
            return;
        }
        if let Some(resource) = self.live.remove(&id) {
            self.held.entry(resource.kind).or_default().remove(resource.bytes);
        }
    }

    pub(super) fn get(&self, id: u64) -> Option<(ClassKind, Option<u64>)> {
        self.live.get(&id).map(|resource| (resource.kind, resource.bytes))
    }

    pub(super) fn held(&self, kind: ClassKind) -> Held {
        self.held.get(&kind).copied().unwrap_or_default()
    }

    pub(super) fn peak_bytes(&self, kind: ClassKind) -> u64 {
        self.peak.get(&kind).copied().unwrap_or_default()
    }
}
