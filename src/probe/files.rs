//! Which files the kernel programs take for known: whoever maps no other one need not wait.
//!
//! Owns the tables of them. They are keyed by what the kernel has of a file, which user space does not see: it only says
//! that it is done with what the thread of a notice had mapped.

use super::Session;
use super::session::bytes_of;
use anyhow::{Context, Result};
use libbpf_rs::{MapCore, MapFlags};

impl Session {
    /// The files that the thread of notice `sequence` waits for have been looked at. `known`: whoever maps them from now on
    /// need not wait.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn settle_files(&self, sequence: u64, known: bool) -> Result<()> {
        let maps = &self.skel.maps;
        let generation = self.control.read().known_files;
        for key in maps.fresh_files.keys() {
            let waiting = maps.fresh_files.lookup(&key, MapFlags::ANY);
            if !matches!(waiting, Ok(Some(of)) if of == bytes_of(&sequence)) {
                continue;
            }
            if known {
                let update = maps.known_files.update(&key, bytes_of(&generation), MapFlags::ANY);
                update.context("failed to remember a file")?;
            }
            // gone already: then there is nothing to forget
            let _ = maps.fresh_files.delete(&key);
        }
        Ok(())
    }

    /// To be called before probes are taken out of a file: whoever maps it again has to wait.
    pub fn forget_files(&self) {
        self.control.forget_files();
    }
}
