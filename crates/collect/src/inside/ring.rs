//! Records out of the rings of a process's threads, in the order in which they were submitted.
//!
//! Owns until when that order is known: a thread that is within a hook may yet submit something older than what others have submitted,
//! so what is younger than its hook waits. What a ring holds is a program's and may be anything.

use super::arena::{
    BLOCK_BYTES, BLOCK_RING, Block, LARGE_RINGS, PROCESS_BLOCKS, PROCESS_LARGE_RINGS, RING_BYTES_OF_MANY,
};
use super::arena::{ProcessHead, RING_FILLER, RING_MOST, RingRecord};
use super::memory::SharedMemory;
use super::pending::{Pending, Submitted};
use std::mem::offset_of;
use std::sync::atomic::Ordering;

/// In a hook, and its time not known yet.
const NOT_KNOWN: u64 = 1;
/// How long what a processor has written may take to be seen by others.
const SEEN_WITHIN_NS: u64 = 1_000_000;
/// A hook that takes as long belongs to a thread that is no more: agents wait for room for two seconds at most.
pub(super) const LONGEST_HOOK_NS: u64 = 3_000_000_000;
/// A ring is given back in so many parts: who fills it does not wait for all of it to be read.
const PARTS: u64 = 16;
/// Records are as long at most.
const LONGEST_RECORD: u64 = 1 << 16;

/// Where a thread's block lies.
pub(super) fn block(number: u32) -> u64 {
    PROCESS_BLOCKS + u64::from(number) * BLOCK_BYTES
}

/// Where the ring of a thread lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    block: u64,
    at: u64,
    bytes: u64,
}

/// How far the ring of a block was read.
#[derive(Debug, Default, Clone)]
struct Reader {
    tail: u64,
    /// What its thread was told of that.
    told: u64,
}

/// The rings of one process.
#[derive(Debug)]
pub(super) struct Rings {
    /// Bytes of each of the first threads' rings.
    large: u64,
    readers: Vec<Reader>,
    /// What is not old enough.
    pending: Pending,
    /// Rings that held what is no record.
    pub malformed: u64,
}

impl Rings {
    /// Those of the first threads have so many bytes each, a power of two.
    pub(super) fn of(large: u64) -> Rings {
        Rings {
            large,
            readers: Vec::new(),
            pending: Pending::default(),
            malformed: 0,
        }
    }

    /// Hands what may be taken at `now`, in order, of the first `blocks` threads to `take`. `None`: nobody will submit any more.
    pub(super) fn take(
        &mut self,
        memory: &SharedMemory,
        blocks: u32,
        now: Option<u64>,
        take: &mut dyn FnMut(Submitted<'_>),
    ) {
        self.readers.resize(blocks as usize, Reader::default());
        let until = now.map_or(u64::MAX, |now| until(memory, blocks, now));
        for (number, reader) in self.readers.iter_mut().enumerate() {
            let place = place(number as u32, self.large);
            if !reader.read(memory, place, &mut self.pending) {
                self.malformed += 1;
            }
        }
        let rounds = memory.word(offset_of!(ProcessHead, rounds) as u64);
        rounds.fetch_add(1, Ordering::Relaxed);
        self.pending.hand_out(until, take);
    }

    /// How full the fullest ring is, in hundredths.
    pub(super) fn fill(&self, memory: &SharedMemory) -> u64 {
        let fills = self.readers.iter().enumerate().map(|(number, reader)| {
            let place = place(number as u32, self.large);
            let head = memory.now(place.block + offset_of!(Block, head) as u64);
            head.wrapping_sub(reader.tail).saturating_mul(100) / place.bytes
        });
        fills.max().unwrap_or(0)
    }
}

/// Where the ring of a thread lies if those of the first ones have `large` bytes.
fn place(number: u32, large: u64) -> Place {
    let block = block(number);
    match number < LARGE_RINGS {
        true => Place {
            block,
            at: PROCESS_LARGE_RINGS + u64::from(number) * RING_MOST,
            bytes: large,
        },
        false => Place {
            block,
            at: block + BLOCK_RING,
            bytes: RING_BYTES_OF_MANY,
        },
    }
}

/// What was submitted before this time has all been seen.
fn until(memory: &SharedMemory, blocks: u32, now: u64) -> u64 {
    let seen = now.saturating_sub(SEEN_WITHIN_NS);
    oldest_hook(memory, blocks, now).map_or(seen, |since| seen.min(since))
}

/// When the hook began that a thread has been in for longest, 0: it may have been any time; `None`: all are outside.
pub(super) fn oldest_hook(memory: &SharedMemory, blocks: u32, now: u64) -> Option<u64> {
    let hooks = (0..blocks).filter_map(|number| {
        let busy = memory.now(block(number) + offset_of!(Block, busy) as u64);
        match busy {
            0 => None,
            NOT_KNOWN => Some(0),
            // whoever is in a hook for so long was ended there
            since if now.saturating_sub(since) > LONGEST_HOOK_NS => None,
            since => Some(since),
        }
    });
    hooks.min()
}

impl Reader {
    /// Appends what the ring holds. False: it held something else.
    fn read(&mut self, memory: &SharedMemory, place: Place, into: &mut Pending) -> bool {
        let head = memory.now(place.block + offset_of!(Block, head) as u64);
        // it changes when all was read and nowhere else, so that it is that of what lies between tail and head
        let base = memory.now(place.block + offset_of!(Block, base) as u64);
        let is_whole =
            head.wrapping_sub(self.tail) <= place.bytes && self.read_up_to(memory, place, (base, head), into);
        self.tail = head;
        self.tell(memory, place);
        is_whole
    }

    /// Has the thread write where we have read.
    fn tell(&mut self, memory: &SharedMemory, place: Place) {
        let tail = memory.word(place.block + offset_of!(Block, tail) as u64);
        tail.store(self.tail, Ordering::Release);
        self.told = self.tail;
    }

    fn read_up_to(
        &mut self,
        memory: &SharedMemory,
        place: Place,
        (base, head): (u64, u64),
        into: &mut Pending,
    ) -> bool {
        let size = place.bytes;
        while self.tail != head {
            let at = self.tail.wrapping_sub(base) & (size - 1);
            let record: RingRecord = memory.get(place.at + at);
            let bytes = u64::from(record.bytes);
            let whole = (size_of::<RingRecord>() as u64 + bytes).next_multiple_of(16);
            let is_filler = record.stream == RING_FILLER;
            let is_too_long = bytes > LONGEST_RECORD && !is_filler;
            if at + whole > size || whole > head.wrapping_sub(self.tail) || is_too_long {
                return false;
            }
            if !is_filler {
                let from = place.at + at + size_of::<RingRecord>() as u64;
                into.push(record.stamp, record.stream, record.bytes, |to| memory.copy(from, to));
            }
            self.tail = self.tail.wrapping_add(whole);
            if self.tail.wrapping_sub(self.told) > size / PARTS {
                self.tell(memory, place);
            }
        }
        true
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::inside::arena::{PROCESS_BYTES, RING_BYTES};
    use proptest::prelude::*;

    /// A process with two threads.
    fn memory() -> SharedMemory {
        SharedMemory::make(PROCESS_BYTES).expect("memory")
    }

    fn rings() -> Rings {
        Rings::of(RING_BYTES)
    }

    pub(in crate::inside) fn submit(memory: &SharedMemory, thread: u32, stamp: u64, bytes: &[u8]) {
        let head_at = block(thread) + offset_of!(Block, head) as u64;
        let head = memory.now(head_at);
        let at = place(thread, RING_BYTES).at + (head & (RING_BYTES - 1));
        let record = RingRecord {
            bytes: bytes.len() as u32,
            stream: 0,
            stamp,
        };
        memory.set(at, &record);
        memory.put(at + 16, bytes);
        let whole = (16 + bytes.len() as u64).next_multiple_of(16);
        memory.word(head_at).store(head + whole, Ordering::Release);
    }

    fn busy(memory: &SharedMemory, thread: u32, since: u64) {
        let at = block(thread) + offset_of!(Block, busy) as u64;
        memory.word(at).store(since, Ordering::Release);
    }

    type Taken = Vec<(u64, Vec<u8>)>;

    fn take(rings: &mut Rings, memory: &SharedMemory, now: Option<u64>) -> Taken {
        let mut taken = Vec::new();
        rings.take(memory, 2, now, &mut |record| {
            taken.push((record.stamp, record.bytes.to_vec()))
        });
        taken
    }

    fn stamps(taken: &[(u64, Vec<u8>)]) -> Vec<u64> {
        taken.iter().map(|(stamp, _)| *stamp).collect()
    }

    const LATER: u64 = 1_000_000_000;

    #[test]
    fn records_of_two_threads_come_in_the_order_of_their_times() {
        let (memory, mut rings) = (memory(), rings());
        submit(&memory, 0, 10, b"one");
        submit(&memory, 0, 30, b"three");
        submit(&memory, 1, 20, b"two");
        let taken = take(&mut rings, &memory, Some(LATER));
        assert_eq!(stamps(&taken), [10, 20, 30]);
        assert_eq!(taken[1].1, b"two");
        assert_eq!(take(&mut rings, &memory, Some(LATER)), Taken::new());
    }

    #[test]
    fn what_is_younger_than_a_hook_waits_for_what_that_may_submit() {
        let (memory, mut rings) = (memory(), rings());
        submit(&memory, 0, 10, b"");
        submit(&memory, 0, 30, b"");
        busy(&memory, 1, 20);
        assert_eq!(stamps(&take(&mut rings, &memory, Some(LATER))), [10]);
        submit(&memory, 1, 21, b"");
        busy(&memory, 1, 0);
        assert_eq!(stamps(&take(&mut rings, &memory, Some(LATER))), [21, 30]);
    }

    #[test]
    fn a_thread_that_was_ended_in_a_hook_holds_nobody_up_for_ever() {
        let (memory, mut rings) = (memory(), rings());
        busy(&memory, 1, 5);
        submit(&memory, 0, 10, b"");
        assert_eq!(stamps(&take(&mut rings, &memory, Some(100))), [0u64; 0]);
        let later = LONGEST_HOOK_NS + SEEN_WITHIN_NS + 100;
        assert_eq!(stamps(&take(&mut rings, &memory, Some(later))), [10]);
    }

    #[test]
    fn what_was_submitted_a_moment_ago_waits_for_others() {
        let (memory, mut rings) = (memory(), rings());
        submit(&memory, 0, LATER, b"");
        assert_eq!(stamps(&take(&mut rings, &memory, Some(LATER))), [0u64; 0]);
        assert_eq!(stamps(&take(&mut rings, &memory, None)), [LATER]);
    }

    #[test]
    fn a_ring_that_was_read_may_begin_anew() {
        let (memory, mut rings) = (memory(), rings());
        submit(&memory, 0, 10, b"first");
        assert_eq!(stamps(&take(&mut rings, &memory, Some(LATER))), [10]);
        let place = place(0, RING_BYTES);
        let head_at = place.block + offset_of!(Block, head) as u64;
        let head = memory.now(head_at);
        memory.set(place.block + offset_of!(Block, base) as u64, &head);
        memory.set(
            place.at,
            &RingRecord {
                bytes: 6,
                stream: 0,
                stamp: 20,
            },
        );
        memory.put(place.at + 16, b"second");
        memory.word(head_at).store(head + 32, Ordering::Release);
        let taken = take(&mut rings, &memory, Some(LATER));
        assert_eq!(taken, [(20, b"second".to_vec())]);
    }

    #[test]
    fn a_thread_may_write_on_before_all_of_its_ring_was_read() {
        let (memory, mut into) = (memory(), Pending::default());
        let place = place(0, RING_BYTES);
        let record = vec![0; 1 << 15];
        (0..RING_BYTES >> 16).for_each(|stamp| submit(&memory, 0, stamp, &record));
        let head = memory.now(place.block + offset_of!(Block, head) as u64);
        let mut reader = Reader::default();
        assert!(reader.read_up_to(&memory, place, (0, head), &mut into));
        let told = memory.now(place.block + offset_of!(Block, tail) as u64);
        assert!(
            told > 0 && head - told <= RING_BYTES / PARTS + (1 << 16),
            "{told} of {head}"
        );
    }

    proptest! {
        #[test]
        fn any_bytes_of_a_ring_are_read_within_its_bounds(
            bytes in proptest::collection::vec(any::<u8>(), 0..4096),
            head: u64,
            base: u64,
        ) {
            let (memory, mut rings) = (memory(), rings());
            memory.set(block(0) + offset_of!(Block, base) as u64, &base);
            memory.put(place(0, RING_BYTES).at, &bytes);
            memory.word(block(0) + offset_of!(Block, head) as u64).store(head, Ordering::Release);
            let taken = take(&mut rings, &memory, None);
            let sum: usize = taken.iter().map(|(_, bytes)| bytes.len()).sum();
            prop_assert!(sum as u64 <= RING_BYTES);
            prop_assert_eq!(rings.readers[0].tail, head);
        }
    }
}
