//! Memory of a device: what a row says of it, and the records of calls.
//!
//! Owns the kinds of all records that share a ring with these.

use super::bytes::{u32_at, u64_at};

/// Arguments that say what a call does to memory.
pub const PARTS: usize = 9;

pub const CONTEXT_STAYS: u8 = 0;
pub const CONTEXT_SET: u8 = 1;
pub const CONTEXT_PUSH: u8 = 2;
pub const CONTEXT_POP: u8 = 3;
/// As a pop, if the context is the current one.
pub const CONTEXT_DROP: u8 = 4;

pub const MEMORY_CALL: u32 = 1;
pub const MEMORY_SITE: u32 = 2;
pub const MEMORY_KERNEL: u32 = 3;
pub const WORK_CALL: u32 = 4;

/// What one call did to memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryCall {
    pub kind: u32,
    pub row: u32,
    pub entered: u64,
    pub returned: u64,
    pub context: u64,
    pub site: u64,
    pub bytes: u64,
    pub tgid: u32,
    pub tid: u32,
    pub result: i32,
    pub unreadable: u8,
    pub pad: [u8; 3],
    pub part: [u64; PARTS],
}

impl MemoryCall {
    /// Reads a record; `None` when `bytes` is too short or of another kind.
    pub fn parse(bytes: &[u8]) -> Option<MemoryCall> {
        if bytes.len() < size_of::<MemoryCall>() || u32_at(bytes, 0) != MEMORY_CALL {
            return None;
        }
        Some(MemoryCall {
            kind: MEMORY_CALL,
            row: u32_at(bytes, 4),
            entered: u64_at(bytes, 8),
            returned: u64_at(bytes, 16),
            context: u64_at(bytes, 24),
            site: u64_at(bytes, 32),
            bytes: u64_at(bytes, 40),
            tgid: u32_at(bytes, 48),
            tid: u32_at(bytes, 52),
            result: u32_at(bytes, 56) as i32,
            unreadable: bytes[60],
            pad: [0; 3],
            part: std::array::from_fn(|part| u64_at(bytes, 64 + part * 8)),
        })
    }
}

/// Memory calls of one process that found their ring full.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryLoss {
    pub allocations: u64,
    pub bytes: u64,
    pub others: u64,
}
