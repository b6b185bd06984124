//! Tables that agents write: their entries, and the sums over threads and processes.
//!
//! Owns how the values of one key are put together. Whoever writes a table may write anything: what is read here is bounded by
//! the shape that we have given it.

use super::arena::{Table as TableHead, TableEntry, TableShape};
use super::memory::SharedMemory;
use crate::engine::Table;
use crate::wire::{self, bytes_of};
use std::collections::HashMap;
use std::mem::offset_of;
use std::sync::atomic::Ordering;

/// Values by key.
pub(super) type Entries = HashMap<Vec<u8>, Vec<u8>>;

/// Calls `each` with the keys and values of a table that lies `base` bytes behind the beginning of `memory`.
pub(super) fn for_each(memory: &SharedMemory, base: u64, shape: &TableShape, each: &mut dyn FnMut(&[u8], &[u8])) {
    let head: TableHead = memory.get(base + shape.offset);
    let mut key = vec![0; shape.key_bytes as usize];
    let mut value = vec![0; shape.value_bytes as usize];
    for number in 0..u64::from(head.used.min(shape.most)) {
        let at = base + shape.first() + number * shape.stride();
        if memory.get::<TableEntry>(at).in_use == 0 {
            continue;
        }
        memory.copy(at + size_of::<TableEntry>() as u64, &mut key);
        memory.copy(at + shape.value_at(), &mut value);
        each(&key, &value);
    }
}

/// The hash of a key, as agents compute it.
fn hash_of(key: &[u8]) -> u64 {
    key.chunks(8).fold(0, |hash: u64, word| {
        let mut bytes = [0; 8];
        bytes[..word.len()].copy_from_slice(word);
        let mixed = (hash ^ u64::from_ne_bytes(bytes)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ (mixed >> 32)
    })
}

/// Adds an entry to a table that nobody else adds to, or changes the value of one. False: there is no room.
pub(super) fn insert(memory: &SharedMemory, shape: &TableShape, key: &[u8], value: &[u8]) -> bool {
    let index = shape.offset + size_of::<TableHead>() as u64;
    let mask = u64::from(shape.slots) - 1;
    let used_at = shape.offset + offset_of!(TableHead, used) as u64;
    let hash = hash_of(key);
    for turn in 0..u64::from(shape.slots) {
        let slot = memory.half(index + ((hash.wrapping_add(turn)) & mask) * 4);
        let number = slot.load(Ordering::Acquire);
        if number != 0 {
            let at = shape.first() + u64::from(number - 1) * shape.stride();
            let mut known = vec![0; key.len()];
            memory.copy(at + size_of::<TableEntry>() as u64, &mut known);
            if known == key {
                memory.put(at + shape.value_at(), value);
                return true;
            }
            continue;
        }
        let used = memory.half(used_at).load(Ordering::Acquire);
        if used >= shape.most {
            return false;
        }
        let at = shape.first() + u64::from(used) * shape.stride();
        memory.put(at + size_of::<TableEntry>() as u64, key);
        memory.put(at + shape.value_at(), value);
        memory.put(at, bytes_of(&TableEntry { in_use: 1, next: 0 }));
        memory.half(used_at).store(used + 1, Ordering::Release);
        slot.store(used + 1, Ordering::Release);
        return true;
    }
    false
}

/// How two values of one key become one.
fn put_together(table: Table, sum: &mut [u8], other: &[u8]) {
    for (index, (to, from)) in sum.chunks_exact_mut(8).zip(other.chunks_exact(8)).enumerate() {
        let (one, two) = (word(to), word(from));
        let both = match is_largest(table, index) {
            true => one.max(two),
            false => one.wrapping_add(two),
        };
        to.copy_from_slice(&both.to_ne_bytes());
    }
}

fn word(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_ne_bytes)
}

/// Whether word `index` of a value is the largest of its kind, and no sum.
fn is_largest(table: Table, index: usize) -> bool {
    let at = index * 8;
    match table {
        Table::Totals => at == offset_of!(wire::Total, max_ns),
        Table::Aggregates => at == offset_of!(wire::Aggregate, largest) || at == offset_of!(wire::Aggregate, smallest),
        _ => false,
    }
}

/// Whether values of one key are added up; else the newest counts.
fn adds_up(table: Table) -> bool {
    matches!(
        table,
        Table::Totals | Table::Failures | Table::Shapes | Table::Aggregates | Table::WorkLosses | Table::MemoryLosses
    )
}

/// Adds a value to those of its key.
pub(super) fn add(table: Table, entries: &mut Entries, key: &[u8], value: &[u8]) {
    match entries.get_mut(key) {
        Some(sum) if adds_up(table) => put_together(table, sum, value),
        Some(old) => old.copy_from_slice(value),
        None => drop(entries.insert(key.to_vec(), value.to_vec())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Total, read, zero};

    #[test]
    fn totals_of_threads_are_added_and_the_longest_call_is_the_longest_of_all() {
        let mut entries = Entries::new();
        for (calls, longest) in [(3, 50), (4, 70), (5, 60)] {
            let total = Total {
                untimed: calls,
                max_ns: longest,
                ..zero()
            };
            add(Table::Totals, &mut entries, &[1], bytes_of(&total));
        }
        let sum: Total = read(&entries[&vec![1]]).expect("a total");
        assert_eq!((sum.untimed, sum.max_ns), (12, 70));
    }

    #[test]
    fn what_is_no_sum_is_the_newest() {
        let mut entries = Entries::new();
        add(Table::KnownSites, &mut entries, &[1], &7u32.to_ne_bytes());
        add(Table::KnownSites, &mut entries, &[1], &8u32.to_ne_bytes());
        assert_eq!(entries[&vec![1]], 8u32.to_ne_bytes());
    }

    #[test]
    fn any_bytes_of_a_table_are_read_within_its_bounds() {
        let memory = SharedMemory::make(1 << 16).expect("memory");
        memory.put(0, &vec![0xff; 1 << 16]);
        let shape = TableShape {
            offset: 0,
            most: 100,
            slots: 256,
            key_bytes: 12,
            value_bytes: 20,
        };
        let mut count = 0;
        for_each(&memory, 0, &shape, &mut |key, value| {
            assert_eq!((key.len(), value.len()), (12, 20));
            count += 1;
        });
        assert_eq!(count, 100);
    }
}
