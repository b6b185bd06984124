//! Made of `crates/collect/src/agent/arena.h` by `scripts/wire.py`: change that, and run this.

use crate::wire::layout;

/// Of this layout.
pub const ARENA_MAGIC: u64 = 0x6165_6e61_0001_0005;
pub const ARENA_PAGE: u64 = 4096;
pub const RUN_BYTES: u64 = 1_073_741_824;
/// `struct options`.
pub const RUN_OPTIONS: u64 = 4096;
/// `struct site_options`.
pub const RUN_SITE_OPTIONS: u64 = 8192;
/// One for each row.
pub const RUN_SPECS: u64 = 65_536;
/// At most.
pub const ARENA_ROWS: u64 = 16_384;
/// A table: files that were looked at.
pub const RUN_FILES: u64 = 16_777_216;
pub const RUN_FILES_MOST: u32 = 16_384;
pub const RUN_FILES_SLOTS: u32 = 65_536;
/// `struct probe_site` by number.
pub const RUN_PROBE_SITES: u64 = 33_554_432;
/// What to do to each of them.
pub const RUN_PLANS: u64 = 67_108_864;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunHead {
    pub magic: u64,
    pub rows: u32,
    /// How long a thread waits until a library was looked at, s.
    pub patience: u32,
    /// 1: somebody wants those of the program.
    pub ranges: u32,
    pub pad: u32,
}

/// A file, as stat() names it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArenaFile {
    pub device: u64,
    pub inode: u64,
    /// Its ctime, ns.
    pub changed: u64,
}

/// Where its plan lies in the run; 0 bytes: nothing is done to it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArenaPlanned {
    pub at: u64,
    /// Of functions.
    pub patches: u64,
    /// Of the dynamic linker's notification, behind them.
    pub calls: u64,
}

/// Bytes that a patch covers.
pub const PATCH_ORIGINAL: usize = 32;
pub const PATCH_UNDO: usize = 16;
pub const PATCH_COPY: usize = 96;
pub const PATCH_FIXUPS: usize = 6;

/// A field of 32 bits within moved code that is relative to where it is put.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PatchFixup {
    /// Address in the file.
    pub target: u64,
    /// Where it lies in the copy.
    pub at: u32,
    /// Where its instruction ends there.
    pub next: u32,
}

/// How the entry of a function is patched. Addresses are the file's.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArenaPatch {
    pub entry: u64,
    /// As a probe's.
    pub cookie: u64,
    pub returns: u32,
    /// Bytes of the first instruction, which stay; the jump follows them.
    pub kept: u8,
    /// Bytes that are moved.
    pub covered: u8,
    pub undo_bytes: u8,
    pub copy_bytes: u8,
    pub fixups: u32,
    /// Of its arguments.
    pub stack_words: u32,
    /// Of a static probe; 0: it has none.
    pub semaphore: u64,
    /// 1: it lies within a function, which goes on there.
    pub place: u32,
    pub pad: u32,
    pub original: [u8; PATCH_ORIGINAL],
    pub undo: [u8; PATCH_UNDO],
    pub copy: [u8; PATCH_COPY],
    pub fixup: [PatchFixup; PATCH_FIXUPS],
}

/// A call of the dynamic linker's notification, which becomes one of ours.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArenaCall {
    /// Of its opcode, e8.
    pub at: u64,
    /// That it has.
    pub target: u64,
}

/// Of this layout.
pub const KEPT_MAGIC: u64 = 0x7470_656b_0001_0001;
/// Of the file, at most.
pub const KEPT_BYTES: u64 = 16_777_216;
/// Of digests, which are FNV-1a.
pub const KEPT_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
pub const KEPT_PRIME: u64 = 0x100_0000_01b3;

/// The file of plans of earlier loads, in the folder of programs that stand by: files and their patches follow,
/// one behind the other.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeptHead {
    pub magic: u64,
    /// Of the agents that read it.
    pub build: u64,
    /// Of what follows.
    pub bytes: u64,
    /// Of its words.
    pub digest: u64,
}

/// A file, as nothing else on this machine is: who loads it has these patches done, and asks nobody.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeptFile {
    pub file: ArenaFile,
    pub bytes: u64,
    /// Its mtime, ns.
    pub written: u64,
    /// A digest of its last name's bytes: what a file holds goes by it, too.
    pub name: u64,
    /// Behind it.
    pub patches: u64,
}

/// `struct control`, a page, as the next two.
pub const PROCESS_CONTROL: u64 = 4096;
pub const PROCESS_SITE_COUNTERS: u64 = 8192;
pub const PROCESS_AGGREGATE_COUNTERS: u64 = 12_288;
/// `struct started_range`, [`MOST_STARTED`] of them.
pub const PROCESS_STARTED: u64 = 65_536;
/// Where tables begin.
pub const PROCESS_TABLES: u64 = 1_048_576;
pub const MOST_STARTED: u32 = 2048;

// `enum arena_table`: Tables. Those of a thread are changed by nobody else.
/// An array, by row.
pub const OWN_ROWS: usize = 0;
pub const OWN_TOTALS: usize = 1;
pub const OWN_FAILURES: usize = 2;
/// An array.
pub const PROCESS_FLOWS: usize = 3;
pub const PROCESS_SHAPES: usize = 4;
pub const PROCESS_KERNELS: usize = 5;
pub const PROCESS_NAMED_HANDLES: usize = 6;
pub const PROCESS_AGGREGATES: usize = 7;
pub const PROCESS_AGGREGATE_TEXTS: usize = 8;
pub const PROCESS_LANES: usize = 9;
pub const PROCESS_WORK_LOSSES: usize = 10;
pub const PROCESS_MEMORY_LOSSES: usize = 11;
pub const PROCESS_KNOWN_SITES: usize = 12;
pub const PROCESS_PYTHONS: usize = 13;
pub const ARENA_TABLES: usize = 14;

/// Where a table lies and how large it is: in its thread's block, or in the process.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableShape {
    pub offset: u64,
    /// Entries.
    pub most: u32,
    /// Of its index, a power of two, more than entries; 0: an array.
    pub slots: u32,
    pub key_bytes: u32,
    pub value_bytes: u32,
}

/// A table begins with this. Then its index follows: for each slot 0, or the number of an entry from 1 on, or
/// [`SLOT_GONE`]; then its entries.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// TID of the thread that changes it; 0: none.
    pub owner: u32,
    /// Entries that are or were in use.
    pub used: u32,
    /// The number of one that is not any more, from 1 on; 0: none.
    pub free: u32,
    /// An owner that was waited for in vain: nobody waits as long for it again; 0: none.
    pub stuck: u32,
}

pub const SLOT_GONE: u32 = 0xffff_ffff;

/// An entry begins with this. Then its key and its value follow, each filled up to 8 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableEntry {
    pub in_use: u32,
    /// Free one.
    pub next: u32,
}

/// Where the blocks of threads begin.
pub const PROCESS_BLOCKS: u64 = 268_435_456;
pub const BLOCK_BYTES: u64 = 16_056_320;
pub const MOST_BLOCKS: u32 = 12_288;
/// Behind the blocks: the rings of the first threads, [`RING_MOST`] for each.
pub const PROCESS_LARGE_RINGS: u64 = 197_568_495_616;
/// Of which hardly any are in use.
pub const PROCESS_BYTES: u64 = 214_748_364_800;

/// What agent and gpuscope know of each other.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessHead {
    pub magic: u64,
    /// Tells one program in one process from any other.
    pub image: u64,
    /// 1: the agent has this, and all else that it needs.
    pub mapped: u64,
    /// As gpuscope names it.
    pub tgid: u32,
    /// Of threads, that were claimed.
    pub blocks: u32,
    /// Calls that found nowhere to be counted.
    pub unseen: u64,
    /// Calls of a signal's handler that has interrupted a hook of another handler's.
    pub nested: u64,
    /// Functions.
    pub patched: u64,
    /// Functions whose bytes are not those of the file, or that lie beyond reach.
    pub refused: u64,
    /// How long threads have waited for room in their rings, ns.
    pub waited: u64,
    /// How often.
    pub waits: u64,
    /// How often gpuscope has read all rings: that it is there.
    pub rounds: u64,
    /// `rounds` + 1 when a thread last waited in vain; 0: never.
    pub gave_up: u64,
    /// Of the program's time namespace, ns.
    pub clock_ahead: i64,
    /// Ranges and marks that found no room.
    pub ranges_lost: u64,
    /// Bytes of the ring of each of the first [`LARGE_RINGS`] threads, a power of two.
    pub large_ring: u64,
    pub shape: [TableShape; ARENA_TABLES],
}

/// What nobody else reads.
pub const BLOCK_LOCAL: u64 = 4096;
/// `struct thread`, of which gpuscope reads the open calls.
pub const BLOCK_THREAD: u64 = 5120;
/// [`OWN_ROWS`].
pub const BLOCK_ROWS: u64 = 131_072;
/// [`OWN_FAILURES`].
pub const BLOCK_FAILURES: u64 = 917_504;
/// [`OWN_TOTALS`].
pub const BLOCK_TOTALS: u64 = 983_040;
/// `struct open_ranges`.
pub const BLOCK_RANGES: u64 = 15_728_640;
/// Of threads behind [`LARGE_RINGS`].
pub const BLOCK_RING: u64 = 15_794_176;
/// Calls of which nothing but their number is wanted, a word for each row.
pub const BLOCK_PLAIN: u64 = 15_925_248;
/// Of the first threads', unless something else is asked for.
pub const RING_BYTES: u64 = 4_194_304;
/// That may be asked for.
pub const RING_MOST: u64 = 1_073_741_824;
/// Of those behind [`LARGE_RINGS`].
pub const RING_BYTES_OF_MANY: u64 = 131_072;
pub const LARGE_RINGS: u32 = 16;

/// What a thread writes to; the block of one that has ended goes to another one of the same process.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// TID; 0: none.
    pub owner: u32,
    pub ring_bytes: u32,
    /// When the hook was entered that the thread is in, CLOCK_MONOTONIC ns, and no record that it submits has a
    /// smaller stamp; 1: not known yet; 0: it is in none.
    pub busy: u64,
    /// The thread's own, as pthread_self() gives it; 0: this is its other block.
    pub pointer: u64,
    /// Where its ring lies, from here on.
    pub ring_at: u64,
    pub pad: [u64; 4],
    /// Bytes submitted.
    pub head: u64,
    /// Of these, what was submitted when the ring last began anew, at its first byte.
    pub base: u64,
    pub pad2: [u64; 6],
    /// Bytes taken by gpuscope.
    pub tail: u64,
    pub pad3: [u64; 7],
}

// `enum arena_stream`
pub const RING_CALLS: u32 = 0;
pub const RING_MEMORY: u32 = 1;
pub const RING_WORK: u32 = 2;
pub const RING_NOTICES: u32 = 3;
pub const RING_RANGES: u32 = 4;
pub const RING_FILLER: u32 = 255;

/// A record in a ring; its bytes follow, and the next one at a multiple of 16.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingRecord {
    pub bytes: u32,
    /// `enum arena_stream`; [`RING_FILLER`]: nothing, the ring begins anew behind it.
    pub stream: u32,
    /// CLOCK_MONOTONIC ns.
    pub stamp: u64,
}

/// By it the same user's gpuscope reaches a program that carries the agent and is not traced: a file of one page.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Door {
    pub magic: u64,
    /// As the process names itself.
    pub tgid: u32,
    /// `enum door_wake`, written by gpuscope; the agent takes it away with its next call.
    pub wake: u32,
    /// When gpuscope was there last, CLOCK_MONOTONIC ns; 0: it does not say.
    pub beat: u64,
    /// How often the agent has followed; an odd number: calls are recorded now.
    pub joined: u64,
    /// Functions.
    pub patched: u64,
    /// Functions that cannot be, and files that could not be looked at.
    pub refused: u64,
    /// Of which sources the agent is: only their gpuscope reads its memory.
    pub build: u64,
    /// Where gpuscope listens.
    pub path: [u8; 112],
}

// `enum door_wake`
/// Calls are to be recorded.
pub const DOOR_JOIN: u32 = 1;
/// And no longer.
pub const DOOR_LEAVE: u32 = 2;

// `enum message_kind`
/// A program begins: gpuscope answers with both pieces of memory.
pub const MESSAGE_PROGRAM: u32 = 1;
/// A forked child makes its first call: the same.
pub const MESSAGE_CHILD: u32 = 2;
/// Files were mapped that are not known: the thread waits for the answer.
pub const MESSAGE_LIBRARIES: u32 = 3;
/// A program that has stood by follows: gpuscope answers with both pieces of memory.
pub const MESSAGE_LATE: u32 = 4;

pub const MESSAGE_FILES: usize = 64;
pub const MESSAGE_OPEN: usize = 4;

/// From the agent.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    pub magic: u64,
    /// `enum message_kind`.
    pub kind: u32,
    pub tid: u32,
    pub parent: u32,
    /// Of those that follow.
    pub files: u32,
    /// CLOCK_MONOTONIC ns.
    pub at: u64,
    pub file: [ArenaFile; MESSAGE_FILES],
    /// Where each is mapped.
    pub address: [u64; MESSAGE_FILES],
    /// Calls that the thread is in, the outermost first; 0: none.
    pub open_entered: [u64; MESSAGE_OPEN],
    pub open_row: [u64; MESSAGE_OPEN],
}

/// From gpuscope.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub magic: u64,
    /// 0: the agent stays dormant.
    pub accepted: u64,
}

layout! { RunHead, 24:
    magic: 0, rows: 8, patience: 12, ranges: 16, pad: 20,
}
layout! { ArenaFile, 24:
    device: 0, inode: 8, changed: 16,
}
layout! { ArenaPlanned, 24:
    at: 0, patches: 8, calls: 16,
}
layout! { PatchFixup, 16:
    target: 0, at: 8, next: 12,
}
layout! { ArenaPatch, 288:
    entry: 0, cookie: 8, returns: 16, kept: 20, covered: 21, undo_bytes: 22, copy_bytes: 23, fixups: 24,
    stack_words: 28, semaphore: 32, place: 40, pad: 44, original: 48, undo: 80, copy: 96, fixup: 192,
}
layout! { ArenaCall, 16:
    at: 0, target: 8,
}
layout! { KeptHead, 32:
    magic: 0, build: 8, bytes: 16, digest: 24,
}
layout! { KeptFile, 56:
    file: 0, bytes: 24, written: 32, name: 40, patches: 48,
}
layout! { TableShape, 24:
    offset: 0, most: 8, slots: 12, key_bytes: 16, value_bytes: 20,
}
layout! { Table, 16:
    owner: 0, used: 4, free: 8, stuck: 12,
}
layout! { TableEntry, 8:
    in_use: 0, next: 4,
}
layout! { ProcessHead, 456:
    magic: 0, image: 8, mapped: 16, tgid: 24, blocks: 28, unseen: 32, nested: 40, patched: 48, refused: 56,
    waited: 64, waits: 72, rounds: 80, gave_up: 88, clock_ahead: 96, ranges_lost: 104, large_ring: 112, shape: 120,
}
layout! { Block, 192:
    owner: 0, ring_bytes: 4, busy: 8, pointer: 16, ring_at: 24, pad: 32, head: 64, base: 72, pad2: 80, tail: 128,
    pad3: 136,
}
layout! { RingRecord, 16:
    bytes: 0, stream: 4, stamp: 8,
}
layout! { Door, 168:
    magic: 0, tgid: 8, wake: 12, beat: 16, joined: 24, patched: 32, refused: 40, build: 48, path: 56,
}
layout! { Message, 2144:
    magic: 0, kind: 8, tid: 12, parent: 16, files: 20, at: 24, file: 32, address: 1568, open_entered: 2080,
    open_row: 2112,
}
layout! { Answer, 16:
    magic: 0, accepted: 8,
}
