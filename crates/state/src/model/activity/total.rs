//! Sums of activities: how many, and how long.

/// How many, and how long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Total {
    pub count: u64,
    pub ns: u64,
    pub max_ns: u64,
}

impl Total {
    /// One more, that took so long.
    pub fn add(&mut self, ns: u64) {
        self.count += 1;
        self.ns = self.ns.saturating_add(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// All of another one.
    pub(super) fn join(&mut self, other: &Total) {
        self.count += other.count;
        self.ns = self.ns.saturating_add(other.ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }
}
