//! What is counted of each function: calls, failures, time and bytes, and what was lost.

use super::bytes::u64_at;

pub const BUCKETS: usize = 128;

/// In an attach cookie: how the kernel runs the instruction at the probe.
pub const COOKIE_STEPPED: u64 = 1 << 48;
pub const COOKIE_NOP5: u64 = 1 << 49;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TotalKey {
    pub tgid: u32,
    pub row: u32,
    pub variant: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
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

impl Total {
    /// No call.
    pub const NONE: Total = Total {
        untimed: 0,
        errors: 0,
        total_ns: 0,
        max_ns: 0,
        bytes: 0,
        bucket: [0; BUCKETS],
    };

    /// Calls that have ended.
    pub fn calls(&self) -> u64 {
        self.untimed + self.bucket.iter().sum::<u64>()
    }

    /// Adds what another process or kernel has counted.
    pub fn add(&mut self, other: &Total) {
        self.untimed += other.untimed;
        self.errors += other.errors;
        self.total_ns += other.total_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        self.bytes = self.bytes.wrapping_add(other.bytes);
        for (sum, more) in self.bucket.iter_mut().zip(other.bucket) {
            *sum += more;
        }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FailureKey {
    pub tgid: u32,
    pub row: u32,
    pub code: i32,
    pub pad: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowCounter {
    pub entered: u64,
    pub lost: u64,
    pub no_frame: u64,
    /// Of the entered ones: at a site whose instruction is single-stepped.
    pub stepped: u64,
    /// The same: at a nop of five bytes.
    pub nop5: u64,
    /// Calls that returned, and were entered before calls counted; not among the entered ones.
    pub before: u64,
}

impl RowCounter {
    /// This plus the counter whose bytes are `bytes`.
    pub fn plus(self, bytes: &[u8]) -> RowCounter {
        RowCounter {
            entered: self.entered + u64_at(bytes, 0),
            lost: self.lost + u64_at(bytes, 8),
            no_frame: self.no_frame + u64_at(bytes, 16),
            stepped: self.stepped + u64_at(bytes, 24),
            nop5: self.nop5 + u64_at(bytes, 32),
            before: self.before + u64_at(bytes, 40),
        }
    }
}
