//! Notices of what processes and threads do, and how many of them can be selected or wait.

use super::bytes::{u32_at, u64_at};

pub const COMM: usize = 16;
pub const COMMS: usize = 4;

/// Library loads that can wait at the same time.
pub const WAITS: usize = 64;

pub const NOTICE_THREAD: u32 = 1;
pub const NOTICE_FORK: u32 = 2;
pub const NOTICE_EXEC: u32 = 3;
pub const NOTICE_EXIT: u32 = 4;
pub const NOTICE_LIBRARY: u32 = 5;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notice {
    pub kind: u32,
    pub tgid: u32,
    pub tid: u32,
    pub parent: u32,
    pub at: u64,
    pub sequence: u64,
    pub comm: [u8; COMM],
}

impl Notice {
    /// Reads a notice; `None` when `bytes` is too short.
    pub fn parse(bytes: &[u8]) -> Option<Notice> {
        if bytes.len() < size_of::<Notice>() {
            return None;
        }
        let mut comm = [0; COMM];
        comm.copy_from_slice(&bytes[32..32 + COMM]);
        Some(Notice {
            kind: u32_at(bytes, 0),
            tgid: u32_at(bytes, 4),
            tid: u32_at(bytes, 8),
            parent: u32_at(bytes, 12),
            at: u64_at(bytes, 16),
            sequence: u64_at(bytes, 24),
            comm,
        })
    }
}
