//! A black box: the last moments of every process in memory, each process for itself, until somebody wants them written.
//!
//! Owns what is kept, for how long and in how many bytes, and tells of calls after which somebody will want it. Who wants
//! it, whose processes belong together, and where files go, is others' business.

mod block;
mod last;
#[cfg(test)]
mod tests;

use super::schema::{self, Piece};
use crate::record::{Encoder, Kind, Meta, Record};
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_schema::SchemaRef;
use block::Loose;
use last::Last;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What stands for everybody: calls that were lost have no process.
const EVERYBODY: u32 = 0;
/// One part of so many of the bytes is for rows that are not packed yet.
const LOOSE_SHARE: usize = 4;

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Older rows are forgotten.
    pub time: Duration,
    /// Of all processes together. Beyond, the oldest rows of the process that has most are dropped.
    pub bytes: usize,
}

/// Why somebody will want the last moments of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Failure {
    /// A call failed with an error after which nothing works in its process.
    Fatal,
    /// A call failed for want of memory.
    OutOfMemory,
}

/// What was dropped before its time, for want of memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dropped {
    pub blocks: u64,
    pub rows: u64,
}

/// The last moments of some processes.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Moments {
    /// A whole recording.
    pub bytes: Vec<u8>,
    pub rows: u64,
}

/// The last moments of every process; all clones are one.
#[derive(Clone)]
pub struct BlackBox(Rc<RefCell<Inner>>);

struct Inner {
    schema: SchemaRef,
    bounds: Bounds,
    processes: BTreeMap<u32, Last>,
    /// Rows of processes that are not among these may have come until then, and are forgotten; CLOCK_MONOTONIC ns.
    forgotten: Option<u64>,
    /// Bytes of all rows that are not packed.
    loose: usize,
    failures: BTreeSet<(Failure, u32)>,
    dropped: Dropped,
    /// Calls that had not returned when moments are taken.
    unreturned: Loose,
}

impl BlackBox {
    /// An empty one, of a trace that `meta` describes.
    #[must_use]
    pub fn new(meta: &Meta, bounds: Bounds) -> BlackBox {
        let schema: SchemaRef = Arc::new(schema::schema(meta));
        BlackBox(Rc::new(RefCell::new(Inner {
            unreturned: Loose::new(&schema),
            schema,
            bounds,
            processes: BTreeMap::new(),
            forgotten: None,
            loose: 0,
            failures: BTreeSet::new(),
            dropped: Dropped::default(),
        })))
    }

    /// Processes with calls that failed since this was last asked, and how.
    #[must_use]
    pub fn take_failures(&self) -> BTreeSet<(Failure, u32)> {
        std::mem::take(&mut self.0.borrow_mut().failures)
    }

    /// Processes of which something is kept.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        let inner = self.0.borrow();
        inner
            .processes
            .keys()
            .copied()
            .filter(|pid| *pid != EVERYBODY)
            .collect()
    }

    /// Bytes in memory: packed rows as they are, loose ones as they are reckoned.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.borrow().bytes()
    }

    #[must_use]
    pub fn dropped(&self) -> Dropped {
        self.0.borrow().dropped
    }

    /// All that is kept of these processes, as a recording, with the calls that have not returned. `None`: nothing is.
    ///
    /// # Errors
    /// None is known.
    pub fn moments(&self, pids: &BTreeSet<u32>) -> io::Result<Option<Moments>> {
        self.0.borrow_mut().moments(pids)
    }
}

impl Encoder for BlackBox {
    fn take(&mut self, record: &Record<'_>, _out: &mut Vec<u8>) {
        self.0.borrow_mut().take(record);
    }

    /// It is in the next moments that are taken.
    fn take_unreturned(&mut self, record: &Record<'_>, _out: &mut Vec<u8>) {
        let inner = &mut *self.0.borrow_mut();
        inner.unreturned.push(record);
    }

    fn tick(&mut self, _out: &mut Vec<u8>) {
        self.0.borrow_mut().tick(Instant::now());
    }

    fn measures(&self) -> bool {
        false
    }
}

impl Inner {
    fn take(&mut self, record: &Record<'_>) {
        if !matches!(record.kind, Kind::Call | Kind::Kernel | Kind::Xid | Kind::Lost) {
            return;
        }
        self.failures
            .extend(failure(record).map(|failure| (failure, record.pid)));
        let forgotten = self.forgotten;
        let last = self.processes.entry(record.pid);
        let last = last.or_insert_with(|| Last::from_then(forgotten));
        let before = last.loose();
        last.push(record, &self.schema);
        self.loose = self.loose + last.loose() - before;
        if self.loose > self.bounds.bytes / LOOSE_SHARE {
            self.pack();
        }
    }

    fn tick(&mut self, now: Instant) {
        for last in self.processes.values_mut() {
            last.forget(now, self.bounds.time);
        }
        self.pack();
        let gone = self.processes.extract_if(.., |_, last| last.is_empty());
        let gone = gone.filter_map(|(_, last)| last.from()).max();
        self.forgotten = self.forgotten.max(gone);
    }

    /// Packs all loose rows, and drops what is too much then.
    fn pack(&mut self) {
        for last in self.processes.values_mut() {
            last.pack(&self.schema);
        }
        self.loose = self.processes.values().map(Last::loose).sum();
        let mut packed = self.packed();
        while packed > self.bounds.bytes - self.bounds.bytes / LOOSE_SHARE {
            let largest = self.processes.values_mut().max_by_key(|last| last.packed());
            let Some(block) = largest.and_then(Last::drop_oldest) else {
                break;
            };
            packed -= block.size();
            self.dropped.blocks += 1;
            self.dropped.rows += block.rows;
        }
    }

    fn packed(&self) -> usize {
        self.processes.values().map(Last::packed).sum()
    }

    fn bytes(&self) -> usize {
        self.loose + self.packed() + self.unreturned.kept()
    }

    fn moments(&mut self, pids: &BTreeSet<u32>) -> io::Result<Option<Moments>> {
        self.pack();
        let unreturned = self.unreturned.pack(&self.schema);
        let is_of = |pid: &u32| *pid == EVERYBODY || pids.contains(pid);
        let known = || self.processes.iter().filter(|(pid, _)| is_of(pid));
        if unreturned.is_none() && known().all(|(pid, last)| *pid == EVERYBODY || last.is_empty()) {
            return Ok(None);
        }
        let from = known().filter_map(|(_, last)| last.from()).max();
        let silent = pids.iter().any(|pid| !self.processes.contains_key(pid));
        let from = from.max(self.forgotten.filter(|_| silent));
        let schema = schema::of_piece(&self.schema, Piece::Dump, from);
        let mut writer = StreamWriter::try_new_with_options(Vec::new(), &schema, IpcWriteOptions::default())
            .map_err(io::Error::other)?;
        let mut bytes = std::mem::take(writer.get_mut());
        let mut blocks: Vec<_> = known().flat_map(|(_, last)| last.blocks()).collect();
        blocks.sort_by_key(|block| block.since);
        blocks.extend(&unreturned);
        let rows = blocks.iter().map(|block| block.rows).sum();
        blocks.iter().for_each(|block| bytes.extend_from_slice(&block.bytes));
        bytes.extend_from_slice(&super::frame::END);
        Ok(Some(Moments { bytes, rows }))
    }
}

/// Of calls of CUDA: other libraries number their results as they like.
fn failure(record: &Record<'_>) -> Option<Failure> {
    let is_of_cuda = matches!(record.layer, "runtime" | "driver");
    if record.kind != Kind::Call || !record.failed || !is_of_cuda {
        return None;
    }
    match record.result {
        code if crate::findings::is_sticky(code) => Some(Failure::Fatal),
        Some(crate::findings::OUT_OF_MEMORY) => Some(Failure::OutOfMemory),
        _ => None,
    }
}
