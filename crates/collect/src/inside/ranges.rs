//! Ranges of a process that are open, as they lie in its memory: records of those that never end.

use super::arena::{BLOCK_RANGES, MOST_STARTED, PROCESS_STARTED};
use super::memory::SharedMemory;
use super::ring::block;
use crate::wire::{
    MOST_OPEN_RANGES, OpenRange, OpenRanges, RANGE_DOMAIN, RANGE_NAME, RANGE_OPEN, RangeRecord, STARTED_BUSY,
    StartedRange, bytes_of,
};
use std::mem::offset_of;

/// Of the first `blocks` threads, and those that are nobody's.
pub(super) fn open(memory: &SharedMemory, blocks: u32, now: u64) -> Vec<Vec<u8>> {
    let pushed = (0..blocks).flat_map(|number| pushed(memory, block(number) + BLOCK_RANGES));
    let started = (0..u64::from(MOST_STARTED)).filter_map(|number| started(memory, number));
    pushed.chain(started).map(|range| record_of(&range, now)).collect()
}

fn pushed(memory: &SharedMemory, at: u64) -> impl Iterator<Item = OpenRange> {
    let depth: u32 = memory.get(at + offset_of!(OpenRanges, depth) as u64);
    let first = at + offset_of!(OpenRanges, range) as u64;
    let stride = size_of::<OpenRange>() as u64;
    (0..u64::from(depth.min(MOST_OPEN_RANGES))).map(move |number| memory.get(first + number * stride))
}

fn started(memory: &SharedMemory, number: u64) -> Option<OpenRange> {
    let at = PROCESS_STARTED + number * size_of::<StartedRange>() as u64;
    let id: u64 = memory.get(at);
    (id > STARTED_BUSY).then(|| memory.get::<StartedRange>(at).range)
}

/// What its end would have submitted.
fn record_of(range: &OpenRange, now: u64) -> Vec<u8> {
    let name = usize::from(range.record.name_bytes).min(RANGE_NAME);
    let domain = usize::from(range.record.domain_bytes).min(RANGE_DOMAIN);
    let record = RangeRecord {
        end: now,
        end_tid: range.record.tid,
        flags: range.record.flags | RANGE_OPEN,
        name_bytes: name as u16,
        domain_bytes: domain as u8,
        ..range.record
    };
    [
        bytes_of(&record),
        &range.text[..name],
        &range.text[RANGE_NAME..RANGE_NAME + domain],
    ]
    .concat()
}
