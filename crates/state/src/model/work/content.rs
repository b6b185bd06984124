//! What a graph runs.

use std::collections::BTreeMap;

/// Nodes of a graph, those of graphs inside it included.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Content {
    /// Kernels that have an id, by it.
    by_kernel: BTreeMap<u64, u64>,
    pub kernels: u64,
    pub copies: u64,
    pub memsets: u64,
    /// It may have nodes that are not counted, or has lost some that are.
    pub(crate) incomplete: bool,
}

impl Content {
    /// No node is known; `incomplete`: there may be some.
    pub(crate) fn empty(incomplete: bool) -> Content {
        Content {
            incomplete,
            ..Content::default()
        }
    }

    /// Of which nothing can be said.
    pub(crate) fn unknown() -> Content {
        Content::empty(true)
    }

    /// Adds a kernel; 0: without an id.
    pub(crate) fn add_kernel(&mut self, id: u64) {
        self.kernels = self.kernels.saturating_add(1);
        if id != 0 {
            let count = self.by_kernel.entry(id).or_default();
            *count = count.saturating_add(1);
        }
    }

    /// Which kernels these are is not known any more.
    pub(crate) fn forget_names(&mut self) {
        self.by_kernel.clear();
    }

    /// Whether that is known of some.
    pub(crate) fn has_names(&self) -> bool {
        !self.by_kernel.is_empty()
    }

    /// Adds all that another graph runs.
    pub fn add(&mut self, other: &Content) {
        self.kernels = self.kernels.saturating_add(other.kernels);
        self.copies = self.copies.saturating_add(other.copies);
        self.memsets = self.memsets.saturating_add(other.memsets);
        self.incomplete |= other.incomplete;
        for (id, more) in &other.by_kernel {
            let count = self.by_kernel.entry(*id).or_default();
            *count = count.saturating_add(*more);
        }
    }

    /// Ids of kernels and how often `runs` runs of the graph run each.
    pub fn kernel_runs(&self, runs: u64) -> impl Iterator<Item = (u64, u64)> {
        self.by_kernel
            .iter()
            .map(move |(id, count)| (*id, count.saturating_mul(runs)))
    }
}
