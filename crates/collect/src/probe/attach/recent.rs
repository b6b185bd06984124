//! Files that were probed a moment ago: whoever mapped one before that has run without probes.
//!
//! Owns when. Which files are probed is the attacher's business.

use super::Name;
use crate::discover::Mapping;
use std::collections::VecDeque;

/// What was probed before these is older than any notice that is still unread.
const MOST: usize = 1024;

/// Names, with when their probes were in place, CLOCK_MONOTONIC ns; the oldest first.
#[derive(Debug, Default)]
pub(super) struct Recent(VecDeque<(Name, u64)>);

impl Recent {
    pub(super) fn note(&mut self, name: Name, at: u64) {
        if self.0.len() == MOST {
            self.0.pop_front();
        }
        self.0.push_back((name, at));
    }

    /// Whether one of `mappings` was probed later than `since`.
    pub(super) fn has_any_since(&self, since: u64, mappings: &[Mapping]) -> bool {
        let later = self.0.iter().rev().take_while(|(_, at)| *at > since);
        let mut names = later.map(|(name, _)| name);
        names.any(|name| mappings.iter().any(|mapping| mapping.name() == *name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_mapped_a_file_before_it_was_probed_is_behind() {
        let mut recent = Recent::default();
        for (inode, at) in [(1, 10), (2, 20), (3, 30)] {
            recent.note(Mapping::example(inode).name(), at);
        }
        let behind = |since, inode| recent.has_any_since(since, &[Mapping::example(9), Mapping::example(inode)]);
        assert!(behind(5, 1) && behind(19, 2) && behind(19, 3));
        assert!(!behind(10, 1) && !behind(20, 2) && !behind(0, 4));
    }

    #[test]
    fn only_so_many_are_remembered() {
        let mut recent = Recent::default();
        for at in 1..=MOST as u64 + 1 {
            recent.note(Mapping::example(at).name(), at);
        }
        assert!(!recent.has_any_since(0, &[Mapping::example(1)]) && recent.has_any_since(0, &[Mapping::example(2)]));
    }
}
