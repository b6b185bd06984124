//! One client of the resource manager: a tree of objects, the client its root.

use std::collections::{HashMap, HashSet};

use super::FileId;

/// An object: where it hangs and what it names.
#[derive(Debug, Clone, Copy)]
pub(super) struct Object {
    pub(super) parent: u32,
    pub(super) resource: u64,
}

/// A client and its objects by handle.
#[derive(Debug)]
pub(super) struct Client {
    /// The file that it was made through, whose closing ends it; `None` when it was there before the first call seen.
    pub(super) file: Option<FileId>,
    /// What the client itself is counted as.
    pub(super) resource: u64,
    objects: HashMap<u32, Object>,
    children: HashMap<u32, HashSet<u32>>,
}

impl Client {
    pub(super) fn new(file: Option<FileId>, resource: u64) -> Self {
        Self {
            file,
            resource,
            objects: HashMap::new(),
            children: HashMap::new(),
        }
    }

    /// Puts an object into the tree; returns what had the handle before, with all below it: it must have ended unseen.
    pub(super) fn add(&mut self, handle: u32, object: Object) -> Vec<u64> {
        let before = self.remove(handle);
        self.objects.insert(handle, object);
        self.children.entry(object.parent).or_default().insert(handle);
        before
    }

    pub(super) fn get(&self, handle: u32) -> Option<Object> {
        self.objects.get(&handle).copied()
    }

    /// Takes an object and all below it out; returns their resources. An object that was there before the first call
    /// seen is not known, but those below it may be.
    pub(super) fn remove(&mut self, handle: u32) -> Vec<u64> {
        if let Some(object) = self.objects.get(&handle)
            && let Some(siblings) = self.children.get_mut(&object.parent)
        {
            siblings.remove(&handle);
        }
        let mut resources = Vec::new();
        let mut ended = vec![handle];
        while let Some(handle) = ended.pop() {
            resources.extend(self.objects.remove(&handle).map(|object| object.resource));
            ended.extend(self.children.remove(&handle).unwrap_or_default());
        }
        resources
    }

    /// The resources of all, the client's own first.
    pub(super) fn all(&self) -> Vec<u64> {
        let objects = self.objects.values().map(|object| object.resource);
        std::iter::once(self.resource).chain(objects).collect()
    }
}
