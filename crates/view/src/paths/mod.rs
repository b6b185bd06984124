//! Time by call path: what devices did, by the way through the program that asked for it; how long threads waited in CUDA, by the
//! way that led there; and where they were outside of it, by samples.
//!
//! [`Paths`] takes rows and keeps sums of bounded size, exact whatever the bounds; [`Tree`] is plain data, which the page draws
//! and `export` writes. Nothing is left out: what has no call path is in `(no call path)`, what finds no room in `(other)`.

mod calls;
mod frames;
mod gather;
mod growing;
#[cfg(test)]
mod tests;
mod totals;
mod tree;

pub(crate) use frames::{Frame, Kind};
pub(crate) use gather::Paths;
pub(crate) use tree::Tree;

use std::collections::HashMap;

/// Asked several times for each row; what comes from the traced side cannot foresee where it lies in it.
type Map<K, V> = HashMap<K, V, ahash::RandomState>;

/// What is added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Weight {
    /// Time of what devices executed: what ran at the same time counts each.
    Gpu,
    /// Time of threads in calls that wait for a device: synchronisation, and copies that block.
    Wait,
    /// Time of threads that call CUDA, outside of it: of samples, each for what it stands for.
    Host,
}

impl Weight {
    pub(crate) const ALL: [Weight; 3] = [Weight::Gpu, Weight::Wait, Weight::Host];

    /// The word on the command line and in outputs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Weight::Gpu => "gpu",
            Weight::Wait => "wait",
            Weight::Host => "host",
        }
    }

    /// What is counted beside its time.
    #[must_use]
    pub fn counted(self) -> &'static str {
        match self {
            Weight::Gpu => "activities",
            Weight::Wait => "calls",
            Weight::Host => "samples",
        }
    }
}
