//! What copies move, and how fast.
//!
//! Owns counts by class and by stream. Where a copy goes is [`super::classify`]'s business, when a stream has done
//! what it was given to do that of the streams. A copy that blocks is as fast as its call is long. One that does not
//! has begun after its call did and was over when its stream was seen drained: it was at least as fast.

use super::Call;
use super::report::{Bandwidth, CopyReport, SIZE_BUCKETS};
use crate::catalog::{CopyKind, HostMemory, Step, WorkPart};
use crate::model::kind::CopyClass;
use crate::wire;
use std::collections::{BTreeMap, HashMap};

/// Threads whose batch may be under way.
const BATCHES: usize = 4096;

/// Of the copies that a call did not tell of.
const UNREPORTED: CopyClass = CopyClass {
    direction: None,
    host: Some(HostMemory::Unknown),
    blocking: false,
};

#[derive(Debug, Clone)]
struct Tally {
    count: u64,
    bytes: u64,
    unsized_count: u64,
    call_ns: u64,
    sizes: [u64; SIZE_BUCKETS],
    timed_bytes: u64,
    timed_ns: u64,
}

impl Default for Tally {
    fn default() -> Tally {
        Tally {
            count: 0,
            bytes: 0,
            unsized_count: 0,
            call_ns: 0,
            sizes: [0; SIZE_BUCKETS],
            timed_bytes: 0,
            timed_ns: 0,
        }
    }
}

impl Tally {
    fn size(&mut self, bytes: u64) {
        let bucket = bytes.checked_ilog2().unwrap_or(0) as usize;
        self.sizes[bucket.min(SIZE_BUCKETS - 1)] += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    fn time(&mut self, bytes: u64, ns: u64) {
        self.timed_bytes = self.timed_bytes.saturating_add(bytes);
        self.timed_ns = self.timed_ns.saturating_add(ns);
    }
}

/// Copies of one class in one stream that may be under way.
#[derive(Debug, Clone, Copy)]
struct Pending {
    bytes: u64,
    entered: u64,
}

#[derive(Debug, Default)]
struct Stream {
    copied: BTreeMap<CopyKind, u64>,
    pending: BTreeMap<CopyClass, Pending>,
}

/// A call whose copies come one by one.
#[derive(Debug, Clone, Copy)]
struct Batch {
    entered: u64,
    left: u32,
}

/// Copies of one process.
#[derive(Debug, Default)]
pub struct Copies {
    classes: BTreeMap<CopyClass, Tally>,
    streams: HashMap<usize, Stream>,
    batches: HashMap<u32, Batch>,
}

impl Copies {
    /// A copy was put into that stream; `None`: one that is not told apart. Whether it is the first
    /// one told of its call: the others of a batch took no time of their own.
    pub fn copy(&mut self, call: &Call<'_>, stream: Option<usize>, class: CopyClass) -> bool {
        let leads = call.step != Step::CopyBatch || self.leads(call);
        let tally = self.classes.entry(class).or_default();
        tally.count += 1;
        if leads {
            tally.call_ns = tally.call_ns.saturating_add(call.duration_ns());
        }
        match size(call) {
            None => tally.unsized_count += 1,
            Some(bytes) => {
                tally.size(bytes);
                self.move_bytes(call, stream, class, bytes);
            }
        }
        leads
    }

    fn move_bytes(&mut self, call: &Call<'_>, stream: Option<usize>, class: CopyClass, bytes: u64) {
        let mut stream = stream.map(|stream| self.streams.entry(stream).or_default());
        if let (Some(direction), Some(stream)) = (class.direction, &mut stream) {
            let copied = stream.copied.entry(direction).or_default();
            *copied = copied.saturating_add(bytes);
        }
        if bytes == 0 || class.direction.is_none() {
            return; // of those that may go anywhere, no rate is one of anything
        }
        let entered = call.raw.entered;
        if class.blocking {
            self.classes.entry(class).or_default().time(bytes, call.duration_ns());
            return;
        }
        let Some(stream) = stream else { return };
        let pending = stream.pending.entry(class).or_insert(Pending { bytes: 0, entered });
        pending.bytes = pending.bytes.saturating_add(bytes);
        pending.entered = pending.entered.min(entered);
    }

    /// Whether this is the first copy told of its call. Those that the call tells nothing of are counted then.
    fn leads(&mut self, call: &Call<'_>) -> bool {
        let (tid, entered) = (call.raw.tid, call.raw.entered);
        let under_way = self.batches.get_mut(&tid).filter(|batch| batch.entered == entered);
        let is_first = under_way.is_none();
        let left = under_way.map_or(call.raw.copies.min(wire::BATCH), |batch| batch.left);
        if is_first {
            let unreported = u64::from(call.raw.copies.saturating_sub(wire::BATCH));
            self.count_unreported(unreported);
        }
        if left <= 1 {
            self.batches.remove(&tid);
            return is_first;
        }
        if self.batches.len() >= BATCHES {
            self.batches.clear(); // what these wait for was lost
        }
        let left = left - 1;
        self.batches.insert(tid, Batch { entered, left });
        is_first
    }

    fn count_unreported(&mut self, copies: u64) {
        if copies > 0 {
            let tally = self.classes.entry(UNREPORTED).or_default();
            tally.count += copies;
            tally.unsized_count += copies;
        }
    }

    /// All that was put into `stream` was done at `done_at`, CLOCK_MONOTONIC ns.
    pub fn closed(&mut self, stream: usize, done_at: u64) {
        let Some(stream) = self.streams.get_mut(&stream) else {
            return;
        };
        for (class, pending) in std::mem::take(&mut stream.pending) {
            if let Some(ns) = done_at.checked_sub(pending.entered).filter(|ns| *ns > 0) {
                self.classes.entry(class).or_default().time(pending.bytes, ns);
            }
        }
    }

    /// Bytes by direction that were put into `stream`.
    #[must_use]
    pub(crate) fn of_stream(&self, stream: usize) -> BTreeMap<CopyKind, u64> {
        self.streams
            .get(&stream)
            .map(|stream| stream.copied.clone())
            .unwrap_or_default()
    }

    /// By class, most bytes first.
    #[must_use]
    pub fn report(&self) -> Vec<CopyReport> {
        let mut all: Vec<CopyReport> = self
            .classes
            .iter()
            .map(|(class, tally)| report(*class, tally))
            .collect();
        all.sort_by_key(|copies| std::cmp::Reverse((copies.bytes, copies.count)));
        all
    }
}

/// Bytes of a copy; `None`: no argument says, or it could not be read.
fn size(call: &Call<'_>) -> Option<u64> {
    match call.step {
        // of arrays the size is in elements
        Step::CopyBatch if in_array(call) => None,
        Step::CopyBatch => call.part(WorkPart::Size).or_else(|| volume(call)),
        _ => call.row.bytes.is_some().then_some(call.raw.bytes),
    }
}

fn in_array(call: &Call<'_>) -> bool {
    [WorkPart::FromOperand, WorkPart::ToOperand]
        .map(|part| call.part(part))
        .contains(&Some(2))
}

fn volume(call: &Call<'_>) -> Option<u64> {
    let sides = [WorkPart::Width, WorkPart::Height, WorkPart::Depth].map(|part| call.part(part));
    sides.into_iter().try_fold(1u64, |bytes, side| bytes.checked_mul(side?))
}

fn report(class: CopyClass, tally: &Tally) -> CopyReport {
    CopyReport {
        direction: class.direction,
        host: class.host,
        blocking: class.blocking,
        count: tally.count,
        bytes: tally.bytes,
        unsized_count: tally.unsized_count,
        call_ns: tally.call_ns,
        sizes: tally.sizes,
        bandwidth: (tally.timed_bytes > 0).then_some(Bandwidth {
            bytes: tally.timed_bytes,
            ns: tally.timed_ns,
            certainty: class.certainty(),
        }),
    }
}

#[cfg(test)]
#[path = "copies_tests.rs"]
mod tests;
