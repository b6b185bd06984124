//! Which files an engine takes for known: whoever maps no other one need not wait.
//!
//! Owns the tables of them. They are keyed by what the kernel has of a file, which user space does not see: it is told where
//! a thread has mapped what is not known, and says that it is done with that.

use super::{Engine, Table};
use crate::wire::{self, Notice, bytes_of};
use anyhow::{Context, Result};

/// Bytes of a sequence, which an address follows.
const WORD: usize = 8;

/// What the thread of a notice waits for to be looked at.
#[derive(Debug, Default)]
pub struct Fresh(Vec<(Vec<u8>, u64)>);

impl Fresh {
    /// Where each of the files is mapped first, in the process that maps it.
    pub fn addresses(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|(_, address)| *address)
    }
}

impl dyn Engine {
    /// What the thread of `notice` has mapped that is not known, where it waits for that.
    #[must_use]
    pub fn fresh_files(&self, notice: &Notice) -> Fresh {
        if notice.waits != wire::WAITS_HERE {
            return Fresh::default();
        }
        let mut fresh = Vec::new();
        let read = self.read(Table::FreshFiles, &mut |key, waiting| {
            let Some((sequence, address)) = waiting.split_at_checked(WORD) else {
                return;
            };
            let address = address.try_into().map(u64::from_ne_bytes);
            if let (true, Ok(address)) = (sequence == bytes_of(&notice.sequence), address) {
                fresh.push((key.to_vec(), address));
            }
        });
        // whoever maps them waits once more
        drop(read);
        Fresh(fresh)
    }

    /// These have been looked at. `known`: whoever maps them from now on need not wait.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn settle_files(&self, fresh: &Fresh, known: bool) -> Result<()> {
        if fresh.0.is_empty() {
            return Ok(());
        }
        let generation = self.counters().known_files;
        for (key, _) in &fresh.0 {
            if known {
                let stored = self.store(Table::KnownFiles, key, bytes_of(&generation));
                stored.context("failed to remember a file")?;
            }
            // gone already: then there is nothing to forget
            let _ = self.delete(Table::FreshFiles, key);
        }
        Ok(())
    }
}
