//! One program in one process: its memory, what its threads have submitted, what its tables hold.

use super::arena::{
    ARENA_MAGIC, ARENA_ROWS, ARENA_TABLES, BLOCK_PLAIN, BLOCK_THREAD, Block, MOST_BLOCKS, OWN_FAILURES, OWN_ROWS,
    OWN_TOTALS, PROCESS_AGGREGATE_COUNTERS, PROCESS_AGGREGATE_TEXTS, PROCESS_AGGREGATES, PROCESS_BYTES,
    PROCESS_CONTROL, PROCESS_FLOWS, PROCESS_KERNELS, PROCESS_KNOWN_SITES, PROCESS_LANES, PROCESS_MEMORY_LOSSES,
    PROCESS_NAMED_HANDLES, PROCESS_PYTHONS, PROCESS_SHAPES, PROCESS_SITE_COUNTERS, PROCESS_WORK_LOSSES, ProcessHead,
    TableShape, layout,
};
use super::memory::SharedMemory;
use super::met::Met;
use super::pending::Submitted;
use super::ranges;
use super::ring::{self, Rings, block};
use super::switches::Counts;
use super::tables;
use crate::clock::ahead_of;
use crate::engine::{Counters, Done, Table};
use crate::probe::told;
use crate::stack::wire::{Python, SiteCounters};
use crate::wire::{self, COMM, RowCounter, TotalKey, bytes_of, zero};
use anyhow::Result;
use std::mem::offset_of;
use std::sync::atomic::Ordering;

/// Texts that calls are grouped by have numbers, which no other process gives: it begins with this times its own.
const TEXTS: u64 = 1 << 32;

/// How much a run gives each of its processes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    /// Rows that are told apart.
    pub rows: usize,
    /// Bytes of the ring of each of its first threads, a power of two.
    pub ring: u64,
}

/// One program in one process.
pub(super) struct Process {
    pub tgid: u32,
    /// The name of its program.
    pub comm: [u8; COMM],
    pub memory: SharedMemory,
    /// Functions that are to be recorded of one that stood by.
    pub wanted: u64,
    /// By how much the clock of its namespace is ahead of the kernel's, which its agent knows once it has joined, ns.
    pub clock_ahead: i64,
    /// Rows that the run tells apart.
    rows: u32,
    rings: Rings,
    layout: [TableShape; ARENA_TABLES],
}

impl Process {
    /// For process `tgid`, the `number`th program of this run, for which there is so much room.
    ///
    /// # Errors
    /// There is no memory.
    pub(super) fn make(tgid: u32, comm: [u8; COMM], number: u64, room: Room, counting: bool) -> Result<Process> {
        let memory = SharedMemory::make(PROCESS_BYTES)?;
        let layout = layout();
        let head = ProcessHead {
            magic: ARENA_MAGIC,
            image: number,
            mapped: 0,
            tgid,
            blocks: 0,
            unseen: 0,
            nested: 0,
            waited: 0,
            waits: 0,
            rounds: 0,
            gave_up: 0,
            patched: 0,
            refused: 0,
            clock_ahead: ahead_of(&tgid.to_string()),
            ranges_lost: 0,
            large_ring: room.ring,
            shape: layout,
        };
        memory.set(0, &head);
        memory.set(PROCESS_AGGREGATE_COUNTERS, &(number * TEXTS));
        let process = Process {
            tgid,
            comm,
            memory,
            wanted: 0,
            clock_ahead: head.clock_ahead,
            rows: room.rows.min(ARENA_ROWS as usize) as u32,
            rings: Rings::of(room.ring),
            layout,
        };
        process.count(counting);
        Ok(process)
    }

    /// Has calls count, or no longer.
    pub(super) fn count(&self, on: bool) {
        let word = self.memory.word(PROCESS_CONTROL + told::COUNTING as u64);
        word.store(u64::from(on), Ordering::SeqCst);
    }

    /// There is room for so many more kernels.
    pub(super) fn free_kernel_totals(&self, count: u64) {
        let word = self.memory.word(PROCESS_CONTROL + told::KERNEL_TOTALS as u64);
        word.fetch_sub(count, Ordering::SeqCst);
    }

    fn blocks(&self) -> u32 {
        let count = self.memory.half(offset_of!(ProcessHead, blocks) as u64);
        count.load(Ordering::Acquire).min(MOST_BLOCKS)
    }

    /// See [`Rings::take`].
    pub(super) fn take(&mut self, now: Option<u64>, take: &mut dyn FnMut(Submitted<'_>)) {
        let blocks = self.blocks();
        self.rings.take(&self.memory, blocks, now, take);
    }

    /// Whether a thread of it is within a hook that began before this time.
    pub(super) fn is_in_hook_from_before(&self, before: u64) -> bool {
        ring::oldest_hook(&self.memory, self.blocks(), before).is_some_and(|since| since < before)
    }

    /// Ranges that are open at `now`, as records.
    pub(super) fn open_ranges(&self, now: u64) -> Vec<Vec<u8>> {
        ranges::open(&self.memory, self.blocks(), now)
    }

    /// See [`Rings::fill`].
    pub(super) fn fill(&self) -> u64 {
        self.rings.fill(&self.memory)
    }

    /// Rings that held what is no record.
    pub(super) fn take_malformed(&mut self) -> u64 {
        std::mem::take(&mut self.rings.malformed)
    }

    /// Calls `each` with all that it has of a table, the same key once for each thread.
    pub(super) fn read(&self, table: Table, each: &mut dyn FnMut(&[u8], &[u8])) {
        let Some((_, number)) = TABLES.into_iter().find(|(known, _)| *known == table) else {
            return;
        };
        let shape = &self.layout[number];
        if number > OWN_FAILURES {
            return tables::for_each(&self.memory, 0, shape, each);
        }
        for thread in 0..self.blocks() {
            tables::for_each(&self.memory, block(thread), shape, each);
        }
        if table == Table::Totals {
            self.read_plain(each);
        }
    }

    /// Calls of which nothing but their number was wanted.
    fn read_plain(&self, each: &mut dyn FnMut(&[u8], &[u8])) {
        for row in 0..self.rows {
            let untimed = self.plain(row);
            if untimed > 0 {
                let (tgid, variant) = (self.tgid, 0);
                let total = wire::Total { untimed, ..zero() };
                each(bytes_of(&TotalKey { tgid, row, variant }), bytes_of(&total));
            }
        }
    }

    fn plain(&self, row: u32) -> u64 {
        let of_thread = |thread| self.memory.now(block(thread) + BLOCK_PLAIN + u64::from(row) * 8);
        (0..self.blocks()).map(of_thread).fold(0, u64::wrapping_add)
    }

    /// What its threads have counted of one row.
    pub(super) fn add_row(&self, row: u32, sum: &mut RowCounter) {
        let shape = &self.layout[OWN_ROWS];
        if row >= shape.most {
            return;
        }
        for thread in 0..self.blocks() {
            let at = block(thread) + shape.offset + u64::from(row) * shape.stride();
            let mut bytes = [0; size_of::<RowCounter>()];
            self.memory.copy(at, &mut bytes);
            *sum = sum.plus(&bytes);
        }
        sum.entered = sum.entered.wrapping_add(self.plain(row));
    }

    /// What a thread of it remembers between its calls.
    pub(super) fn thread(&self, tid: u32, bytes: usize) -> Option<Vec<u8>> {
        Some(self.remembered(self.block_of(tid)?, bytes))
    }

    /// Threads of it that are within calls, with what they remember.
    pub(super) fn within(&self, bytes: usize) -> Vec<(u32, Vec<u8>)> {
        let told = (0..self.blocks()).map(block).filter_map(|at| {
            let (tid, _) = self.owner_of(at)?;
            (self.between(at).depth > 0).then(|| (tid, self.remembered(at, bytes)))
        });
        told.collect()
    }

    fn remembered(&self, block: u64, bytes: usize) -> Vec<u8> {
        let mut thread = vec![0; bytes];
        self.memory.copy(block + BLOCK_THREAD, &mut thread);
        thread
    }

    fn between(&self, block: u64) -> told::Between {
        told::between(|offset| self.memory.now(block + BLOCK_THREAD + offset))
    }

    /// The thread that a block is of, and its pointer; `None`: it is nobody's, or a thread's other one.
    fn owner_of(&self, block: u64) -> Option<(u32, u64)> {
        let owner = self.memory.half(block + offset_of!(Block, owner) as u64);
        let tid = owner.load(Ordering::Acquire);
        let pointer = self.memory.now(block + offset_of!(Block, pointer) as u64);
        (tid != 0 && pointer != 0).then_some((tid, pointer))
    }

    fn block_of(&self, tid: u32) -> Option<u64> {
        let mut blocks = (0..self.blocks()).map(block);
        blocks.find(|at| self.owner_of(*at).is_some_and(|(owner, _)| owner == tid))
    }

    /// Context switches of a thread before its first call.
    pub(super) fn switches_before(&self, tid: u32) -> Option<Counts> {
        let at = self.block_of(tid)?;
        let word = |offset: usize| self.memory.now(at + BLOCK_THREAD + offset as u64);
        Some((word(told::VOLUNTARY), word(told::INVOLUNTARY)))
    }

    /// Those of its threads that `is_meant`, as a sampler wants to know of them.
    pub(super) fn met(&self, is_meant: impl Fn(u32) -> bool, python: Option<Python>) -> impl Iterator<Item = Met> {
        let of_block = move |number: u32| {
            let at = block(number);
            let (tid, pointer) = self.owner_of(at).filter(|(tid, _)| is_meant(*tid))?;
            let between = self.between(at);
            Some(Met {
                tgid: self.tgid,
                tid,
                pointer,
                depth: between.depth,
                returned: between.returned,
                entered: between.entered,
                called_at: between.called_at,
                python,
            })
        };
        (0..self.blocks()).filter_map(of_block)
    }

    /// The bytes of its [`crate::wire::Flow`] at `slot`.
    pub(super) fn flow(&self, slot: u32) -> Vec<u8> {
        let shape = &self.layout[PROCESS_FLOWS];
        let mut bytes = vec![0; shape.value_bytes as usize];
        if slot < shape.most {
            self.memory
                .copy(shape.offset + u64::from(slot) * shape.stride(), &mut bytes);
        }
        bytes
    }

    /// Says where its interpreter keeps what is read of it.
    pub(super) fn set_python(&self, key: &[u8], value: &[u8]) {
        tables::insert(&self.memory, &self.layout[PROCESS_PYTHONS], key, value);
    }

    pub(super) fn counters(&self) -> Counters {
        let mut control = vec![0; told::CONTROL_BYTES];
        let mut sums = vec![0; told::SUMS_BYTES];
        self.memory.copy(PROCESS_CONTROL, &mut control);
        self.memory.copy(PROCESS_AGGREGATE_COUNTERS, &mut sums);
        let head: ProcessHead = self.memory.get(0);
        Counters {
            ranges_lost: head.ranges_lost,
            ..told::counters(&control, &sums)
        }
    }

    pub(super) fn site_counters(&self) -> SiteCounters {
        self.memory.get(PROCESS_SITE_COUNTERS)
    }

    pub(super) fn done(&self) -> Done {
        let head: ProcessHead = self.memory.get(0);
        Done {
            patched: head.patched,
            // a program that stood by was not told of all that is wanted
            refused: head.refused.max(self.wanted.saturating_sub(head.patched)),
            unseen: head.unseen.saturating_add(head.nested),
            dormant: u64::from(head.mapped == 0),
            waits: head.waits,
            waited_ns: head.waited,
            ..Done::default()
        }
    }
}

/// The tables that an agent has, which are kept when its process has ended, and their numbers among its own.
pub(super) const TABLES: [(Table, usize); 11] = [
    (Table::Totals, OWN_TOTALS),
    (Table::Failures, OWN_FAILURES),
    (Table::Shapes, PROCESS_SHAPES),
    (Table::Kernels, PROCESS_KERNELS),
    (Table::NamedHandles, PROCESS_NAMED_HANDLES),
    (Table::Aggregates, PROCESS_AGGREGATES),
    (Table::AggregateTexts, PROCESS_AGGREGATE_TEXTS),
    (Table::Lanes, PROCESS_LANES),
    (Table::WorkLosses, PROCESS_WORK_LOSSES),
    (Table::MemoryLosses, PROCESS_MEMORY_LOSSES),
    (Table::KnownSites, PROCESS_KNOWN_SITES),
];
