//! Launches: what of a call says which kernel runs, and in what shape; and what is known of the kernels themselves.

use super::bytes::{u32_at, u64_at};
use super::memory::MEMORY_KERNEL;
use super::word::{Factor, WORD_NONE};

/// Grid x y z, block x y z, bytes of shared memory.
pub const SHAPE: usize = 7;
/// Bytes kept of the name of a kernel, NUL included.
pub const KERNEL_NAME: usize = 4096;

/// What stands in place of a kernel's id: why it has none.
pub const KERNEL_NO_ARGS: u64 = 1;
pub const KERNEL_UNREADABLE: u64 = 2;
pub const KERNEL_FOREIGN: u64 = 3;
pub const KERNEL_NO_NAME: u64 = 4;
pub const KERNEL_FULL: u64 = 5;
/// The tag of a function of the host that launches a kernel.
pub const KERNEL_STUB: u32 = 3;
/// The same of a handle: user space reads where it leads.
pub const KERNEL_UNREAD: u32 = 4;
/// Ids begin here.
pub const KERNEL_FIRST_ID: u64 = 4096;

/// What a row has to do with kernels.
pub const ROLE_NONE: u8 = 0;
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
    pub kernel: Factor,
    pub name: Factor,
    pub role: u8,
    /// Points to the numbers of the shape; [`WORD_NONE`]: they are words.
    pub shape_block: u8,
    /// The first of them, which follow each other; [`WORD_NONE`]: the call does not say.
    pub shape_word: u8,
    /// What stream 0 stands for.
    pub null_stream: u8,
    pub shape_offset: u16,
    /// Whether the stream lies behind the numbers of the shape, and 4 bytes; else it is a word.
    pub stream_in_block: u16,
    /// [`WORD_NONE`]: always stream 0.
    pub stream: Factor,
    pub pad: u16,
}

impl Launch {
    pub const NONE: Launch = Launch {
        kernel: Factor::NONE,
        name: Factor::NONE,
        role: ROLE_NONE,
        shape_block: WORD_NONE,
        shape_word: WORD_NONE,
        null_stream: 0,
        shape_offset: 0,
        stream_in_block: 0,
        stream: Factor::NONE,
        pad: 0,
    };
}

/// A handle of a kernel in one program of one process.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelKey {
    pub image: u64,
    pub handle: u64,
}

/// What the handle stands for.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownKernel {
    pub name: u64,
    pub unloads: u64,
    pub id: u64,
    /// In the shape that is counted here.
    pub launches: u64,
    pub shape_state: u64,
    /// The complement of the first one; 0: none yet.
    pub stream: u64,
    pub streams: u64,
    pub tgid: u32,
    pub number: [u32; SHAPE],
}

impl KnownKernel {
    /// The shape that is counted here, and its launches.
    pub fn shape(&self) -> Option<(ShapeKey, u64)> {
        let key = ShapeKey {
            kernel: self.id,
            tgid: self.tgid,
            number: self.number,
        };
        (self.launches > 0).then_some((key, self.launches))
    }

    /// The streams that it was launched on.
    pub fn stream(&self) -> Option<KernelStream> {
        (self.stream != 0).then_some(KernelStream {
            kernel: self.id,
            tgid: self.tgid,
            stream: !self.stream,
            several: self.streams > 1,
        })
    }
}

/// On which stream a kernel was launched, and whether on others, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelStream {
    pub kernel: u64,
    pub tgid: u32,
    pub stream: u64,
    pub several: bool,
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ShapeKey {
    pub kernel: u64,
    pub tgid: u32,
    pub number: [u32; SHAPE],
}

/// A kernel that is launched for the first time through a handle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelEvent<'a> {
    pub tgid: u32,
    pub id: u64,
    pub handle: u64,
    /// 1: `CUfunction`, 2: `CUkernel`, 0: another handle of the driver, [`KERNEL_STUB`]: `handle` is a function of
    /// the host, and there is no name.
    pub tag: u32,
    pub name: &'a [u8],
    /// It may be longer.
    pub cut: bool,
}

impl KernelEvent<'_> {
    const HEADER: usize = 32;

    /// Reads a record; `None` when `bytes` is too short or of another kind.
    pub fn parse(bytes: &[u8]) -> Option<KernelEvent<'_>> {
        if bytes.len() < KernelEvent::HEADER || u32_at(bytes, 0) != MEMORY_KERNEL {
            return None;
        }
        let length = u32_at(bytes, 28) as usize;
        Some(KernelEvent {
            tgid: u32_at(bytes, 4),
            id: u64_at(bytes, 8),
            handle: u64_at(bytes, 16),
            tag: u32_at(bytes, 24),
            name: bytes.get(KernelEvent::HEADER..KernelEvent::HEADER + length)?,
            cut: length >= KERNEL_NAME - 1,
        })
    }
}
