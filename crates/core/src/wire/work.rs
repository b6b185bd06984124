//! Work of a device: what a row has to do with a stream, what streams hold, and the records of calls.

use super::bytes::{u32_at, u64_at};
use super::memory::WORK_CALL;
use super::word::Read;

/// Arguments that say what a call has to do with work.
pub const WORK: usize = 8;
/// Copies of one call that are told of one by one.
pub const BATCH: u32 = 256;
/// A submission that took as long may have waited for room, and is told of.
pub const SLOW_NS: u64 = 100_000;
/// Stream: the default one of a thread, as the driver numbers it.
pub const PER_THREAD: u64 = 2;

pub const WORK_NONE: u8 = 0;
pub const WORK_TELL: u8 = 1;
pub const WORK_SUBMIT: u8 = 2;
pub const WORK_COPY: u8 = 3;
pub const WORK_BATCH: u8 = 4;

pub const WORK_ANCHOR: u8 = 1;
pub const WORK_PER_THREAD: u8 = 2;
pub const WORK_BEGINS_CAPTURE: u8 = 4;
pub const WORK_ENDS_CAPTURE: u8 = 8;
pub const WORK_EACH: u8 = 16;
pub const WORK_SITE: u8 = 32;
pub const WORK_ENDS_LANE: u8 = 64;
pub const WORK_KERNEL: u8 = 128;

/// What a call is to the stream that it names.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    pub step: u8,
    pub flags: u8,
    pub parts: u8,
    /// Bytes from one element of an array to the next.
    pub stride: u8,
    /// `bytes` 0: none.
    pub stream: Read,
    pub part: [Read; WORK],
}

impl Work {
    pub const NONE: Work = Work {
        step: WORK_NONE,
        flags: 0,
        parts: 0,
        stride: 0,
        stream: Read::NONE,
        part: [Read::NONE; WORK],
    };
}

/// A stream. Default streams belong to a context, or to a thread in one.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LaneKey {
    pub image: u64,
    pub context: u64,
    pub stream: u64,
    pub tgid: u32,
    pub tid: u32,
}

/// What was put into it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lane {
    pub submitted: u64,
    pub generation: u64,
    pub since: u64,
}

/// Of the processes whose numbers end alike.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    pub generation: u64,
    pub captures: u64,
    /// Records that were lost so far.
    pub lost: u64,
    /// Calls that put something into a stream and have not returned.
    pub open: u64,
}

impl Flow {
    /// Reads an entry; `None` when `bytes` is too short.
    pub fn parse(bytes: &[u8]) -> Option<Flow> {
        (bytes.len() >= size_of::<Flow>()).then(|| Flow {
            generation: u64_at(bytes, 0),
            captures: u64_at(bytes, 8),
            lost: u64_at(bytes, 16),
            open: u64_at(bytes, 24),
        })
    }
}

/// What one call has to do with the work of a device. It succeeded.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkCall {
    pub kind: u32,
    pub row: u32,
    pub entered: u64,
    pub returned: u64,
    pub context: u64,
    /// 0: the default one of the context, 2: the one of the thread.
    pub stream: u64,
    pub site: u64,
    pub bytes: u64,
    /// Calls that put something into its stream, this one included.
    pub submitted: u64,
    /// Of an anchor: at its entry; else at its return.
    pub generation: u64,
    /// At its return.
    pub generation_now: u64,
    /// Records of the process that were lost so far; changes more often than need be.
    pub lost: u64,
    pub kernel: u64,
    pub variant: u64,
    pub tgid: u32,
    pub tid: u32,
    pub unreadable: u32,
    /// Of a batch: in all.
    pub copies: u32,
    pub part: [u64; WORK],
}

impl WorkCall {
    /// Reads a record; `None` when `bytes` is too short or of another kind.
    pub fn parse(bytes: &[u8]) -> Option<WorkCall> {
        if bytes.len() < size_of::<WorkCall>() || u32_at(bytes, 0) != WORK_CALL {
            return None;
        }
        Some(WorkCall {
            kind: WORK_CALL,
            row: u32_at(bytes, 4),
            entered: u64_at(bytes, 8),
            returned: u64_at(bytes, 16),
            context: u64_at(bytes, 24),
            stream: u64_at(bytes, 32),
            site: u64_at(bytes, 40),
            bytes: u64_at(bytes, 48),
            submitted: u64_at(bytes, 56),
            generation: u64_at(bytes, 64),
            generation_now: u64_at(bytes, 72),
            lost: u64_at(bytes, 80),
            kernel: u64_at(bytes, 88),
            variant: u64_at(bytes, 96),
            tgid: u32_at(bytes, 104),
            tid: u32_at(bytes, 108),
            unreadable: u32_at(bytes, 112),
            copies: u32_at(bytes, 116),
            part: std::array::from_fn(|part| u64_at(bytes, 120 + part * 8)),
        })
    }
}

/// Work calls of one process that found their ring full.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkLoss {
    pub copies: u64,
    pub bytes: u64,
    pub others: u64,
}
