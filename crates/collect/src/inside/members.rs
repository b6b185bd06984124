//! The processes whose agents have joined, those that have ended, and what of either was not handed on yet.
//!
//! Owns what is left of a process when its memory goes: all of its records and sums.

use super::door::Door;
use super::folder::GPU_THREAD;
use super::met::Met;
use super::numbers::Numbers;
use super::process::{Process, TABLES};
use super::samples::Samples;
use super::switches::Switches;
use super::tables::{self, Entries};
use super::{arena, pending::Submitted};
use crate::clock::monotonic_ns;
use crate::engine::{Arrival, Counters, Done, Stream, Table};
use crate::inside::socket::Caller;
use crate::probe::told;
use crate::stack::wire::{Python, SiteCounters};
use crate::wire::{self, COMM, Notice, RowCounter};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::path::Path;

/// Records of one stream, end to end, and how long each is.
#[derive(Default)]
pub(super) struct Queue {
    bytes: Vec<u8>,
    lengths: Vec<u32>,
}

impl Queue {
    fn push(&mut self, record: &[u8]) {
        self.bytes.extend_from_slice(record);
        self.lengths.push(record.len() as u32);
    }

    /// Hands all of them to `take`.
    pub(super) fn hand_out(self, take: &mut dyn FnMut(&[u8])) {
        let mut rest = &self.bytes[..];
        for length in self.lengths {
            let (record, behind) = rest.split_at(length as usize);
            take(record);
            rest = behind;
        }
    }
}

/// Bytes of queues that wait for the tracer: what it has done with before threads have waited in vain.
const MOST_OF_ACCOUNTS: usize = 1 << 20;
const MOST_OF_CALLS: usize = 32 << 20;

/// The processes whose agents have joined, and those that have ended.
#[derive(Default)]
pub(super) struct Members {
    living: Vec<Process>,
    /// What programs that have ended had in their tables.
    ended: BTreeMap<Table, Entries>,
    ended_rows: HashMap<u32, RowCounter>,
    ended_counters: Counters,
    ended_sites: SiteCounters,
    ended_done: Done,
    pub queues: BTreeMap<Stream, Queue>,
    pub arrivals: VecDeque<Arrival>,
    numbers: Numbers,
    /// Notices out of rings, which have not arrived yet.
    submitted: Vec<Notice>,
    /// Threads that wait for us to have looked at what they have mapped.
    pub waiting: HashMap<u64, Caller>,
    pub fresh: Vec<Fresh>,
    /// Processes that we were told to watch, and their descendants that have joined.
    pub targets: HashSet<u32>,
    pub malformed: u64,
    pub unanswered: u64,
    pub overdue: u64,
    /// Where interpreters keep what is read of them: of processes that may join later, too.
    pub pythons: HashMap<Vec<u8>, Vec<u8>>,
    /// The doors of programs that stood by; whose agents leave when we do.
    pub doors: Vec<Door>,
    /// Processes whose next program may have one.
    pub doorless: BTreeSet<u32>,
    /// What has not ended was told: nothing comes later.
    told_open: bool,
    /// Programs that went on without us, because we had stood still.
    left: u64,
    /// Where threads are outside of CUDA, not told yet.
    pub samples: Samples,
    pub switches: Switches,
    rows_used: HashSet<u32>,
}

/// A file that the thread of message `sequence` waits for, and where it has mapped it.
pub(super) struct Fresh {
    pub file: arena::ArenaFile,
    pub sequence: u64,
    pub address: u64,
}

/// What nothing remembers of a program when it is over.
pub(super) struct Last {
    /// Its name when it began.
    pub comm: [u8; COMM],
    /// As [`Arrival`] has them.
    pub within: Vec<(u32, Vec<u8>)>,
}

impl Members {
    pub(super) fn living(&self) -> &[Process] {
        &self.living
    }

    /// A program begins in process `process.tgid`; the one before it is over.
    pub(super) fn join(&mut self, process: Process) {
        self.end(process.tgid);
        self.targets.insert(process.tgid);
        self.living.push(process);
    }

    /// Tells a process that is about to join what is known of its interpreter.
    pub(super) fn tell_python(&self, process: &Process) {
        if let Some((key, value)) = self.pythons.get_key_value(&process.tgid.to_ne_bytes()[..]) {
            process.set_python(key, value);
        }
    }

    /// Whether we stand at the door of a process.
    pub(super) fn stands_at(&self, tgid: u32) -> bool {
        self.doors.iter().any(|door| door.pid == tgid)
    }

    /// Those who were knocked at and have not followed yet.
    pub(super) fn awaited(&self) -> Vec<u32> {
        let doors = self.doors.iter().filter(|door| !door.has_joined());
        doors.map(|door| door.pid).collect()
    }

    /// Says that we are there, and knocks again where somebody has left because we were not.
    pub(super) fn beat(&mut self, socket: &Path) {
        for door in &mut self.doors {
            if door.has_left() && door.knock(socket).is_ok() {
                self.left += 1;
            }
            door.beat();
        }
    }

    /// The program of process `tgid` has given way to another one, which may have a door later.
    pub(super) fn leave_old_door(&mut self, tgid: u32) {
        self.doors.retain(|door| door.pid != tgid);
        self.doorless.insert(tgid);
    }

    /// The program of process `tgid` is over: nothing of what it has said is lost.
    pub(super) fn end(&mut self, tgid: u32) -> Option<Last> {
        let at = self.living.iter().position(|process| process.tgid == tgid)?;
        let mut process = self.living.remove(at);
        process.take(None, &mut |record| self.sort_in(record));
        self.arrive_submitted();
        if !self.told_open {
            self.tell_ranges(&process.open_ranges(monotonic_ns()));
        }
        self.samples.end(tgid);
        self.switches.end(tgid);
        self.malformed += process.take_malformed();
        for (table, _) in TABLES {
            let entries = self.ended.entry(table).or_default();
            process.read(table, &mut |key, value| tables::add(table, entries, key, value));
        }
        for row in self.rows_used.iter() {
            process.add_row(*row, self.ended_rows.entry(*row).or_default());
        }
        self.ended_counters = sum(&self.ended_counters, &process.counters());
        self.ended_sites = sum_of_sites(&self.ended_sites, &process.site_counters());
        self.ended_done = self.ended_done.and(process.done());
        Some(Last {
            comm: process.comm,
            within: process.within(told::THREAD_BYTES),
        })
    }

    /// Tells what has not ended at `now` in programs that go on.
    pub(super) fn tell_open_ranges(&mut self, now: u64) {
        let open = self.living.iter().flat_map(|process| process.open_ranges(now));
        let open: Vec<Vec<u8>> = open.collect();
        self.told_open = true;
        self.tell_ranges(&open);
    }

    fn tell_ranges(&mut self, records: &[Vec<u8>]) {
        let queue = self.queues.entry(Stream::Ranges).or_default();
        records.iter().for_each(|record| queue.push(record));
    }

    /// A process is no more, or is left to others.
    pub(super) fn forget_target(&mut self, tgid: u32) {
        self.targets.remove(&tgid);
        self.doorless.remove(&tgid);
        for door in self.doors.extract_if(.., |door| door.pid == tgid) {
            door.leave();
        }
    }

    /// Whether more may be taken in before the tracer has had what is there: then rings stay full, and threads that have
    /// something to say of memory wait.
    pub(super) fn has_room(&self) -> bool {
        let bytes = |stream: &Stream| self.queues.get(stream).map_or(0, |queue| queue.bytes.len());
        let accounts = bytes(&Stream::Memory) + bytes(&Stream::Work);
        accounts < MOST_OF_ACCOUNTS && bytes(&Stream::Calls) + bytes(&Stream::Ranges) < MOST_OF_CALLS
    }

    /// Takes in what agents have submitted. `now`: as of [`Rings::take`](super::ring::Rings::take).
    pub(super) fn take_in(&mut self, now: Option<u64>) {
        let mut living = std::mem::take(&mut self.living);
        for process in &mut living {
            process.take(now, &mut |record| self.sort_in(record));
            self.malformed += process.take_malformed();
        }
        self.living = living;
        self.arrive_submitted();
    }

    fn sort_in(&mut self, record: Submitted<'_>) {
        let stream = match record.stream {
            arena::RING_CALLS => Stream::Calls,
            arena::RING_MEMORY => Stream::Memory,
            arena::RING_WORK => Stream::Work,
            arena::RING_RANGES => Stream::Ranges,
            arena::RING_NOTICES => {
                let notice = Notice::parse(record.bytes);
                self.malformed += u64::from(notice.is_none());
                return self.submitted.extend(notice);
            }
            _ => {
                self.malformed += 1;
                return;
            }
        };
        self.queues.entry(stream).or_default().push(record.bytes);
    }

    /// Acts on what threads have told of themselves.
    fn arrive_submitted(&mut self) {
        for notice in std::mem::take(&mut self.submitted) {
            self.meet(&notice);
            self.arrive(notice.into());
        }
    }

    fn meet(&mut self, notice: &Notice) {
        if notice.kind == wire::NOTICE_THREAD && wire::text_of(&notice.comm) != GPU_THREAD {
            let before = self
                .living
                .iter()
                .find_map(|process| process.switches_before(notice.tid));
            self.switches.meet(notice.tgid, notice.tid, before.unwrap_or_default());
        }
    }

    /// Something has happened to a process.
    pub(super) fn arrive(&mut self, mut arrival: Arrival) {
        let notice = &mut arrival.notice;
        match notice.kind {
            wire::NOTICE_EXIT => self.numbers.end(notice.tgid, notice.at),
            wire::NOTICE_FORK | wire::NOTICE_EXEC => notice.at = self.numbers.begin(notice.tgid, notice.at),
            _ => {}
        }
        self.arrivals.push_back(arrival);
    }

    /// All entries of a table, of processes that live and those that have ended.
    pub(super) fn entries(&self, table: Table) -> Entries {
        let mut entries = self.ended.get(&table).cloned().unwrap_or_default();
        for process in &self.living {
            process.read(table, &mut |key, value| tables::add(table, &mut entries, key, value));
        }
        entries
    }

    /// Takes a key out of what ended processes have left. False: it is not among that.
    pub(super) fn delete(&mut self, table: Table, key: &[u8]) -> bool {
        let entries = self.ended.get_mut(&table);
        entries.is_some_and(|entries| entries.remove(key).is_some())
    }

    /// This row's calls may have been counted.
    pub(super) fn uses_row(&mut self, row: u32) {
        self.rows_used.insert(row);
    }

    pub(super) fn row(&self, row: u32) -> RowCounter {
        let mut sum = self.ended_rows.get(&row).copied().unwrap_or_default();
        if self.rows_used.contains(&row) {
            self.living.iter().for_each(|process| process.add_row(row, &mut sum));
        }
        sum
    }

    /// The sum of what processes know at `slot` of their [`wire::Flow`]s.
    pub(super) fn flow(&self, slot: u32) -> Vec<u8> {
        let own = |process: &&Process| process.tgid % arena::FLOWS == slot;
        let mut flows = self.living.iter().filter(own).map(|process| process.flow(slot));
        let first = flows.next().unwrap_or_else(|| vec![0; size_of::<wire::Flow>()]);
        flows.fold(first, |sum, flow| {
            let words = sum.chunks_exact(8).zip(flow.chunks_exact(8));
            let both = words.map(|(one, two)| wire::u64_at(one, 0).wrapping_add(wire::u64_at(two, 0)));
            both.flat_map(u64::to_ne_bytes).collect()
        })
    }

    pub(super) fn counters(&self) -> Counters {
        let living = self.living.iter().map(Process::counters);
        let counted = living.fold(self.ended_counters, |sum_so_far, one| sum(&sum_so_far, &one));
        let switches = self.switches.counters();
        Counters {
            threads_ended: switches.threads_ended,
            voluntary: switches.voluntary,
            involuntary: switches.involuntary,
            threads_unsure: switches.threads_unsure,
            ..counted
        }
    }

    pub(super) fn site_counters(&self) -> SiteCounters {
        let living = self.living.iter().map(Process::site_counters);
        living.fold(self.ended_sites, |sum, one| sum_of_sites(&sum, &one))
    }

    pub(super) fn done(&self) -> Done {
        let agents = self.living.iter().map(Process::done).fold(self.ended_done, Done::and);
        Done {
            unanswered: self.unanswered,
            left: self.left,
            ..agents
        }
    }

    /// What a thread that runs remembers between its calls.
    pub(super) fn thread(&self, tid: u32, bytes: usize) -> Option<Vec<u8>> {
        self.living.iter().find_map(|process| process.thread(tid, bytes))
    }

    /// Those of `threads` that run.
    pub(super) fn met(&self, threads: &HashSet<u32>) -> Vec<Met> {
        let of_process = |process: &Process| {
            let python = self.pythons.get(&process.tgid.to_ne_bytes()[..]);
            let python: Option<Python> = python.and_then(|bytes| wire::read(bytes));
            process.met(|tid| threads.contains(&tid), python).collect::<Vec<Met>>()
        };
        self.living.iter().flat_map(of_process).collect()
    }

    /// How full the fullest ring is, in hundredths.
    pub(super) fn fill(&self) -> u64 {
        self.living.iter().map(Process::fill).max().unwrap_or(0)
    }
}

impl Done {
    fn and(self, other: Done) -> Done {
        Done {
            patched: self.patched.saturating_add(other.patched),
            refused: self.refused.saturating_add(other.refused),
            unseen: self.unseen.saturating_add(other.unseen),
            dormant: self.dormant.saturating_add(other.dormant),
            unanswered: self.unanswered.saturating_add(other.unanswered),
            left: self.left.saturating_add(other.left),
            waits: self.waits.saturating_add(other.waits),
            waited_ns: self.waited_ns.saturating_add(other.waited_ns),
        }
    }
}

fn sum(one: &Counters, two: &Counters) -> Counters {
    Counters {
        notices_lost: one.notices_lost.saturating_add(two.notices_lost),
        events_lost: one.events_lost.saturating_add(two.events_lost),
        totals_overflowed: one.totals_overflowed.saturating_add(two.totals_overflowed),
        memory_lost: one.memory_lost.saturating_add(two.memory_lost),
        work_lost: one.work_lost.saturating_add(two.work_lost),
        shapes_lost: one.shapes_lost.saturating_add(two.shapes_lost),
        sums_full: one.sums_full.saturating_add(two.sums_full),
        sums_raced: one.sums_raced.saturating_add(two.sums_raced),
        ranges_lost: one.ranges_lost.saturating_add(two.ranges_lost),
        ..Counters::default()
    }
}

fn sum_of_sites(one: &SiteCounters, two: &SiteCounters) -> SiteCounters {
    SiteCounters {
        sent: one.sent.saturating_add(two.sent),
        lost: one.lost.saturating_add(two.lost),
        full: one.full.saturating_add(two.full),
        unsampled: one.unsampled.saturating_add(two.unsampled),
        no_memory: one.no_memory.saturating_add(two.no_memory),
        ..SiteCounters::default()
    }
}
