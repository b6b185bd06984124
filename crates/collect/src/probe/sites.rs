//! Call sites on the kernel's side: what it is told about interpreters, and what it counts.

use super::Session;
use super::skeleton::types;
use crate::stack::wire::{Python, SiteCounters as Counters};
use crate::wire::bytes_of;
use anyhow::{Context, Result};
use libbpf_rs::{MapCore, MapFlags};
use std::ptr::NonNull;

/// Counters in memory shared with the kernel programs.
#[derive(Clone, Copy)]
pub(super) struct SiteCounters(pub(super) NonNull<types::site_counters>);

// SAFETY: only read, through volatile words; the memory stays mapped, see `load_tier`
unsafe impl Send for SiteCounters {}
// SAFETY: as above
unsafe impl Sync for SiteCounters {}

impl Session {
    /// Says where the interpreter of process `tgid` keeps its frames.
    ///
    /// # Errors
    /// The table of interpreters is full.
    pub fn set_python(&self, tgid: u32, python: &Python) -> Result<()> {
        let map = &self.skel.maps.pythons;
        map.update(&tgid.to_ne_bytes(), bytes_of(python), MapFlags::ANY)
            .with_context(|| format!("failed to store the interpreter of process {tgid}"))
    }

    /// Forgets the sites of processes that have ended, so that there is room for others'.
    pub fn forget_sites(&self, ended: &dyn Fn(u32) -> bool) {
        let map = &self.skel.maps.known_sites;
        let sites: Vec<Vec<u8>> = map.keys().collect();
        for site in sites {
            let tgid = map.lookup(&site, MapFlags::ANY).ok().flatten();
            let tgid = tgid.and_then(|bytes| bytes.try_into().ok()).map(u32::from_ne_bytes);
            if tgid.is_some_and(ended) {
                let _ = map.delete(&site);
            }
        }
    }

    /// What has become of call sites up to now.
    pub fn site_counters(&self) -> Counters {
        // SAFETY: plain integers in shared memory; each is a counter of its own
        let read = unsafe { self.site_counters.0.as_ptr().read_volatile() };
        Counters {
            second: read.second,
            asked: read.asked,
            taken: read.taken,
            stride: read.stride,
            sent: read.sent,
            lost: read.lost,
            full: read.full,
            unsampled: read.unsampled,
            no_memory: read.no_memory,
        }
    }
}
