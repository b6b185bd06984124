//! Made of `crates/collect/src/agent/range.h` by `scripts/wire.py`: change that, and run this.

use super::layout;

/// Bytes of a name; what goes on is cut.
pub const RANGE_NAME: usize = 256;
pub const RANGE_DOMAIN: usize = 64;

// `enum range_kind`
/// It is nested in those of its thread.
pub const RANGE_PUSHED: u8 = 1;
/// It may end on another thread.
pub const RANGE_STARTED: u8 = 2;
/// It is over at once.
pub const RANGE_MARK: u8 = 3;
/// None: a thread is called so, whose number is `category`.
pub const RANGE_THREAD: u8 = 4;
/// None: that category of the domain is called so.
pub const RANGE_CATEGORY: u8 = 5;

// `enum range_flag`
/// The name goes on.
pub const RANGE_CUT: u8 = 1;
/// The name, or its end, could not be read.
pub const RANGE_UNREAD: u8 = 2;
/// It has not ended: until then it was seen.
pub const RANGE_OPEN: u8 = 4;
/// It has one.
pub const RANGE_COLOR: u8 = 8;

/// What a program calls a phase of its own (NVTX). The name follows, then that of its domain.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RangeRecord {
    /// CLOCK_MONOTONIC ns.
    pub begin: u64,
    pub end: u64,
    pub tgid: u32,
    pub tid: u32,
    /// Who has ended it.
    pub end_tid: u32,
    /// Its number in the process; 0: the one without a name.
    pub domain: u32,
    pub category: u32,
    /// ARGB.
    pub color: u32,
    pub name_bytes: u16,
    /// How many of the same domain are around it.
    pub level: u16,
    pub domain_bytes: u8,
    /// `enum range_kind`.
    pub kind: u8,
    /// `enum range_flag`.
    pub flags: u8,
    pub pad: u8,
}

/// Of a thread.
pub const MOST_OPEN_RANGES: u32 = 128;

/// A range that is open, or its record before it is submitted: the name, and from [`RANGE_NAME`] on the domain's.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenRange {
    pub record: RangeRecord,
    pub text: [u8; RANGE_NAME + RANGE_DOMAIN],
}

/// Those that a thread has pushed, the outermost first.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenRanges {
    pub depth: u32,
    /// Those for which there is no room.
    pub beyond: u32,
    pub range: [OpenRange; 128],
}

pub const STARTED_BUSY: u64 = 1;

/// One that no thread has on its stack.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartedRange {
    /// 0: none; [`STARTED_BUSY`]: it is being written or ended.
    pub id: u64,
    pub pad: u64,
    pub range: OpenRange,
}

layout! { RangeRecord, 48:
    begin: 0, end: 8, tgid: 16, tid: 20, end_tid: 24, domain: 28, category: 32, color: 36, name_bytes: 40, level: 42,
    domain_bytes: 44, kind: 45, flags: 46, pad: 47,
}
layout! { OpenRange, 368:
    record: 0, text: 48,
}
layout! { OpenRanges, 47112:
    depth: 0, beyond: 4, range: 8,
}
layout! { StartedRange, 384:
    id: 0, pad: 8, range: 16,
}
