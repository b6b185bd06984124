//! At which lines of programs threads wait for the GPU.
//!
//! Owns which places are told apart: one that is stays so until its process ends, so that no sum ever falls.

use crate::model::fleet::Sums;
use crate::model::work::WaitAt;
use crate::tracer::sites::SitePlane;
use std::collections::HashMap;
use std::sync::Arc;

/// Stacks of one process that are named.
const MOST: usize = 64;

/// At which lines of programs threads wait for the GPU.
#[derive(Default)]
pub(super) struct Places {
    /// By process and stack.
    known: HashMap<u32, HashMap<u64, Arc<str>>>,
}

impl Places {
    /// Adds how long process `pid` waited at which line; `waits`: the longest first.
    pub(super) fn add_to(&mut self, sums: &mut Sums, pid: u32, waits: &[WaitAt], sites: &mut SitePlane) {
        if waits.is_empty() {
            return;
        }
        let known = self.known.entry(pid).or_default();
        for wait in waits {
            if known.len() < MOST && !known.contains_key(&wait.site) {
                known.extend(sites.place(wait.site).map(|place| (wait.site, place)));
            }
            if let Some(place) = known.get(&wait.site) {
                *sums.waits_at.entry((wait.of, Arc::clone(place))).or_default() += wait.ns;
            }
        }
    }

    /// All that a process did has been added for the last time.
    pub(super) fn forget(&mut self, pid: u32) {
        self.known.remove(&pid);
    }
}
