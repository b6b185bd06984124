//! What a framework's own allocator keeps: the driver's allocations that it hands blocks out of.
//!
//! A range of device memory counts as a segment once a block was seen in it.

use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy)]
struct Range {
    bytes: u64,
    /// A block was seen in it.
    used: bool,
}

/// Ranges of device addresses, by start.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    ranges: BTreeMap<u64, Range>,
    held_bytes: u64,
    count: u64,
    peak_bytes: u64,
}

impl Segments {
    /// The driver made a range.
    pub fn add(&mut self, start: u64, bytes: u64) {
        self.remove(start);
        self.ranges.insert(start, Range { bytes, used: false });
    }

    /// It took it back.
    pub fn remove(&mut self, start: u64) {
        if let Some(range) = self.ranges.remove(&start).filter(|range| range.used) {
            self.held_bytes = self.held_bytes.saturating_sub(range.bytes);
            self.count = self.count.saturating_sub(1);
        }
    }

    /// It took back all that is not in `kept`.
    pub fn retain(&mut self, mut kept: impl FnMut(u64) -> bool) {
        let gone: Vec<u64> = self.ranges.keys().copied().filter(|start| !kept(*start)).collect();
        for start in gone {
            self.remove(start);
        }
    }

    /// A block was handed out. Whether all of it lies in known ranges.
    pub(crate) fn hand_out(&mut self, address: u64, bytes: u64) -> bool {
        let end = address.saturating_add(bytes.max(1));
        let first = self
            .ranges
            .range(..=address)
            .next_back()
            .map_or(address, |(start, _)| *start);
        let mut covered = address;
        for (start, range) in self.ranges.range_mut(first..end) {
            let range_end = start.saturating_add(range.bytes);
            if *start > covered || range_end <= address {
                continue;
            }
            covered = covered.max(range_end);
            if !range.used {
                range.used = true;
                self.held_bytes = self.held_bytes.saturating_add(range.bytes);
                self.count += 1;
            }
        }
        self.peak_bytes = self.peak_bytes.max(self.held_bytes);
        covered > address && covered >= end
    }

    /// Number and bytes of segments, and the most bytes there were.
    pub fn totals(&self) -> (u64, u64, u64) {
        (self.count, self.held_bytes, self.peak_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_a_segment_once_a_block_was_seen_in_it() {
        let mut segments = Segments::default();
        segments.add(0x1000, 0x1000);
        segments.add(0x2000, 0x1000);
        assert_eq!(segments.totals(), (0, 0, 0));
        assert!(segments.hand_out(0x1800, 0x100));
        assert_eq!(segments.totals(), (1, 0x1000, 0x1000));
        segments.remove(0x1000);
        assert_eq!(segments.totals(), (0, 0, 0x1000));
    }

    #[test]
    fn a_block_may_lie_across_ranges_that_follow_each_other() {
        let mut segments = Segments::default();
        segments.add(0x1000, 0x1000);
        segments.add(0x2000, 0x1000);
        assert!(segments.hand_out(0x1f00, 0x200));
        assert_eq!(segments.totals().0, 2);
        assert!(!segments.hand_out(0x2f00, 0x200), "it ends outside");
        assert!(!segments.hand_out(0x9000, 1));
        assert!(!segments.hand_out(u64::MAX, u64::MAX));
    }
}
