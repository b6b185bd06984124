//! A call site as the kernel programs send it: `crates/collect/src/bpf/site.h` in Rust.
//!
//! Owns the layout, not the meaning. `generated` is made of the header, as `crate::wire` is of wire.h.

mod generated;

pub use generated::*;

use crate::wire::{MEMORY_SITE, read};

impl PythonFrame {
    /// The code object.
    pub(crate) fn code_address(self) -> u64 {
        self.code & !7
    }

    /// Whether the native evaluation loop that runs this frame was entered with it.
    pub(crate) fn is_entry(self) -> bool {
        self.code & FRAME_ENTRY != 0
    }
}

/// Bytes of a site event.
pub(crate) const SITE_BYTES: usize = size_of::<SiteRecord>();

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
        let record: SiteRecord = read(bytes).filter(|record: &SiteRecord| record.kind == MEMORY_SITE)?;
        let native = usize::from(record.native_count).min(NATIVE);
        let python = usize::from(record.python_count).min(PYTHON);
        Some(SiteEvent {
            tgid: record.tgid,
            tid: record.tid,
            id: record.id,
            python: record.python,
            flags: record.flags,
            native: record.native[..native].to_vec(),
            frames: record.frames[..python].to_vec(),
        })
    }
}
