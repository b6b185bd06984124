//! Kernels that are launched: in which shapes, on which streams, and by which names.

use super::bytes::{u32_at, u64_at};
use super::generated::*;
use std::mem::offset_of;

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

/// A kernel that is launched for the first time through a handle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelEvent<'a> {
    pub tgid: u32,
    pub id: u64,
    pub handle: u64,
    /// [`TAG_FUNCTION`] and so on; 0: another handle of the driver. There is no name with [`KERNEL_STUB`] (`handle` is a
    /// function of the host) and [`KERNEL_UNREAD`].
    pub tag: u32,
    pub name: &'a [u8],
    /// It may be longer.
    pub cut: bool,
}

impl KernelEvent<'_> {
    const HEADER: usize = offset_of!(KernelRecord, name);

    /// Reads a record; `None` when `bytes` is too short or of another kind.
    pub fn parse(bytes: &[u8]) -> Option<KernelEvent<'_>> {
        if bytes.len() < KernelEvent::HEADER || u32_at(bytes, 0) != MEMORY_KERNEL {
            return None;
        }
        let length = u32_at(bytes, offset_of!(KernelRecord, length)) as usize;
        Some(KernelEvent {
            tgid: u32_at(bytes, offset_of!(KernelRecord, tgid)),
            id: u64_at(bytes, offset_of!(KernelRecord, id)),
            handle: u64_at(bytes, offset_of!(KernelRecord, handle)),
            tag: u32_at(bytes, offset_of!(KernelRecord, tag)),
            name: bytes.get(KernelEvent::HEADER..KernelEvent::HEADER + length)?,
            cut: length >= KERNEL_NAME - 1,
        })
    }
}
