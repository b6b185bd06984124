//! What is counted of each function: calls, failures, time and bytes, and what was lost.

use super::bytes::{read, zero};
use super::generated::*;

/// In place of a process where the table of totals is full.
pub const BEYOND_CAPACITY: u32 = 0;

impl Total {
    /// No call.
    pub const NONE: Total = zero();

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

impl RowCounter {
    /// This plus the counter whose bytes are `bytes`.
    pub fn plus(self, bytes: &[u8]) -> RowCounter {
        let other: RowCounter = read(bytes).unwrap_or_default();
        RowCounter {
            entered: self.entered.saturating_add(other.entered),
            lost: self.lost.saturating_add(other.lost),
            no_frame: self.no_frame.saturating_add(other.no_frame),
            stepped: self.stepped.saturating_add(other.stepped),
            nop5: self.nop5.saturating_add(other.nop5),
            before: self.before.saturating_add(other.before),
        }
    }
}
