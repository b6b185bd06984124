//! Notices of what processes and threads do, and how many of them can be selected or wait.

use super::bytes::{u32_at, u64_at};
use std::mem::offset_of;

pub const COMM: usize = 16;
pub const COMMS: usize = 4;

/// Library loads that can wait at the same time.
pub const WAITS: usize = 64;

/// It waits until it is acknowledged.
pub const WAITS_HERE: u32 = 1;
/// It goes on: all that it maps has been looked at before.
pub const WAITS_FOR_NONE: u32 = 2;

/// How long one waits in the kernel at most.
pub const WAIT_NS: u64 = 1_000_000_000;

pub const NOTICE_THREAD: u32 = 1;
pub const NOTICE_FORK: u32 = 2;
pub const NOTICE_EXEC: u32 = 3;
pub const NOTICE_EXIT: u32 = 4;
pub const NOTICE_LIBRARY: u32 = 5;

/// Open calls that a notice names.
pub const OPEN: usize = 4;

/// A call that has not returned; `entered` 0: none.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenCall {
    pub entered: u64,
    pub row: u32,
    pub pad: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notice {
    pub kind: u32,
    pub tgid: u32,
    pub tid: u32,
    pub parent: u32,
    pub at: u64,
    pub sequence: u64,
    /// The key of where it runs; 0: not known.
    pub place: u64,
    /// What its thread does: `WAITS_HERE`, `WAITS_FOR_NONE` or 0.
    pub waits: u32,
    pub pad: u32,
    pub comm: [u8; COMM],
    /// Of a library: the calls that its thread is in, the outermost first.
    pub open: [OpenCall; OPEN],
}

impl Notice {
    /// Reads a notice; `None` when `bytes` is too short.
    pub fn parse(bytes: &[u8]) -> Option<Notice> {
        if bytes.len() < size_of::<Notice>() {
            return None;
        }
        let mut comm = [0; COMM];
        let start = offset_of!(Notice, comm);
        comm.copy_from_slice(&bytes[start..start + COMM]);
        Some(Notice {
            kind: u32_at(bytes, offset_of!(Notice, kind)),
            tgid: u32_at(bytes, offset_of!(Notice, tgid)),
            tid: u32_at(bytes, offset_of!(Notice, tid)),
            parent: u32_at(bytes, offset_of!(Notice, parent)),
            at: u64_at(bytes, offset_of!(Notice, at)),
            sequence: u64_at(bytes, offset_of!(Notice, sequence)),
            place: u64_at(bytes, offset_of!(Notice, place)),
            waits: u32_at(bytes, offset_of!(Notice, waits)),
            pad: 0,
            comm,
            open: std::array::from_fn(|index| {
                let start = offset_of!(Notice, open) + index * size_of::<OpenCall>();
                OpenCall {
                    entered: u64_at(bytes, start),
                    row: u32_at(bytes, start + 8),
                    pad: 0,
                }
            }),
        })
    }
}

/// Bytes of the names of cgroups, and of one of them.
pub const CGROUP: usize = 1024;
pub const CGROUP_NAME: usize = 256;

/// The names of the cgroups that a process lies in, in each hierarchy that is looked at: the unified one and up to
/// three of cgroup v1. The innermost first; `None`: they were not all written, or are too long to be known.
pub fn cgroups(bytes: &[u8]) -> Option<Vec<Vec<&[u8]>>> {
    let (length, cut) = (u32_at(bytes, 0) as usize, u32_at(bytes, 4));
    let text = bytes.get(8..8 + length).filter(|text| !text.is_empty() && cut == 0)?;
    let (mut hierarchies, mut names) = (Vec::new(), Vec::new());
    for name in text.strip_suffix(&[0])?.split(|byte| *byte == 0) {
        match name {
            [] => hierarchies.push(std::mem::take(&mut names)),
            name => names.push(name),
        }
    }
    Some(hierarchies)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn path(text: &[u8]) -> Vec<u8> {
        [&(text.len() as u32).to_le_bytes(), [0; 4].as_slice(), text, &[7; 32]].concat()
    }

    #[test]
    fn names_of_each_hierarchy_end_where_the_next_one_begins() {
        let bytes = path(b"step_0\0job_42\0\0\0a\0\0\0");
        let expected: Vec<Vec<&[u8]>> = vec![vec![b"step_0", b"job_42"], vec![], vec![b"a"], vec![]];
        assert_eq!(cgroups(&bytes), Some(expected));
        assert_eq!(cgroups(&path(b"\0\0\0\0")), Some(vec![vec![]; 4]), "at the root of all");
    }

    #[test]
    fn what_is_being_written_or_was_too_long_is_not_known() {
        assert_eq!(cgroups(&path(b"")), None);
        let mut cut = path(b"a\0\0\0\0\0");
        cut[4] = 1;
        assert_eq!(cgroups(&cut), None);
        assert_eq!(cgroups(&path(b"a\0\0\0\0\0")[..10]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(bytes in proptest::collection::vec(any::<u8>(), 0..80), length in 0u8..90) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() {
                *first = length;
            }
            let _ = cgroups(&bytes);
        }
    }
}
