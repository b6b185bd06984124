//! The words through which the running kernel programs and user space talk to each other.

use super::skeleton::types;
use crate::stack::wire::SiteCounters;
use crate::wire;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Words shared with the kernel programs.
#[derive(Clone, Copy)]
pub(super) struct Control(pub(super) NonNull<types::control>);

// SAFETY: only accessed through volatile and atomic words; the memory stays mapped, see `load_tier`
unsafe impl Send for Control {}
// SAFETY: as above
unsafe impl Sync for Control {}

impl Control {
    /// Lets the thread go on that waits for library notice `sequence`.
    pub(super) fn acknowledge(self, sequence: u64) {
        let slot = (sequence % wire::WAITS as u64) as usize;
        // SAFETY: an aligned word of shared memory
        let word = unsafe { AtomicU64::from_ptr(&raw mut (*self.0.as_ptr()).acknowledged[slot]) };
        word.fetch_max(sequence, Ordering::SeqCst);
    }

    /// A sign of life at `now`, CLOCK_MONOTONIC ns: without one, nobody waits for us.
    pub(super) fn alive(self, now: u64) {
        // SAFETY: an aligned word of shared memory
        let word = unsafe { AtomicU64::from_ptr(&raw mut (*self.0.as_ptr()).alive) };
        word.store(now, Ordering::SeqCst);
    }

    /// Has calls count from now on, or no longer.
    pub(super) fn count(self, on: bool) {
        // SAFETY: an aligned word of shared memory
        let word = unsafe { AtomicU64::from_ptr(&raw mut (*self.0.as_ptr()).counting) };
        word.store(u64::from(on), Ordering::SeqCst);
    }

    /// What was looked at so far has to be looked at again.
    pub(super) fn forget_files(self) {
        // SAFETY: an aligned word of shared memory
        let word = unsafe { AtomicU64::from_ptr(&raw mut (*self.0.as_ptr()).known_files) };
        word.fetch_add(1, Ordering::SeqCst);
    }

    /// There is room for so many more kernels.
    pub(super) fn free_kernel_totals(self, count: u64) {
        // SAFETY: an aligned word of shared memory
        let word = unsafe { AtomicU64::from_ptr(&raw mut (*self.0.as_ptr()).kernel_totals) };
        word.fetch_sub(count, Ordering::SeqCst);
    }

    /// The major number of UVM's devices; 0: not known.
    pub(super) fn set_uvm_major(self, major: u32) {
        // SAFETY: an aligned word of shared memory
        let word = unsafe { AtomicU64::from_ptr(&raw mut (*self.0.as_ptr()).uvm_major) };
        word.store(u64::from(major), Ordering::SeqCst);
    }

    pub(super) fn read(self) -> types::control {
        // SAFETY: plain integers in shared memory; each is a counter of its own
        unsafe { self.0.as_ptr().read_volatile() }
    }
}

/// Counters of call sites, in memory shared with the kernel programs.
#[derive(Clone, Copy)]
pub(super) struct SharedSites(pub(super) NonNull<types::site_counters>);

// SAFETY: only read, through volatile words; the memory stays mapped, see `load_tier`
unsafe impl Send for SharedSites {}
// SAFETY: as above
unsafe impl Sync for SharedSites {}

impl SharedSites {
    pub(super) fn read(self) -> SiteCounters {
        // SAFETY: plain integers in shared memory; each is a counter of its own
        let read = unsafe { self.0.as_ptr().read_volatile() };
        SiteCounters {
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

/// Counters of sums, in memory shared with the kernel programs.
#[derive(Clone, Copy)]
pub(super) struct SharedSums(pub(super) NonNull<types::aggregate_counters>);

// SAFETY: only read, through volatile words; the memory stays mapped, see `load_tier`
unsafe impl Send for SharedSums {}
// SAFETY: as above
unsafe impl Sync for SharedSums {}

impl SharedSums {
    pub(super) fn read(self) -> types::aggregate_counters {
        // SAFETY: plain integers in shared memory; each is a counter of its own
        unsafe { self.0.as_ptr().read_volatile() }
    }
}
