//! The memory of a run, which all agents read: what each row captures, which files were looked at, and what is done to them.

use super::arena::{
    ARENA_MAGIC, ARENA_ROWS, ArenaCall, ArenaFile, ArenaPatch, ArenaPlanned, RING_BYTES, RING_BYTES_OF_MANY, RING_MOST,
    RUN_BYTES, RUN_FILES, RUN_FILES_MOST, RUN_FILES_SLOTS, RUN_OPTIONS, RUN_PLANS, RUN_PROBE_SITES, RUN_SITE_OPTIONS,
    RUN_SPECS, RunHead, TableShape,
};
use super::memory::SharedMemory;
use super::process::Room;
use super::tables::insert;
use crate::foreign::longest_hold;
use crate::probe::{Setup, told};
use crate::wire::{PROBE_SITES, ProbeSite, Spec, bytes_of};
use anyhow::{Result, bail};
use std::collections::HashMap;
use std::mem::offset_of;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

const FILES: TableShape = TableShape {
    offset: RUN_FILES,
    most: RUN_FILES_MOST,
    slots: RUN_FILES_SLOTS,
    key_bytes: size_of::<ArenaFile>() as u32,
    value_bytes: size_of::<ArenaPlanned>() as u32,
};

/// A file's device and inode.
pub(super) type FileName = (u64, u64);

/// The memory of a run, which all agents read.
pub(super) struct Run {
    pub memory: SharedMemory,
    plans: Mutex<Plans>,
    ring: u64,
}

#[derive(Default)]
struct Plans {
    of: HashMap<FileName, ArenaPlanned>,
    used: u64,
}

/// Bytes of the ring of each of a process's first threads, where so many are asked for.
fn ring_bytes(asked: Option<u32>) -> u64 {
    let bytes = asked.map_or(RING_BYTES, u64::from);
    bytes.next_power_of_two().clamp(RING_BYTES_OF_MANY, RING_MOST)
}

impl Run {
    /// # Errors
    /// There is no memory, or there are too many rows.
    pub(super) fn make(setup: &Setup) -> Result<Run> {
        let rows = setup.specs.len() + setup.spare_rows;
        if rows as u64 > ARENA_ROWS {
            bail!("{rows} functions are more than the {ARENA_ROWS} that can be told apart inside of a process");
        }
        let memory = SharedMemory::make(RUN_BYTES)?;
        memory.set(
            0,
            &RunHead {
                magic: ARENA_MAGIC,
                rows: rows as u32,
                patience: u32::try_from(longest_hold().as_secs().max(1)).unwrap_or(u32::MAX),
                ..RunHead::default()
            },
        );
        memory.put(RUN_OPTIONS, &told::options(setup)?);
        memory.put(RUN_SITE_OPTIONS, &told::site_options(setup));
        let run = Run {
            memory,
            plans: Mutex::default(),
            ring: ring_bytes(setup.thread_ring_bytes),
        };
        for (row, spec) in setup.specs.iter().enumerate() {
            run.set_spec(row as u64, bytes_of(spec));
        }
        Ok(run)
    }

    /// The same in memory that an agent has made, for plans alone.
    ///
    /// # Errors
    /// It is no such memory.
    pub(super) fn over(file: OwnedFd) -> Result<Run> {
        Ok(Run {
            memory: SharedMemory::over(file, RUN_BYTES)?,
            plans: Mutex::default(),
            ring: RING_BYTES,
        })
    }

    /// Has agents record what programs call phases of their own.
    pub(super) fn want_ranges(&self) {
        let word = self.memory.half(offset_of!(RunHead, ranges) as u64);
        word.store(1, Ordering::Release);
    }

    /// Sets what a row captures; takes effect at its next call.
    pub(super) fn set_spec(&self, row: u64, spec: &[u8]) {
        let at = RUN_SPECS + row * size_of::<Spec>() as u64;
        if row < ARENA_ROWS && spec.len() == size_of::<Spec>() {
            self.memory.put(at, spec);
        }
    }

    /// Says where the arguments of a static probe lie.
    pub(super) fn set_probe_site(&self, number: u64, site: &[u8]) {
        let at = RUN_PROBE_SITES + number * size_of::<ProbeSite>() as u64;
        if number <= PROBE_SITES as u64 && site.len() == size_of::<ProbeSite>() {
            self.memory.put(at, site);
        }
    }

    /// What is to be done to a file, wherever it is mapped from now on.
    ///
    /// # Errors
    /// There is no room for more.
    pub(super) fn plan(&self, file: FileName, patches: &[ArenaPatch], calls: &[ArenaCall]) -> Result<()> {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let at = RUN_PLANS + plans.used;
        let bytes = (size_of_val(patches) + size_of_val(calls)) as u64;
        if at + bytes > RUN_BYTES {
            bail!("there is no room for what has to be done to one more library");
        }
        for (index, patch) in patches.iter().enumerate() {
            self.memory.set(at + (index * size_of::<ArenaPatch>()) as u64, patch);
        }
        let behind = at + size_of_val(patches) as u64;
        for (index, call) in calls.iter().enumerate() {
            self.memory.set(behind + (index * size_of::<ArenaCall>()) as u64, call);
        }
        plans.used += bytes.next_multiple_of(64);
        let planned = ArenaPlanned {
            at,
            patches: patches.len() as u64,
            calls: calls.len() as u64,
        };
        plans.of.insert(file, planned);
        Ok(())
    }

    /// Functions that are to be patched, of all files.
    pub(super) fn patches(&self) -> u64 {
        let plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        plans.of.values().map(|planned| planned.patches).sum()
    }

    /// A file was looked at: whoever maps it does what was planned, and waits for nobody.
    pub(super) fn know(&self, file: &ArenaFile) {
        let plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let planned = plans.of.get(&(file.device, file.inode)).copied().unwrap_or_default();
        // where there is no room for it, who maps it waits each time
        insert(&self.memory, &FILES, bytes_of(file), bytes_of(&planned));
    }

    /// How much each process gets.
    pub(super) fn room(&self) -> Room {
        Room {
            rows: self.rows(),
            ring: self.ring,
        }
    }

    /// Rows that it can tell apart.
    pub(super) fn rows(&self) -> usize {
        self.memory.get::<u32>(offset_of!(RunHead, rows) as u64) as usize
    }
}
