//! What of the code that a process maps was not looked at before: a process maps hundreds of files, and most are others' too.

use super::stay::Name;
use super::{Attacher, linkers};
use crate::catalog::Catalog;
use crate::discover::{self, Mapping};
use std::path::PathBuf;

/// The code that a process maps.
pub struct News {
    /// What was not looked at before.
    pub mappings: Vec<Mapping>,
    /// Whether nothing is mapped at all.
    is_empty: bool,
    /// Whether a library of the catalogue is mapped, new or not.
    pub has_library: bool,
    /// Whether a file among what it maps was probed after the time that was asked about.
    pub is_behind: bool,
    /// Whether it has to pass a hook at its dynamic linker before it runs code of what that loads.
    pub is_met_at_linker: bool,
}

impl News {
    /// Of a process that is gone: what it had mapped cannot be told.
    pub fn unread() -> News {
        News {
            mappings: Vec::new(),
            is_empty: true,
            has_library: true,
            is_behind: false,
            is_met_at_linker: false,
        }
    }

    /// # Errors
    /// The process has ended, and nobody has asked for its status yet.
    pub fn of_living(self) -> std::io::Result<News> {
        match self.is_empty {
            true => Err(std::io::ErrorKind::NotFound.into()),
            false => Ok(self),
        }
    }
}

/// Files that are remembered as looked at: more than a machine's processes map at a time.
const MOST_LOOKED_AT: usize = 1 << 16;
/// A file as a process maps it. Of one that was deleted the numbers may come again: its path tells it apart, mostly.
pub(super) type Looked = (Name, PathBuf);

pub(super) fn looked(mapping: &Mapping) -> Looked {
    (mapping.name(), mapping.path.clone())
}

impl Attacher {
    /// What process `pid` maps, in one look. `since`: when it mapped it at the latest, CLOCK_MONOTONIC ns. `fresh`: where it
    /// has mapped what the kernel has not seen before, whatever it is called.
    ///
    /// # Errors
    /// The process is gone or may not be looked at.
    pub fn news(&mut self, catalog: &Catalog, pid: u32, since: u64, fresh: &[u64]) -> std::io::Result<News> {
        let mut mappings = discover::mappings(pid)?;
        let is_empty = mappings.is_empty();
        let is_library = |mapping: &Mapping| {
            let path = mapping.path.to_string_lossy();
            catalog.libraries.iter().any(|library| library.matches(&path))
        };
        let has_library = mappings.iter().any(is_library);
        self.round.note(mappings.iter());
        let is_behind = self.recent.has_any_since(since, &mappings);
        let is_met_at_linker = mappings.iter().any(|mapping| linkers::is_linker(&mapping.path))
            && !self.recent_linkers.has_any_since(since, &mappings);
        if self.looked_at.len() > MOST_LOOKED_AT {
            self.looked_at.clear(); // what is attached is known all the same
        }
        mappings.retain(|mapping| {
            let is_fresh = mapping.addresses().is_some_and(|(start, _)| fresh.contains(&start));
            self.looked_at.insert(looked(mapping)) || is_fresh
        });
        Ok(News {
            mappings,
            is_empty,
            has_library,
            is_behind,
            is_met_at_linker,
        })
    }

    /// Whether none of these is to be looked at again.
    #[must_use]
    pub fn is_done_with(&self, mappings: &[Mapping]) -> bool {
        mappings.iter().all(|mapping| self.looked_at.contains(&looked(mapping)))
    }
}
