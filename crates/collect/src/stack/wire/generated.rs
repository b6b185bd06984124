//! Made of `crates/collect/src/bpf/site.h` by `scripts/wire.py`: change that, and run this.

use crate::wire::layout;

/// Return addresses of one stack.
pub const NATIVE: usize = 64;
/// Python frames of one stack.
pub const PYTHON: usize = 48;

// `enum site_special`: What a call carries in place of a site's id. Ids are larger than all of these.
/// The call has no site.
pub const SITE_NONE: u64 = 0;
/// Beyond the budget of stacks per second.
pub const SITE_UNSAMPLED: u64 = 1;
/// The stack could not be kept or sent.
pub const SITE_UNKNOWN: u64 = 2;
/// Ids begin here.
pub const SITE_FIRST_ID: u64 = 16;

// `enum site_flag`
/// There may be more native frames than were kept.
pub const NATIVE_FULL: u32 = 1;
/// Cut where the chain of frame pointers left the code.
pub const NATIVE_CUT: u32 = 2;
/// The kernel gave no stack: the innermost address alone.
pub const NATIVE_NONE: u32 = 4;
/// More Python frames than were kept, or a list without end.
pub const PYTHON_FULL: u32 = 8;
/// A Python frame could not be read.
pub const PYTHON_BROKEN: u32 = 16;
/// The thread was not among those of the interpreter that were looked at.
pub const THREADS_FULL: u32 = 32;
/// Taken at entry: the first address may be there twice.
pub const AT_ENTRY: u32 = 64;
/// Taken inside a function: the first address is that place.
pub const AT_PLACE: u32 = 128;
/// The thread ran when it was taken.
pub const ON_CPU: u32 = 256;
/// Taken a moment after a call: it stands for no time but a look.
pub const BETWEEN: u32 = 512;
/// The thread was off its CPU while one beside Python was looked at.
pub const WAITED: u32 = 1024;

// `enum site_python`
/// The process is not known to run Python.
pub const PYTHON_NONE: u32 = 0;
/// It does, and this thread runs no Python code now.
pub const PYTHON_THREAD: u32 = 1;
pub const PYTHON_FRAMES: u32 = 2;

/// In `code`: the native evaluation loop that runs this frame was entered with it.
pub const FRAME_ENTRY: u64 = 1;

/// One Python frame.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PythonFrame {
    /// Address of the code object, and [`FRAME_ENTRY`].
    pub code: u64,
    /// Its address, or (up to 3.10) its index in the code.
    pub instruction: u64,
}

/// The stack of one site, innermost first.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SiteRecord {
    /// MEMORY_SITE.
    pub kind: u32,
    pub tgid: u32,
    pub tid: u32,
    pub native_count: u16,
    pub python_count: u16,
    /// `enum site_python`.
    pub python: u32,
    /// `enum site_flag`.
    pub flags: u32,
    pub id: u64,
    /// Innermost first: where the call returns to.
    pub native: [u64; NATIVE],
    pub frames: [PythonFrame; PYTHON],
}

/// Bytes of a frame that hold all that is read of it.
pub const WINDOW: u32 = 128;
/// An offset of something that a version lacks.
pub const ABSENT: u32 = 0xff_ffff;

// `enum python_entry`
/// Each frame has an evaluation loop of its own.
pub const ENTRY_EACH: u32 = 0;
/// A byte of the frame says so.
pub const ENTRY_BYTE: u32 = 1;
/// A frame that is no function's lies below it.
pub const ENTRY_SHIM: u32 = 2;

/// Where the interpreter of a process keeps what is read of it: offsets in bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Python {
    /// Address of _PyRuntime.
    pub runtime: u64,
    /// Bits of a reference to code that are the address.
    pub code_mask: u64,
    pub interpreters_head: u32,
    pub interpreter_next: u32,
    pub threads_head: u32,
    pub thread_next: u32,
    pub thread_id: u32,
    pub thread_frame: u32,
    /// [`ABSENT`]: `thread_frame` is the frame itself.
    pub cframe_frame: u32,
    /// At most [`WINDOW`].
    pub frame_bytes: u32,
    pub frame_previous: u32,
    pub frame_code: u32,
    pub frame_instruction: u32,
    /// 4 or 8.
    pub instruction_bytes: u32,
    /// [`ABSENT`]: every frame is a function's.
    pub frame_owner: u32,
    /// [`ENTRY_BYTE`].
    pub frame_entry: u32,
    /// `enum python_entry`.
    pub entry: u32,
    /// Owners from here on are no functions.
    pub first_no_function: u32,
}

/// What has become of call sites.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SiteCounters {
    /// Which the next one counts for.
    pub second: u64,
    /// In this second.
    pub asked: u64,
    /// The same.
    pub taken: u64,
    /// One of so many that ask is served.
    pub stride: u64,
    pub sent: u64,
    /// New sites that found the ring full.
    pub lost: u64,
    /// New sites that found the table of known ones full.
    pub full: u64,
    /// Calls beyond the budget.
    pub unsampled: u64,
    /// Calls of threads that got no memory for a stack.
    pub no_memory: u64,
}

layout! { PythonFrame, 16:
    code: 0, instruction: 8,
}
layout! { SiteRecord, 1312:
    kind: 0, tgid: 4, tid: 8, native_count: 12, python_count: 14, python: 16, flags: 20, id: 24, native: 32,
    frames: 544,
}
layout! { Python, 80:
    runtime: 0, code_mask: 8, interpreters_head: 16, interpreter_next: 20, threads_head: 24, thread_next: 28,
    thread_id: 32, thread_frame: 36, cframe_frame: 40, frame_bytes: 44, frame_previous: 48, frame_code: 52,
    frame_instruction: 56, instruction_bytes: 60, frame_owner: 64, frame_entry: 68, entry: 72,
    first_no_function: 76,
}
layout! { SiteCounters, 72:
    second: 0, asked: 8, taken: 16, stride: 24, sent: 32, lost: 40, full: 48, unsampled: 56, no_memory: 64,
}
