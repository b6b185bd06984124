//! Which files the kernel programs take for known: whoever maps no other one need not wait.
//!
//! Owns the tables of them. They are keyed by what the kernel has of a file, which user space does not see: it is told where
//! a thread has mapped what is not known, and says that it is done with that.

use super::Session;
use crate::wire::{self, Notice, bytes_of};
use anyhow::{Context, Result};
use libbpf_rs::{MapCore, MapFlags};

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

impl Session {
    /// What the thread of `notice` has mapped that is not known, where it waits for that.
    #[must_use]
    pub fn fresh_files(&self, notice: &Notice) -> Fresh {
        if notice.waits != wire::WAITS_HERE {
            return Fresh::default();
        }
        let files = &self.skel.maps.fresh_files;
        let of_notice = |key: Vec<u8>| {
            let waiting = files.lookup(&key, MapFlags::ANY).ok().flatten()?;
            let (sequence, address) = waiting.split_at_checked(WORD)?;
            let address = u64::from_ne_bytes(address.try_into().ok()?);
            (sequence == bytes_of(&notice.sequence)).then_some((key, address))
        };
        Fresh(files.keys().filter_map(of_notice).collect())
    }

    /// These have been looked at. `known`: whoever maps them from now on need not wait.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn settle_files(&self, fresh: &Fresh, known: bool) -> Result<()> {
        if fresh.0.is_empty() {
            return Ok(());
        }
        let maps = &self.skel.maps;
        let generation = self.control.read().known_files;
        for (key, _) in &fresh.0 {
            if known {
                let update = maps.known_files.update(key, bytes_of(&generation), MapFlags::ANY);
                update.context("failed to remember a file")?;
            }
            // gone already: then there is nothing to forget
            let _ = maps.fresh_files.delete(key);
        }
        Ok(())
    }

    /// To be called before probes are taken out of a file: whoever maps it again has to wait.
    pub(crate) fn forget_files(&self) {
        self.control.forget_files();
    }
}
