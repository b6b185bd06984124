//! At which lines of programs threads wait for the GPU.
//!
//! Owns which stacks lead to which line: what is known once stays so until its process ends, so that no sum ever falls.

use crate::model::fleet::Sums;
use crate::model::work::WaitAt;
use crate::tracer::sites::SitePlane;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Lines of one process that are told apart.
const MOST: usize = 512;

/// At which lines of programs threads wait for the GPU.
#[derive(Default)]
pub(super) struct Places {
    known: HashMap<u32, OfProcess>,
}

/// The lines of one process.
#[derive(Default)]
struct OfProcess {
    lines: HashSet<Arc<str>>,
    /// By stack; `None`: there was no room for its line.
    by_site: HashMap<u64, Option<Arc<str>>>,
}

impl Places {
    /// Adds how long process `pid` waited at which line.
    pub(super) fn add_to(&mut self, sums: &mut Sums, pid: u32, waits: &[WaitAt], sites: &SitePlane) {
        if waits.is_empty() {
            return;
        }
        let known = self.known.entry(pid).or_default();
        for wait in waits {
            if let Some(line) = known.line(wait.site, sites) {
                *sums.waits_at.entry((wait.of, line)).or_default() += wait.ns;
            }
        }
    }

    /// All that a process did has been added for the last time.
    pub(super) fn forget(&mut self, pid: u32) {
        self.known.remove(&pid);
    }
}

impl OfProcess {
    fn line(&mut self, site: u64, sites: &SitePlane) -> Option<Arc<str>> {
        if let Some(line) = self.by_site.get(&site) {
            return line.clone();
        }
        let line = self.told_apart(&sites.place(site)?);
        self.by_site.insert(site, line.clone());
        line
    }

    fn told_apart(&mut self, line: &str) -> Option<Arc<str>> {
        if let Some(known) = self.lines.get(line) {
            return Some(Arc::clone(known));
        }
        let line: Option<Arc<str>> = (self.lines.len() < MOST).then(|| line.into());
        self.lines.extend(line.clone());
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_beyond_the_bound_never_come_and_known_ones_stay() {
        let mut process = OfProcess::default();
        for number in 0..MOST {
            assert!(process.told_apart(&format!("a.py:{number} f")).is_some());
        }
        assert_eq!(process.told_apart("b.py:1 f"), None);
        assert_eq!(process.told_apart("a.py:7 f").as_deref(), Some("a.py:7 f"));
        assert_eq!(process.lines.len(), MOST);
    }
}
