//! Reads what users' rows have summed up out of the kernel.

use super::Session;
use super::skeleton::types;
use super::totals::entries;
use crate::wire::{self, bytes_of};
use anyhow::{Context, Result};
use libbpf_rs::MapCore;
use std::collections::HashMap;
use std::ptr::NonNull;

/// Counters in memory shared with the kernel programs.
#[derive(Clone, Copy)]
pub(super) struct AggregateCounters(pub(super) NonNull<types::aggregate_counters>);

// SAFETY: only read, through volatile words; the memory stays mapped, see `load_tier`
unsafe impl Send for AggregateCounters {}
// SAFETY: as above
unsafe impl Sync for AggregateCounters {}

/// What is missing among sums.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Missing {
    /// Calls that found no room for their group, or for the text that it is.
    pub full: u64,
    /// Calls whose number may be missing among the smallest and largest.
    pub races: u64,
}

type Sums = Vec<(wire::AggregateKey, wire::Aggregate)>;

impl Session {
    pub(super) fn aggregates(&self) -> Result<Sums> {
        entries(&self.skel.maps.aggregates)
    }

    /// Takes the sums of processes that have ended out of the kernel's table.
    pub(super) fn take_aggregates(&self, ended: &dyn Fn(u32) -> bool) -> Result<Sums> {
        let mut taken = self.aggregates()?;
        taken.retain(|(key, _)| ended(key.tgid));
        for (key, _) in &taken {
            let dropped = self.skel.maps.aggregates.delete(bytes_of(key));
            dropped.context("failed to drop the sums of an ended process")?;
        }
        Ok(taken)
    }

    /// The texts that calls were grouped by, by number.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn aggregate_texts(&self) -> Result<HashMap<u64, String>> {
        let texts: Vec<(wire::AggregateText, u64)> = entries(&self.skel.maps.aggregate_texts)?;
        let named = texts
            .into_iter()
            .map(|(text, number)| (number, wire::text_of(&text.text)));
        Ok(named.collect())
    }

    /// What could not be summed up.
    pub fn missing_sums(&self) -> Missing {
        // SAFETY: plain integers in shared memory; each is a counter of its own
        let read = unsafe { self.aggregate_counters.0.as_ptr().read_volatile() };
        Missing {
            full: read.full,
            races: read.races,
        }
    }
}
