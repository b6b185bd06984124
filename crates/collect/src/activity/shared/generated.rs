//! Made of `crates/collect/src/activity/activity.h` by `scripts/wire.py`: change that, and run this.

use crate::wire::layout;

/// Of this layout.
pub const ACTIVITY_MAGIC: u64 = 0x6770_7561_6374_0009;
pub const SHARED_BYTES: u64 = 16_912_384;
/// `struct activity_name`, by number.
pub const SHARED_NAMES: u64 = 4096;
/// What they name.
pub const SHARED_TEXTS: u64 = 135_168;
/// `struct activity_record`.
pub const SHARED_RING: u64 = 4_329_472;
pub const MOST_NAMES: u32 = 16_384;
pub const MOST_TEXT_BYTES: u32 = 4_194_304;
/// Of one name; what goes on is cut.
pub const MOST_NAME_BYTES: u32 = 4096;
/// In the ring.
pub const MOST_RECORDS: u32 = 131_072;

// `enum activity_state`: How far the library has got.
pub const ACTIVITY_NONE: u32 = 0;
/// No CUPTI was found.
pub const ACTIVITY_ABSENT: u32 = 1;
/// `step` ended with `error`.
pub const ACTIVITY_REFUSED: u32 = 2;
pub const ACTIVITY_ON: u32 = 3;
/// Everything was handed over.
pub const ACTIVITY_ENDED: u32 = 4;
/// Handing over took too long.
pub const ACTIVITY_CUT: u32 = 5;
/// Gpuscope went away first.
pub const ACTIVITY_LEFT: u32 = 6;
/// The program asked CUPTI itself, and has got it.
pub const ACTIVITY_GIVEN: u32 = 7;
/// CUPTI is, and has not answered yet.
pub const ACTIVITY_ASKED: u32 = 8;

// `enum activity_step`: What CUPTI was asked for.
pub const STEP_NONE: u32 = 0;
/// An entry is missing in the library.
pub const STEP_LOAD: u32 = 1;
pub const STEP_SUBSCRIBE: u32 = 2;
pub const STEP_CALLBACKS: u32 = 3;
pub const STEP_KERNELS: u32 = 4;
pub const STEP_COPIES: u32 = 5;
pub const STEP_MEMSETS: u32 = 6;
pub const STEP_THREAD: u32 = 7;
pub const STEP_GRAPHS: u32 = 8;

// `enum activity_clock`: Whose clock records have.
pub const CLOCK_UNKNOWN: u32 = 0;
/// CUPTI asks for CLOCK_MONOTONIC.
pub const CLOCK_ASKED: u32 = 1;
/// CUPTI has its own, and what it differs by is measured.
pub const CLOCK_FITTED: u32 = 2;

pub const LIBRARY_BYTES: usize = 256;

/// Where the piece begins.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActivityHead {
    pub magic: u64,
    pub state: u32,
    pub step: u32,
    /// CUPTI's.
    pub error: u32,
    /// CUPTI_API_VERSION of the library.
    pub version: u32,
    pub clock: u32,
    /// 1: what CUPTI itself takes is told, too.
    pub overheads: u32,
    /// 1: graphs are to be told of as a whole, not by node; gpuscope writes it.
    pub graphs: u32,
    /// 1: the program gets CUPTI as soon as it asks.
    pub guarded: u32,
    /// Records so far.
    pub written: u64,
    /// Of those for which there was no room.
    pub full: u64,
    /// By CUPTI.
    pub dropped: u64,
    /// Without a time, or with an end before the begin.
    pub invalid: u64,
    /// Records whose name found no room.
    pub unnamed: u64,
    /// Of kinds that nobody has asked for.
    pub other: u64,
    /// Of what CUPTI itself took, without a time or with an end before the begin.
    pub untimed: u64,
    /// Ns of each period in which activities are recorded; gpuscope writes it.
    pub window: u64,
    /// 0: they are recorded all the time.
    pub period: u64,
    /// That have been opened.
    pub windows: u64,
    /// And that CUPTI refused to open.
    pub unopened: u64,
    pub names: u64,
    pub text_bytes: u64,
    /// When what was done had been handed over last, CLOCK_MONOTONIC ns.
    pub flushed: u64,
    /// CLOCK_MONOTONIC ns.
    pub began: u64,
    /// Until when copies were told of, as the program puts some into graphs by hand; 0: all the time.
    pub copies: u64,
    /// What was done until then was told of; 0: all was, as long as it was asked for.
    pub given: u64,
    /// Its path.
    pub library: [u8; LIBRARY_BYTES],
    /// Path of another one that was mapped later; empty: none was.
    pub second: [u8; LIBRARY_BYTES],
}

/// A word that gpuscope writes: records that it has taken.
pub const SHARED_TAKEN: u64 = 2048;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActivityName {
    pub at: u32,
    pub bytes: u32,
}

// `enum activity_kind`
pub const ACTIVITY_UNKNOWN: u8 = 0;
pub const ACTIVITY_KERNEL: u8 = 1;
pub const ACTIVITY_COPY: u8 = 2;
pub const ACTIVITY_MEMSET: u8 = 3;
/// The launch of one, from its first node to its last.
pub const ACTIVITY_GRAPH: u8 = 4;
/// No work: a stream was made, or a default one was met first.
pub const ACTIVITY_STREAM: u8 = 5;
/// No work: time that CUPTI or the driver took.
pub const ACTIVITY_OVERHEAD: u8 = 6;
/// No work: recording began, or has ended for a while.
pub const ACTIVITY_WINDOW: u8 = 7;
/// No work: how many multiprocessors a device has, and what each has room for.
pub const ACTIVITY_DEVICE: u8 = 8;

// `enum activity_turn`
pub const TURN_OPENED: u64 = 0;
pub const TURN_CLOSED: u64 = 1;
/// The program had run before, and is recorded from now on.
pub const TURN_LATE: u64 = 2;

/// What a device has done.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActivityRecord {
    /// CLOCK_MONOTONIC ns.
    pub begin: u64,
    pub end: u64,
    /// Of a stream: its handle; of overhead: CUPTI's kind; of a device: its multiprocessors; of a window: `enum
    /// activity_turn`.
    pub bytes: u64,
    /// Of a graph.
    pub node: u64,
    /// 0: of none.
    pub graph: u32,
    pub device: u32,
    pub context: u32,
    pub stream: u32,
    /// From 1 on; 0: it has none.
    pub name: u32,
    /// Of a device: warps, blocks and registers of a multiprocessor.
    pub grid: [u32; 3],
    /// Of a device: shared memory of a multiprocessor, compute capability.
    pub block: [u32; 3],
    pub shared_static: u32,
    pub shared_dynamic: u32,
    /// The device that a copy between devices comes from.
    pub peer: u32,
    pub registers: u16,
    pub kind: u8,
    /// CUPTI's kind of copy.
    pub copy: u8,
    /// CUPTI's kinds of memory; of a memset `to`.
    pub from: u8,
    pub to: u8,
    /// CUPTI's.
    pub flags: u8,
    pub pad: u8,
}

/// What a process says when it calls.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActivityMessage {
    pub magic: u64,
    pub pad: u64,
}

layout! { ActivityHead, 688:
    magic: 0, state: 8, step: 12, error: 16, version: 20, clock: 24, overheads: 28, graphs: 32, guarded: 36,
    written: 40, full: 48, dropped: 56, invalid: 64, unnamed: 72, other: 80, untimed: 88, window: 96, period: 104,
    windows: 112, unopened: 120, names: 128, text_bytes: 136, flushed: 144, began: 152, copies: 160, given: 168,
    library: 176, second: 432,
}
layout! { ActivityName, 8:
    at: 0, bytes: 4,
}
layout! { ActivityRecord, 96:
    begin: 0, end: 8, bytes: 16, node: 24, graph: 32, device: 36, context: 40, stream: 44, name: 48, grid: 52,
    block: 64, shared_static: 76, shared_dynamic: 80, peer: 84, registers: 88, kind: 90, copy: 91, from: 92, to: 93,
    flags: 94, pad: 95,
}
layout! { ActivityMessage, 16:
    magic: 0, pad: 8,
}
