//! Stacks of threads that call CUDA, as engines sample them.
//!
//! Owns what a sample is. When stacks are taken, and how, is an engine's business.

use crate::stack::wire::{BETWEEN, NATIVE, ON_CPU, PYTHON, PythonFrame, SITE_BYTES, SiteEvent, SiteRecord, WAITED};
use crate::wire::{MEMORY_SITE, bytes_of, u64_at, zero};

/// Between two ticks of a thread's clock: 99 a second, so that it does not go with what happens each millisecond.
pub const TICK_NS: u64 = 1_000_000_000 / 99;
/// Before the stack: when it ends, and the time that it stands for.
const HEAD: usize = 16;

/// A sample of a thread outside CUDA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When what it stands for ends, CLOCK_MONOTONIC ns.
    pub until: u64,
    /// What it stands for; of one between calls the time since the last of them.
    pub ns: u64,
    pub stack: SiteEvent,
}

/// The stack of a thread at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// CLOCK_MONOTONIC ns.
    pub at: u64,
    pub stack: SiteEvent,
}

impl Sample {
    /// Reads a record of the stream; `None`: it is none. Frames of Python that it has not are not sent.
    #[must_use]
    pub fn parse(record: &[u8]) -> Option<Sample> {
        let mut stack = record.get(HEAD..)?.to_vec();
        stack.resize(stack.len().max(SITE_BYTES), 0);
        Some(Sample {
            until: u64_at(record, 0),
            ns: u64_at(record, 8),
            stack: SiteEvent::parse(&stack)?,
        })
    }

    /// The record that is read so.
    #[must_use]
    pub fn record(&self) -> Vec<u8> {
        let (site, spare) = record_of(&self.stack);
        let mut record = [self.until, self.ns].map(u64::to_ne_bytes).concat();
        let bytes = bytes_of(&site);
        record.extend_from_slice(&bytes[..bytes.len() - spare * size_of::<PythonFrame>()]);
        record
    }

    /// Its thread had called a moment before: it is a look at one of 99 moments of a second.
    #[must_use]
    pub fn is_between(&self) -> bool {
        self.stack.flags & BETWEEN != 0
    }

    /// Its thread was off its CPU while one beside the program's Python was looked at, and had called a moment before: it stands for
    /// no time, and says where that was.
    #[must_use]
    pub fn waited(&self) -> bool {
        self.stack.flags & WAITED != 0
    }

    /// Its thread was on a CPU.
    #[must_use]
    pub fn running(&self) -> bool {
        self.stack.flags & ON_CPU != 0
    }
}

/// A stack as it crosses, and how many frames of Python it has room for at its end.
fn record_of(stack: &SiteEvent) -> (SiteRecord, usize) {
    let mut record: SiteRecord = zero();
    let (native, python) = (stack.native.len().min(NATIVE), stack.frames.len().min(PYTHON));
    record.kind = MEMORY_SITE;
    record.tgid = stack.tgid;
    record.tid = stack.tid;
    record.native_count = native as u16;
    record.python_count = python as u16;
    record.python = stack.python;
    record.flags = stack.flags;
    record.id = stack.id;
    record.native[..native].copy_from_slice(&stack.native[..native]);
    record.frames[..python].copy_from_slice(&stack.frames[..python]);
    (record, PYTHON - python)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_sample_is_read_as_it_was_written(
            until: u64, ns: u64, id: u64, flags: u32,
            native in proptest::collection::vec(any::<u64>(), 0..=NATIVE),
            frames in proptest::collection::vec(any::<(u64, u64)>(), 0..=PYTHON),
        ) {
            let frames = frames.into_iter().map(|(code, instruction)| PythonFrame { code, instruction }).collect();
            let stack = SiteEvent { tgid: 1, tid: 2, id, python: 2, flags, native, frames };
            let sample = Sample { until, ns, stack };
            prop_assert_eq!(Sample::parse(&sample.record()), Some(sample));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            let _ = Sample::parse(&bytes);
        }
    }
}
