//! A call site as the kernel programs send it: the Rust mirror of `crates/collect/src/bpf/site.h`.
//!
//! Owns the layout, not the meaning. `crates/collect/src/probe/` asserts at compile time that these structures equal the ones in
//! the BPF object.

use crate::wire::{MEMORY_SITE, u32_at, u64_at};

/// Return addresses of one stack.
pub const NATIVE: usize = 64;
/// Python frames of one stack.
pub const PYTHON: usize = 48;

/// What a call carries in place of a site's id: it has none.
pub const SITE_NONE: u64 = 0;
/// Beyond the budget of stacks per second.
pub const SITE_UNSAMPLED: u64 = 1;
/// The stack could not be kept or sent.
pub const SITE_UNKNOWN: u64 = 2;
/// Ids begin here.
pub const SITE_FIRST_ID: u64 = 16;

pub(crate) const NATIVE_FULL: u32 = 1;
pub(crate) const NATIVE_CUT: u32 = 2;
pub(crate) const NATIVE_NONE: u32 = 4;
pub const PYTHON_FULL: u32 = 8;
pub(crate) const PYTHON_BROKEN: u32 = 16;
pub const THREADS_FULL: u32 = 32;
/// The first address may be there twice.
pub(crate) const AT_ENTRY: u32 = 64;
/// The first address is where a static probe is, no return address.
pub(crate) const AT_PLACE: u32 = 128;

/// The process is not known to run Python.
pub const PYTHON_NONE: u32 = 0;
/// It does, and the thread runs no Python code now.
pub const PYTHON_THREAD: u32 = 1;
pub const PYTHON_FRAMES: u32 = 2;

pub(crate) const FRAME_ENTRY: u64 = 1;
/// Bytes of a frame that hold all that is read of it.
pub(crate) const WINDOW: u32 = 128;
/// An offset of something that a version lacks.
pub(crate) const ABSENT: u32 = 0x00ff_ffff;

pub(crate) const ENTRY_EACH: u32 = 0;
pub(crate) const ENTRY_BYTE: u32 = 1;
pub(crate) const ENTRY_SHIM: u32 = 2;

/// One Python frame.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PythonFrame {
    /// Address of the code object, and [`FRAME_ENTRY`].
    pub code: u64,
    /// Its address, or (up to 3.10) its index in the code.
    pub instruction: u64,
}

impl PythonFrame {
    /// The code object.
    pub(crate) fn code_address(self) -> u64 {
        self.code & !7
    }

    /// Whether the native evaluation loop that runs this frame was entered with it.
    pub fn is_entry(self) -> bool {
        self.code & FRAME_ENTRY != 0
    }
}

/// Bytes of a site event.
pub(crate) const SITE_BYTES: usize = HEADER_BYTES + NATIVE * 8 + PYTHON * size_of::<PythonFrame>();
pub const HEADER_BYTES: usize = 32;

/// The stack of one site, innermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteEvent {
    pub tgid: u32,
    pub tid: u32,
    pub id: u64,
    /// [`PYTHON_NONE`] and so on.
    pub python: u32,
    /// [`NATIVE_FULL`] and so on.
    pub flags: u32,
    /// Return addresses.
    pub native: Vec<u64>,
    pub frames: Vec<PythonFrame>,
}

impl SiteEvent {
    /// Reads a site event; `None` when `bytes` is none.
    pub fn parse(bytes: &[u8]) -> Option<SiteEvent> {
        if bytes.len() < SITE_BYTES || u32_at(bytes, 0) != MEMORY_SITE {
            return None;
        }
        let counts = u32_at(bytes, 12);
        let (native, python) = ((counts & 0xffff) as usize, (counts >> 16) as usize);
        let address = |n: usize| u64_at(bytes, HEADER_BYTES + n * 8);
        let frame = |n: usize| PythonFrame {
            code: address(NATIVE + n * 2),
            instruction: address(NATIVE + n * 2 + 1),
        };
        Some(SiteEvent {
            tgid: u32_at(bytes, 4),
            tid: u32_at(bytes, 8),
            python: u32_at(bytes, 16),
            flags: u32_at(bytes, 20),
            id: u64_at(bytes, 24),
            native: (0..native.min(NATIVE)).map(address).collect(),
            frames: (0..python.min(PYTHON)).map(frame).collect(),
        })
    }
}

/// Where the interpreter of a process keeps what the kernel programs read of it: offsets in bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Python {
    /// Address of `_PyRuntime`.
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
    /// With [`ENTRY_BYTE`].
    pub frame_entry: u32,
    /// [`ENTRY_EACH`] and so on.
    pub entry: u32,
    /// Owners from here on are no functions.
    pub first_no_function: u32,
}

/// What has become of call sites.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SiteCounters {
    pub second: u64,
    pub asked: u64,
    pub taken: u64,
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
