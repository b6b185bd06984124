//! Files that no process maps any more are let go of.
//!
//! Owns when: an open file with probes keeps a container's file system, long unmounted, on the disk, and its numbers
//! may name another file once it is gone. What is installed, or was asked for by name, stays.
//!
//! Looks at processes for a hundredth of its time. A process that was born meanwhile of one that is gone again may be missed in
//! one round, so a file goes when two rounds in a row found nobody.

use super::Attacher;
use super::probes::{Probes, let_go};
use super::stay::{Name, Stay};
use crate::discover::{self, Mapping};
use crate::engine::Engine;
use crate::text::parse::duration_in;
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// Between the beginnings of two rounds.
const EVERY: Duration = Duration::from_secs(10);
/// In a second. A process with PyTorch takes a millisecond or two, most take a tenth of one.
const FOR: Duration = Duration::from_millis(10);

/// A round through all processes.
#[derive(Debug)]
pub(super) struct Round {
    every: Duration,
    begun: Instant,
    /// Still to be looked at; `None`: no round is under way.
    left: Option<Vec<u32>>,
    mapped: HashSet<Name>,
    /// A process that makes calls may not be looked at: which files it maps is not known.
    hidden: bool,
}

impl Default for Round {
    fn default() -> Round {
        Round {
            every: duration_in("GPUSCOPE_UNMAPPED_EVERY").unwrap_or(EVERY),
            begun: Instant::now(),
            left: None,
            mapped: HashSet::new(),
            hidden: false,
        }
    }
}

impl Round {
    /// Some process maps these, seen outside of the round.
    pub(super) fn note<'a>(&mut self, mappings: impl Iterator<Item = &'a Mapping>) {
        if self.left.is_some() {
            self.mapped.extend(mappings.map(Mapping::name));
        }
    }

    fn begin_when_due(&mut self) {
        if self.left.is_none() && self.begun.elapsed() >= self.every {
            self.begun = Instant::now();
            self.left = Some(discover::processes());
            self.mapped.clear();
            self.hidden = false;
        }
    }

    /// Looks at some more processes; whether it is through with them.
    fn go_on(&mut self, callers: &HashSet<u32>) -> bool {
        let Some(left) = self.left.as_mut() else {
            return false;
        };
        let begun = Instant::now();
        while begun.elapsed() < FOR
            && let Some(pid) = left.pop()
        {
            match discover::mappings(pid) {
                Ok(mappings) => self.mapped.extend(mappings.iter().map(Mapping::name)),
                Err(error) => {
                    let denied = error.kind() == std::io::ErrorKind::PermissionDenied;
                    self.hidden |= denied && callers.contains(&pid);
                }
            }
        }
        left.is_empty()
    }
}

impl Attacher {
    /// Lets go of files that no process maps any more. To be called once a second. `callers`: processes that make calls.
    /// `asked`: whether what is mapped is wanted in any case. `Some`: what is mapped, by all processes together.
    pub fn release_unmapped(
        &mut self,
        engine: &dyn Engine,
        callers: &HashSet<u32>,
        asked: bool,
    ) -> Option<HashSet<Name>> {
        let linkers = self.linkers.values().map(|(_, probes)| probes);
        let mut probes = self.attached.values().map(|file| &file.probes).chain(linkers);
        if !asked && probes.all(|probes| matches!(probes.stay, Stay::Always)) {
            return None;
        }
        self.round.begin_when_due();
        if !self.round.go_on(callers) {
            return None;
        }
        self.round.left = None;
        let mapped = std::mem::take(&mut self.round.mapped);
        if self.round.hidden {
            return None;
        }
        self.keep_only(engine, &mapped);
        Some(mapped)
    }

    /// Numbers of files that are gone may come again, for others.
    fn keep_only(&mut self, engine: &dyn Engine, mapped: &HashSet<Name>) {
        self.looked_at.retain(|(name, _)| mapped.contains(name));
        let linkers = self.linkers.extract_if(|_, (_, probes)| probes.stay.is_over(mapped));
        let linkers = linkers.map(|(_, (_, probes))| probes);
        let files = self.attached.extract_if(|_, file| file.probes.stay.is_over(mapped));
        let gone: Vec<Probes> = files.map(|(_, file)| file.probes).chain(linkers).collect();
        if !gone.is_empty() {
            engine.forget_files();
            let_go(gone);
        }
        let attached = &self.attached;
        self.named
            .retain(|name, key| mapped.contains(name) && attached.contains_key(key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(inodes: &[u64]) -> HashSet<Name> {
        inodes.iter().map(|inode| Mapping::example(*inode).name()).collect()
    }

    #[test]
    fn a_file_goes_when_two_rounds_in_a_row_found_nobody() {
        let mut stay = Stay::for_mapping(Some(&Mapping::example(1)));
        assert!(!stay.is_over(&names(&[1, 2])));
        assert!(!stay.is_over(&names(&[2])));
        assert!(!stay.is_over(&names(&[1])), "somebody again");
        assert!(!stay.is_over(&names(&[])));
        stay.note(Some(&Mapping::example(3)));
        assert!(!stay.is_over(&names(&[])), "a process came with it between two rounds");
        assert!(stay.is_over(&names(&[2])));
    }

    #[test]
    fn any_of_its_names_keeps_it_and_what_is_installed_stays() {
        let mut stay = Stay::for_mapping(Some(&Mapping::example(1)));
        stay.note(Some(&Mapping::example(9)));
        assert!(!stay.is_over(&names(&[9])) && !stay.is_over(&names(&[9])));
        let mut installed = Stay::for_mapping(None);
        assert!(!installed.is_over(&names(&[])) && !installed.is_over(&names(&[])));
    }
}
