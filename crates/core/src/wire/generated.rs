//! Made of `crates/collect/src/bpf/wire.h` by `scripts/wire.py`: change that, and run this.

use super::layout;

/// Registers with arguments: rdi rsi rdx rcx r8 r9.
pub const REGS: usize = 6;
/// Qwords at rsp+8 .. rsp+87.
pub const STACK: usize = 10;
/// Single words read through a pointer argument.
pub const VALUES: usize = 8;
/// Qwords of one structure behind a pointer argument.
pub const BLOCK: usize = 26;
/// C strings behind pointer arguments.
pub const TEXTS: usize = 2;
/// Bytes kept of each, NUL included.
pub const TEXT: usize = 128;
/// Factors whose product is the size in bytes of a call.
pub const FACTORS: usize = 4;
/// Open calls remembered for one thread.
pub const FRAMES: usize = 16;
/// Four for each power of two of nanoseconds, from 32 ns to 68 s.
pub const BUCKETS: usize = 128;
/// Bytes of a thread's name, NUL included.
pub const COMM: usize = 16;
/// Library loads that can wait at the same time.
pub const WAITS: usize = 64;
/// Arguments of a static probe.
pub const PLACES: usize = 12;
/// Static probes whose arguments lie in different places.
pub const PROBE_SITES: usize = 1024;
/// Pointers that are followed to an argument in the kernel.
pub const KERNEL_STEPS: usize = 6;
/// Rows of the kernel whose arguments lie in different places.
pub const KERNEL_SITES: usize = 1024;
/// Thread names that --comm can select.
pub const COMMS: usize = 4;
/// Arguments that say what a call does to memory.
pub const PARTS: usize = 9;
/// Arguments that say what a call has to do with work.
pub const WORK: usize = 8;
/// Copies of one call that are told of one by one.
pub const BATCH: u32 = 256;
/// A submission that took as long may have waited for room, and is told of.
pub const SLOW_NS: u64 = 100_000;
/// Stream: the default one of a thread, as the driver numbers it.
pub const PER_THREAD: u64 = 2;
/// Grid x y z, block x y z, bytes of shared memory.
pub const SHAPE: usize = 7;
/// Bytes kept of the message of an Xid, NUL included.
pub const XID_TEXT: usize = 472;
/// Bytes kept of the name of a kernel, NUL included.
pub const KERNEL_NAME: usize = 4096;
/// Bytes of one piece of an argument that the driver was given.
pub const PIECE: usize = 64;
/// Bytes of the names of cgroups.
pub const CGROUP: usize = 1024;
/// Bytes of one, NUL included.
pub const CGROUP_NAME: usize = 256;
/// Of cgroups in each other.
pub const CGROUP_DEPTH: usize = 16;
/// Conditions of one row.
pub const TESTS: usize = 2;

// `enum wire_size`: How much of a call is captured; each size is a prefix of the next.
pub const SIZE_SMALL: u8 = 0;
pub const SIZE_MEDIUM: u8 = 1;
pub const SIZE_LARGE: u8 = 2;

// `enum spec_flag`
/// Send an event for each call, beside counting it.
pub const SPEC_STREAM: u8 = 1;
/// Has a return probe: duration and result are known.
pub const SPEC_RETURN: u8 = 2;
/// The result is an error code: 0 or `ok` is success.
pub const SPEC_FALLIBLE: u8 = 4;
/// Tell the memory ring.
pub const SPEC_MEMORY: u8 = 8;
/// And from where it is called.
pub const SPEC_SITE: u8 = 16;
/// But not if a call inside this one has done so.
pub const SPEC_OUTER: u8 = 32;
/// Launches a kernel: its totals are kept by kernel, value 1 becomes the kernel's id.
pub const SPEC_KERNEL: u8 = 64;
/// Handles of kernels may stand for others afterwards.
pub const SPEC_UNLOAD: u8 = 128;

// `enum spec_ground`: Where a row's function runs.
/// In the kernel: its pointers may be the kernel's.
pub const GROUND_KERNEL: u32 = 1;
/// On behalf of nobody: whichever task is current says nothing.
pub const GROUND_ANY_TASK: u32 = 2;
/// A call that succeeds has followed the pointers that it was given, as CUDA's do.
pub const GROUND_FOLLOWED: u32 = 4;

// `enum context_move`: What a call does to its thread's stack of contexts; the context is the first part of
// `memory`.
pub const CONTEXT_STAYS: u8 = 0;
pub const CONTEXT_SET: u8 = 1;
pub const CONTEXT_PUSH: u8 = 2;
pub const CONTEXT_POP: u8 = 3;
/// As a pop, if the context is the current one.
pub const CONTEXT_DROP: u8 = 4;

/// Index of a captured word: 0..5 registers, 6..15 stack, 16..23 values. The first on the stack.
pub const WORD_STACK: u8 = 6;
/// The first of the values.
pub const WORD_VALUES: u8 = 16;
/// Where a launch whose shape lies behind a pointer keeps the stream found there.
pub const WORD_STREAM: u8 = 22;
/// Where a row asks for the stack of each call.
pub const WORD_SITE: u8 = 23;
/// No word.
pub const WORD_NONE: u8 = 255;

/// Part of what a captured word is, or points to.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Read {
    /// The pointer.
    pub word: u8,
    /// 1..8.
    pub bytes: u8,
    pub offset: u16,
}

/// A number among the captured words.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Factor {
    /// [`WORD_NONE`]: none.
    pub word: u8,
    pub bytes: u8,
}

// `enum launch_role`: What a row has to do with kernels.
pub const ROLE_NONE: u8 = 0;
/// Launches: its totals are kept by kernel.
pub const ROLE_LAUNCH: u8 = 1;
/// Launches by a function of the host; the driver's launch, which counts, lies within.
pub const ROLE_STUB: u8 = 2;
/// Has given the handle to what `name` is called.
pub const ROLE_NAME: u8 = 3;
/// Has given the handle to what handle `name` stands for.
pub const ROLE_SAME: u8 = 4;

/// What of a launch says what runs, and in what shape.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The handle.
    pub kernel: Factor,
    pub name: Factor,
    /// `enum launch_role`.
    pub role: u8,
    /// Points to the numbers of the shape; [`WORD_NONE`]: they are words.
    pub shape_block: u8,
    /// The first of them, which follow each other; [`WORD_NONE`]: the call does not say.
    pub shape_word: u8,
    /// What stream 0 stands for.
    pub null_stream: u8,
    /// Behind `shape_block`.
    pub shape_offset: u16,
    /// Whether it lies behind the numbers there, and 4 bytes; else it is a word.
    pub stream_in_block: u16,
    /// Word [`WORD_NONE`]: always stream 0.
    pub stream: Factor,
    pub pad: u16,
}

// `enum work_step`: What a call is to the stream that it names.
pub const WORK_NONE: u8 = 0;
/// Nothing: it is only told of.
pub const WORK_TELL: u8 = 1;
/// Something is put into it.
pub const WORK_SUBMIT: u8 = 2;
/// The same, and each is told of.
pub const WORK_COPY: u8 = 3;
/// Several copies, each described by elements of arrays; the last part is their number.
pub const WORK_BATCH: u8 = 4;

// `enum work_flag`
/// Afterwards earlier work may be known to be done.
pub const WORK_ANCHOR: u8 = 1;
/// Stream 0 is the thread's own.
pub const WORK_PER_THREAD: u8 = 2;
/// From now on work becomes nodes of a graph.
pub const WORK_BEGINS_CAPTURE: u8 = 4;
pub const WORK_ENDS_CAPTURE: u8 = 8;
/// Tell of each submission.
pub const WORK_EACH: u8 = 16;
/// And from where it is called.
pub const WORK_SITE: u8 = 32;
pub const WORK_ENDS_LANE: u8 = 64;
/// Its last part is a kernel, or, where that is 0, the one before.
pub const WORK_KERNEL: u8 = 128;

/// `bytes` 0: nothing; `offset` [`READ_DIRECT`]: the word itself, else what it points to.
pub const READ_DIRECT: u16 = 0xffff;

/// What a call has to do with a stream.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// `enum work_step`.
    pub step: u8,
    pub flags: u8,
    pub parts: u8,
    /// Bytes from one element of an array to the next.
    pub stride: u8,
    pub stream: Read,
    pub part: [Read; WORK],
}

/// What stands for a captured word where a call is tested or summed up. Nothing: what it needs is not seen.
pub const WORD_UNKNOWN: u8 = 254;
/// What the call returned.
pub const WORD_RESULT: u8 = 253;
/// ns.
pub const WORD_DURATION: u8 = 252;
/// Its size.
pub const WORD_BYTES: u8 = 251;
/// Signed numbers cross with their highest bit flipped, so that all compare as unsigned ones.
pub const SIGN_BIT: u64 = 0x8000_0000_0000_0000;

/// A number of a call.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    /// [`WORD_NONE`]: none.
    pub word: u8,
    /// 1..8.
    pub bytes: u8,
    pub is_signed: u8,
    pub pad: u8,
}

// `enum test_kind`
pub const TEST_LESS: u8 = 0;
pub const TEST_GREATER: u8 = 1;
pub const TEST_EQUAL: u8 = 2;
pub const TEST_BITS: u8 = 3;

/// A condition.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Test {
    pub value: u64,
    pub of: Operand,
    /// `enum test_kind`.
    pub kind: u8,
    /// It has to be the other way.
    pub negate: u8,
    pub pad: u16,
}

// `enum hook_flag`
pub const HOOK_AGGREGATE: u8 = 1;
/// Of the operand.
pub const HOOK_SUM: u8 = 2;
/// The smallest and the largest.
pub const HOOK_EXTREMES: u8 = 4;
/// By powers of two of the operand.
pub const HOOK_POWERS: u8 = 8;
/// Take the stack; word [`WORD_SITE`] becomes its id.
pub const HOOK_SITE: u8 = 16;
pub const HOOK_TESTS: u8 = 32;
/// An operand is a captured word.
pub const HOOK_WORDS: u8 = 64;

// `enum hook_group`: What calls are summed up by.
pub const GROUP_NONE: u8 = 0;
pub const GROUP_OPERAND: u8 = 1;
pub const GROUP_TEXT: u8 = 2;
pub const GROUP_THREAD: u8 = 3;
pub const GROUP_COMM: u8 = 4;
pub const GROUP_SITE: u8 = 5;

/// What a user's row computes in the kernel.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hook {
    /// `enum hook_flag`.
    pub flags: u8,
    pub tests: u8,
    /// `enum hook_group`.
    pub group: u8,
    pub pad: u8,
    pub of: Operand,
    pub by: Operand,
    pub pad2: u32,
    /// All have to hold.
    pub test: [Test; TESTS],
}

/// The sums of one group of calls.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AggregateKey {
    pub tgid: u32,
    pub row: u32,
    /// A number, or that of a text or stack.
    pub group: u64,
    /// `enum aggregate_bucket`.
    pub bucket: u32,
    pub pad: u32,
}

// `enum aggregate_bucket`: 0: the operand is 0, or there is no histogram; 1 + n: it is 2^n or more, and less
// than 2^(n+1).
/// Less than 0.
pub const BUCKET_BELOW: u32 = 65;
/// It could not be read.
pub const BUCKET_UNKNOWN: u32 = 66;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Aggregate {
    pub count: u64,
    pub sum: u64,
    pub largest: u64,
    /// Its complement.
    pub smallest: u64,
}

/// A text that calls are summed up by.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AggregateText {
    pub text: [u8; TEXT],
}

/// What to do at one row of the catalogue.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    pub flags: u8,
    /// `enum wire_size`.
    pub size: u8,
    pub stack_words: u8,
    pub values: u8,
    pub texts: u8,
    pub factors: u8,
    pub block_word: u8,
    pub block_qwords: u8,
    pub block_offset: u16,
    pub text_word: [u8; TEXTS],
    /// Words that tell the copy direction.
    pub variant: [Factor; 2],
    pub factor: [Factor; FACTORS],
    pub value: [Read; VALUES],
    /// One more result that is not a failure.
    pub ok: i32,
    /// `enum spec_ground`.
    pub ground: u32,
    /// Constant factor of the size; 0: the call has no size.
    pub scale: u64,
    pub part: [Factor; PARTS],
    pub parts: u8,
    /// `enum context_move`.
    pub context_move: u8,
    /// Remember its calls while they are open, even if they are only counted.
    pub keep_open: u8,
    pub pad: [u8; 3],
    /// Another result that is no failure, of calls behind the end of the library.
    pub ended: i32,
    pub launch: Launch,
    pub work: Work,
    pub pad2: u32,
    pub hook: Hook,
}

// `enum place_kind`
pub const PLACE_VALUE: u8 = 0;
pub const PLACE_MEMORY: u8 = 1;

/// Where an argument of a static probe lies: `offset` plus registers, numbered as in machine code, is its value
/// or the value's address.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    pub offset: u64,
    /// `enum place_kind`.
    pub kind: u8,
    /// [`WORD_NONE`]: none.
    pub base: u8,
    pub index: u8,
    /// The index is shifted left by this.
    pub scale: u8,
    /// 1..8.
    pub bytes: u8,
    pub is_signed: u8,
    pub pad: u16,
}

/// One static probe; its attach cookie numbers it from 1.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeSite {
    pub places: u32,
    pub pad: u32,
    pub place: [Place; PLACES],
}

// `enum kernel_place_flag`
pub const KERNEL_SIGNED: u8 = 1;
/// Where the last step leads, not what lies there.
pub const KERNEL_ADDRESS: u8 = 2;
/// The value's lower half is an offset in the tracepoint's record, where a text lies.
pub const KERNEL_IN_RECORD: u8 = 4;

/// An argument of a function of the kernel, a field of a tracepoint, or what is reached from there.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelPlace {
    /// Argument register; of a tracepoint always 0: its record.
    pub base: u8,
    /// 1..8 of the value.
    pub bytes: u8,
    /// Pointers followed; 0: the register itself.
    pub steps: u8,
    /// `enum kernel_place_flag`.
    pub flags: u8,
    /// Of a bit field: the value is shifted right by this.
    pub shift: u32,
    /// And then masked.
    pub mask: u64,
    pub offset: [u32; KERNEL_STEPS],
}

/// Where arguments lie in the kernel, and which calls are meant; the upper half of the attach cookie numbers it
/// from 1.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelSite {
    pub places: u32,
    /// Place that has to hold the value below; [`WORD_NONE`]: any call.
    pub only: u32,
    /// Of a text, with its NUL; 0: a number.
    pub only_bytes: u32,
    pub pad: u32,
    pub only_value: u64,
    pub only_text: [u8; COMM],
    pub place: [KernelPlace; PLACES],
}

// `enum event_flag`
/// Seen at entry only: no duration, no result.
pub const EVENT_NO_RETURN: u8 = 1;
/// Too deeply nested: arguments were not kept.
pub const EVENT_NO_ARGS: u8 = 2;
/// At least one pointer could not be read.
pub const EVENT_UNREADABLE: u8 = 4;
/// Not to be shown: it is none of those asked for.
pub const EVENT_HIDDEN: u8 = 8;

// `enum call_unreadable`: What could not be read: bit n: value n; and these.
pub const UNREADABLE_TEXT_2: u8 = 32;
pub const UNREADABLE_TEXT_1: u8 = 64;
pub const UNREADABLE_BLOCK: u8 = 128;

/// What every record of a call begins with.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallHeader {
    /// CLOCK_MONOTONIC ns.
    pub entered: u64,
    /// ns.
    pub duration: u64,
    /// `entered` of the streamed call that encloses this one, 0: none.
    pub caller: u64,
    pub result: u64,
    pub tgid: u32,
    pub tid: u32,
    pub row: u32,
    pub depth: u8,
    /// `enum event_flag`.
    pub flags: u8,
    /// `enum wire_size`.
    pub size: u8,
    /// `enum call_unreadable`.
    pub unreadable: u8,
}

/// One completed call.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallEvent {
    pub head: CallHeader,
    pub regs: [u64; REGS],
    /// [`SIZE_SMALL`] ends here.
    pub near_values: [u64; 2],
    pub stack: [u64; STACK],
    /// [`SIZE_MEDIUM`] ends here.
    pub far_values: [u64; VALUES - 2],
    pub block: [u64; BLOCK],
    /// [`SIZE_LARGE`] ends here.
    pub text: [u8; TEXTS * TEXT],
}

// `enum memory_kind`
pub const MEMORY_CALL: u32 = 1;
pub const MEMORY_SITE: u32 = 2;
pub const MEMORY_KERNEL: u32 = 3;
pub const WORK_CALL: u32 = 4;

/// What one call did to memory. Rides in a ring of its own: a balance must not depend on chatter.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryCall {
    pub kind: u32,
    pub row: u32,
    /// CLOCK_MONOTONIC ns.
    pub entered: u64,
    /// The same.
    pub returned: u64,
    /// Current one of the thread, 0: not known.
    pub context: u64,
    /// Where it was called from, 0: not taken.
    pub site: u64,
    /// Its size, where the row has one.
    pub bytes: u64,
    pub tgid: u32,
    pub tid: u32,
    pub result: i32,
    /// Bit n: a word that part n comes from could not be read.
    pub unreadable: u8,
    pub pad: [u8; 3],
    pub part: [u64; PARTS],
}

/// Memory calls of one process that found their ring full.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryLoss {
    pub allocations: u64,
    /// Of these.
    pub bytes: u64,
    pub others: u64,
}

/// A stream. Default streams belong to a context, or to a thread in one.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LaneKey {
    /// Of the process.
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
    /// Calls that put something into it.
    pub submitted: u64,
    /// Of the last one that was told of.
    pub generation: u64,
    /// When that was entered, CLOCK_MONOTONIC ns.
    pub since: u64,
}

/// Of the processes whose numbers end alike: what is shared by mistake costs a record more.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// Calls after which earlier work may be known to be done.
    pub generation: u64,
    /// That are open.
    pub captures: u64,
    /// Records, so far.
    pub lost: u64,
    /// Calls that put something into a stream and have not returned.
    pub open: u64,
}

/// What one call has to do with the work of a device. Only those that succeeded.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkCall {
    pub kind: u32,
    pub row: u32,
    /// CLOCK_MONOTONIC ns.
    pub entered: u64,
    /// The same.
    pub returned: u64,
    /// Current one of the thread, 0: not known.
    pub context: u64,
    /// 0: the default one, 2: the thread's own.
    pub stream: u64,
    /// Where it was called from, 0: not taken.
    pub site: u64,
    /// Its size, where the row has one.
    pub bytes: u64,
    /// Of its stream, this call included.
    pub submitted: u64,
    /// Of an anchor: at its entry; else at its return.
    pub generation: u64,
    /// At its return.
    pub generation_now: u64,
    /// Records of the process, so far; changes more often than need be.
    pub lost: u64,
    /// That is launched.
    pub kernel: u64,
    /// As in the totals: of a copy, its direction.
    pub variant: u64,
    pub tgid: u32,
    pub tid: u32,
    /// Bit n: part n.
    pub unreadable: u32,
    /// Of a batch: in all; in each of its records.
    pub copies: u32,
    pub part: [u64; WORK],
}

/// Work calls of one process that found their ring full.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkLoss {
    pub copies: u64,
    /// Of these.
    pub bytes: u64,
    pub others: u64,
}

// `enum kernel_unknown`: What stands in place of a kernel's id: why it has none.
/// The arguments of the call were not kept.
pub const KERNEL_NO_ARGS: u64 = 1;
/// The handle could not be read.
pub const KERNEL_UNREADABLE: u64 = 2;
/// What it points to does not look like a kernel of a driver that we know.
pub const KERNEL_FOREIGN: u64 = 3;
/// The name could not be read, or is empty.
pub const KERNEL_NO_NAME: u64 = 4;
/// No room for one more kernel.
pub const KERNEL_FULL: u64 = 5;
/// Ids begin here.
pub const KERNEL_FIRST_ID: u64 = 4096;

// `enum kernel_tag`: What the handle of a kernel is.
/// A `CUfunction`.
pub const TAG_FUNCTION: u32 = 1;
/// A `CUkernel`.
pub const TAG_KERNEL: u32 = 2;
/// A function of the host that launches it: told to user space, which names it.
pub const KERNEL_STUB: u32 = 3;
/// User space reads where the handle leads, which waits for pages.
pub const KERNEL_UNREAD: u32 = 4;

/// A kernel that is launched for the first time through this handle. The id follows from process image and name.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelRecord {
    pub kind: u32,
    pub tgid: u32,
    pub id: u64,
    pub handle: u64,
    /// `enum kernel_tag`; 0: another handle.
    pub tag: u32,
    /// Of the name, without NUL; [`KERNEL_NAME`] - 1: it may be longer.
    pub length: u32,
    pub name: [u8; KERNEL_NAME],
}

// `enum shape_state`: Most kernels are launched in one shape alone: the first that was seen needs no look into
// another table.
pub const SHAPE_NONE: u64 = 0;
pub const SHAPE_COMES: u64 = 1;
pub const SHAPE_SET: u64 = 2;

/// A handle of a kernel in one program of one process, and what it stands for.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KernelKey {
    pub image: u64,
    pub handle: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownKernel {
    /// Address, or what lies in its place; 0: to be told again.
    pub name: u64,
    /// When it was last looked at.
    pub unloads: u64,
    pub id: u64,
    /// In the one shape that is counted here; others have entries of their own.
    pub launches: u64,
    /// `enum shape_state`.
    pub shape_state: u64,
    /// The complement of the first; 0: none yet.
    pub stream: u64,
    /// 2: there were others.
    pub streams: u64,
    pub tgid: u32,
    pub number: [u32; SHAPE],
}

/// What the driver was asked for by name when it gave out a handle.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamedHandle {
    pub id: u64,
    pub tgid: u32,
    pub pad: u32,
}

/// How often a kernel was launched in one shape.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShapeKey {
    pub kernel: u64,
    pub tgid: u32,
    pub number: [u32; SHAPE],
}

/// The counting plane: exact totals for one function in one process.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TotalKey {
    /// 0: processes beyond the table's capacity, together.
    pub tgid: u32,
    pub row: u32,
    /// 0, 1 + the row's direction words, or the kernel that is launched.
    pub variant: u64,
}

/// Their sums.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Total {
    /// Calls seen at entry only; all others are in a bucket.
    pub untimed: u64,
    pub errors: u64,
    pub total_ns: u64,
    pub max_ns: u64,
    /// Of a launch: threads.
    pub bytes: u64,
    pub bucket: [u64; BUCKETS],
}

/// How calls failed.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FailureKey {
    pub tgid: u32,
    pub row: u32,
    pub code: i32,
    pub pad: u32,
}

/// Per row and CPU. Calls entered and not in a total have not returned to their caller.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowCounter {
    pub entered: u64,
    /// Events that found the ring full.
    pub lost: u64,
    /// Completed without arguments: nested too deeply, no memory for the thread, unreadable.
    pub no_frame: u64,
    /// Of the entered ones: at a site whose instruction is single-stepped.
    pub stepped: u64,
    /// The same: at a nop of five bytes.
    pub nop5: u64,
    /// Calls that returned, and were entered before calls counted; not among the entered ones.
    pub before: u64,
}

/// The attach cookie: the row, from bit 32 on the number of a static probe, and from bit 48 on how the kernel
/// runs the instruction there.
pub const COOKIE_STEPPED: u64 = 0x1_0000_0000_0000;
pub const COOKIE_NOP5: u64 = 0x2_0000_0000_0000;

// `enum driver_step`
pub const STEP_IOCTL: u8 = 1;
pub const STEP_OPEN: u8 = 2;
pub const STEP_CLOSE: u8 = 3;
pub const STEP_MMAP: u8 = 4;
pub const STEP_POLL: u8 = 5;

// `enum driver_family`: Whose device it is; the minor number tells which.
pub const FAMILY_FRONT: u8 = 1;
pub const FAMILY_UVM: u8 = 2;
pub const FAMILY_CAPS: u8 = 3;

/// In a key: the number is one of UVM's.
pub const UVM_REQUEST: u32 = 0x8000_0000;
/// In a key: where no other size fits.
pub const ANY_SIZE: u32 = 0xffff_ffff;
pub const NO_OFFSET: u16 = 0xffff;
/// Variant: the lower half is the class or method that a call is about.
pub const DRIVER_SUBJECT: u64 = 0x1_0000_0000;

/// Of the argument of a call to the driver.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    pub offset: u16,
    /// 0: nothing.
    pub length: u16,
}

/// A number of the front end or, with [`UVM_REQUEST`], of UVM.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IoctlKey {
    pub nr: u32,
    pub size: u32,
}

/// What is copied of an argument of that number and size.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoctlPlan {
    /// At enter.
    pub before: [Piece; 2],
    /// At exit.
    pub after: [Piece; 2],
    /// Offset of the driver's answer, or [`NO_OFFSET`]; as are the others.
    pub status: u16,
    /// The class or method, which is counted apart.
    pub subject: u16,
    /// What lies there is copied by the class.
    pub pointer: u16,
    pub pad: u16,
    pub row: u32,
    pub pad2: u32,
}

// `enum driver_seen`
pub const SEEN_BEFORE: u8 = 1;
pub const SEEN_AFTER: u8 = 2;
pub const SEEN_BEHIND: u8 = 4;
pub const LAST_CLOSE: u8 = 8;

/// What follows the header of a system call on one of the driver's devices.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverCall {
    /// Tells open files apart.
    pub file: u64,
    /// Its address; of mmap: bytes.
    pub argument: u64,
    /// The request as passed.
    pub word: u32,
    /// Of the request, or of that inside of a wrapper; as is the size.
    pub nr: u32,
    pub bytes: u32,
    pub minor: u32,
    /// `enum driver_family`.
    pub family: u8,
    /// `enum driver_step`.
    pub step: u8,
    /// The request came inside another one.
    pub wrapped: u8,
    /// `enum driver_seen`.
    pub seen: u8,
    pub pad: u32,
    /// What lay behind `pointer`.
    pub behind: [u8; 8],
    pub before: [[u8; 64]; 2],
    pub after: [[u8; 64]; 2],
}

/// One that has returned; its result is what the system call returned.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverEvent {
    pub head: CallHeader,
    pub call: DriverCall,
}

/// A function of one process.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShareKey {
    pub tgid: u32,
    pub row: u32,
}

/// Of the time of a function's calls: what system calls on the driver's devices took.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriverShare {
    pub calls: u64,
    pub ns: u64,
}

// `enum notice_kind`
pub const NOTICE_THREAD: u32 = 1;
pub const NOTICE_FORK: u32 = 2;
pub const NOTICE_EXEC: u32 = 3;
pub const NOTICE_EXIT: u32 = 4;
pub const NOTICE_LIBRARY: u32 = 5;

// `enum waits`: What a thread does that has mapped libraries.
/// It goes on.
pub const WAITS_NOT: u32 = 0;
/// It waits until its sequence is acknowledged.
pub const WAITS_HERE: u32 = 1;
/// It goes on: all that it maps has been looked at before.
pub const WAITS_FOR_NONE: u32 = 2;

/// How long the thread of a notice waits in the kernel at most.
pub const WAIT_NS: u64 = 1_000_000_000;
/// Open calls that a notice names.
pub const OPEN: usize = 4;

/// A call that has not returned.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenCall {
    /// CLOCK_MONOTONIC ns; 0: none.
    pub entered: u64,
    pub row: u32,
    pub pad: u32,
}

/// What happens to processes, in its own ring, so that a flood of calls cannot hide it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notice {
    pub kind: u32,
    pub tgid: u32,
    pub tid: u32,
    /// [`NOTICE_FORK`]: who forked; [`NOTICE_EXIT`]: the signal that ended it, 0: none.
    pub parent: u32,
    /// CLOCK_MONOTONIC ns.
    pub at: u64,
    /// [`NOTICE_LIBRARY`]: to be stored in its slot of `control.acknowledged`.
    pub sequence: u64,
    /// [`NOTICE_THREAD`]: the key of its cgroups' path, 0: not known.
    pub place: u64,
    /// [`NOTICE_LIBRARY`]: `enum waits`.
    pub waits: u32,
    pub pad: u32,
    pub comm: [u8; COMM],
    /// [`NOTICE_LIBRARY`]: calls that the thread is in, the outermost first.
    pub open: [OpenCall; OPEN],
}

/// Where a process runs: for each hierarchy of cgroups that is looked at, the names of a cgroup and of those that
/// it lies in, the innermost first, each with its NUL, and a NUL behind them all.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CgroupPath {
    /// 0: it is being written.
    pub length: u32,
    /// It is longer.
    pub cut: u32,
    pub text: [u8; CGROUP + CGROUP_NAME],
}

/// One Xid, from the driver's tracepoint.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XidEvent {
    /// CLOCK_MONOTONIC ns.
    pub at: u64,
    pub code: u32,
    pub pad: u32,
    /// Name on the PCI bus; empty: not known.
    pub device: [u8; 24],
    pub message: [u8; XID_TEXT],
}

layout! { Read, 4:
    word: 0, bytes: 1, offset: 2,
}
layout! { Factor, 2:
    word: 0, bytes: 1,
}
layout! { Launch, 16:
    kernel: 0, name: 2, role: 4, shape_block: 5, shape_word: 6, null_stream: 7, shape_offset: 8,
    stream_in_block: 10, stream: 12, pad: 14,
}
layout! { Work, 40:
    step: 0, flags: 1, parts: 2, stride: 3, stream: 4, part: 8,
}
layout! { Operand, 4:
    word: 0, bytes: 1, is_signed: 2, pad: 3,
}
layout! { Test, 16:
    value: 0, of: 8, kind: 12, negate: 13, pad: 14,
}
layout! { Hook, 48:
    flags: 0, tests: 1, group: 2, pad: 3, of: 4, by: 8, pad2: 12, test: 16,
}
layout! { AggregateKey, 24:
    tgid: 0, row: 4, group: 8, bucket: 16, pad: 20,
}
layout! { Aggregate, 32:
    count: 0, sum: 8, largest: 16, smallest: 24,
}
layout! { AggregateText, 128:
    text: 0,
}
layout! { Spec, 208:
    flags: 0, size: 1, stack_words: 2, values: 3, texts: 4, factors: 5, block_word: 6, block_qwords: 7,
    block_offset: 8, text_word: 10, variant: 12, factor: 16, value: 24, ok: 56, ground: 60, scale: 64, part: 72,
    parts: 90, context_move: 91, keep_open: 92, pad: 93, ended: 96, launch: 100, work: 116, pad2: 156, hook: 160,
}
layout! { Place, 16:
    offset: 0, kind: 8, base: 9, index: 10, scale: 11, bytes: 12, is_signed: 13, pad: 14,
}
layout! { ProbeSite, 200:
    places: 0, pad: 4, place: 8,
}
layout! { KernelPlace, 40:
    base: 0, bytes: 1, steps: 2, flags: 3, shift: 4, mask: 8, offset: 16,
}
layout! { KernelSite, 520:
    places: 0, only: 4, only_bytes: 8, pad: 12, only_value: 16, only_text: 24, place: 40,
}
layout! { CallHeader, 48:
    entered: 0, duration: 8, caller: 16, result: 24, tgid: 32, tid: 36, row: 40, depth: 44, flags: 45, size: 46,
    unreadable: 47,
}
layout! { CallEvent, 704:
    head: 0, regs: 48, near_values: 96, stack: 112, far_values: 192, block: 240, text: 448,
}
layout! { MemoryCall, 136:
    kind: 0, row: 4, entered: 8, returned: 16, context: 24, site: 32, bytes: 40, tgid: 48, tid: 52, result: 56,
    unreadable: 60, pad: 61, part: 64,
}
layout! { MemoryLoss, 24:
    allocations: 0, bytes: 8, others: 16,
}
layout! { LaneKey, 32:
    image: 0, context: 8, stream: 16, tgid: 24, tid: 28,
}
layout! { Lane, 24:
    submitted: 0, generation: 8, since: 16,
}
layout! { Flow, 32:
    generation: 0, captures: 8, lost: 16, open: 24,
}
layout! { WorkCall, 184:
    kind: 0, row: 4, entered: 8, returned: 16, context: 24, stream: 32, site: 40, bytes: 48, submitted: 56,
    generation: 64, generation_now: 72, lost: 80, kernel: 88, variant: 96, tgid: 104, tid: 108, unreadable: 112,
    copies: 116, part: 120,
}
layout! { WorkLoss, 24:
    copies: 0, bytes: 8, others: 16,
}
layout! { KernelRecord, 4128:
    kind: 0, tgid: 4, id: 8, handle: 16, tag: 24, length: 28, name: 32,
}
layout! { KernelKey, 16:
    image: 0, handle: 8,
}
layout! { KnownKernel, 88:
    name: 0, unloads: 8, id: 16, launches: 24, shape_state: 32, stream: 40, streams: 48, tgid: 56, number: 60,
}
layout! { NamedHandle, 16:
    id: 0, tgid: 8, pad: 12,
}
layout! { ShapeKey, 40:
    kernel: 0, tgid: 8, number: 12,
}
layout! { TotalKey, 16:
    tgid: 0, row: 4, variant: 8,
}
layout! { Total, 1064:
    untimed: 0, errors: 8, total_ns: 16, max_ns: 24, bytes: 32, bucket: 40,
}
layout! { FailureKey, 16:
    tgid: 0, row: 4, code: 8, pad: 12,
}
layout! { RowCounter, 48:
    entered: 0, lost: 8, no_frame: 16, stepped: 24, nop5: 32, before: 40,
}
layout! { Piece, 4:
    offset: 0, length: 2,
}
layout! { IoctlKey, 8:
    nr: 0, size: 4,
}
layout! { IoctlPlan, 32:
    before: 0, after: 8, status: 16, subject: 18, pointer: 20, pad: 22, row: 24, pad2: 28,
}
layout! { DriverCall, 304:
    file: 0, argument: 8, word: 16, nr: 20, bytes: 24, minor: 28, family: 32, step: 33, wrapped: 34, seen: 35, pad: 36,
    behind: 40, before: 48, after: 176,
}
layout! { DriverEvent, 352:
    head: 0, call: 48,
}
layout! { ShareKey, 8:
    tgid: 0, row: 4,
}
layout! { DriverShare, 16:
    calls: 0, ns: 8,
}
layout! { OpenCall, 16:
    entered: 0, row: 8, pad: 12,
}
layout! { Notice, 128:
    kind: 0, tgid: 4, tid: 8, parent: 12, at: 16, sequence: 24, place: 32, waits: 40, pad: 44, comm: 48, open: 64,
}
layout! { CgroupPath, 1288:
    length: 0, cut: 4, text: 8,
}
layout! { XidEvent, 512:
    at: 0, code: 8, pad: 12, device: 16, message: 40,
}
