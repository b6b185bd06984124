//! Small tables that never grow beyond a bound, whatever a trace holds.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Numbers that nobody chooses to collide with each other need no better hash.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Quick(u64);

const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

impl Quick {
    fn mix(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(ODD);
    }
}

impl Hasher for Quick {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        // four at a time, as none waits for another: stacks are long
        let mut lanes = [Quick(1), Quick(2), Quick(3), Quick(4)];
        let mut blocks = bytes.chunks_exact(32);
        for block in blocks.by_ref() {
            for (lane, bytes) in lanes.iter_mut().zip(block.chunks_exact(8)) {
                lane.mix(word(bytes));
            }
        }
        lanes.iter().for_each(|lane| self.mix(lane.0));
        let mut words = blocks.remainder().chunks_exact(8);
        for bytes in words.by_ref() {
            self.mix(word(bytes));
        }
        let mut rest = [0; 8];
        rest[..words.remainder().len()].copy_from_slice(words.remainder());
        self.mix(u64::from_le_bytes(rest) ^ bytes.len() as u64);
    }

    fn write_u32(&mut self, word: u32) {
        self.mix(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        self.mix(word);
    }
}

/// The hash of a text.
#[must_use]
pub(crate) fn hash(text: &str) -> u64 {
    let mut quick = Quick::default();
    quick.write(text.as_bytes());
    quick.finish()
}

/// A map of at most so many entries; what comes when it is full is not kept.
#[derive(Debug, Clone)]
pub struct Bounded<T> {
    most: usize,
    map: HashMap<u64, T, BuildHasherDefault<Quick>>,
    /// Something was not kept.
    pub overflowed: bool,
}

impl<T> Bounded<T> {
    /// Of at most `most` entries.
    #[must_use]
    pub(crate) fn new(most: usize) -> Bounded<T> {
        Bounded {
            most,
            map: HashMap::default(),
            overflowed: false,
        }
    }

    /// The entry of `key`, made if there is room.
    pub fn entry(&mut self, key: u64) -> Option<&mut T>
    where
        T: Default,
    {
        if self.map.len() >= self.most && !self.map.contains_key(&key) {
            self.overflowed = true;
            return None;
        }
        Some(self.map.entry(key).or_default())
    }

    /// The entry of `key`, if there is one.
    #[must_use]
    pub fn get(&self, key: u64) -> Option<&T> {
        self.map.get(&key)
    }

    /// As [`Self::get`], to be changed.
    pub fn get_mut(&mut self, key: u64) -> Option<&mut T> {
        self.map.get_mut(&key)
    }

    /// Takes an entry out.
    pub fn remove(&mut self, key: u64) -> Option<T> {
        self.map.remove(&key)
    }

    /// All values, to be changed, in no order.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.map.values_mut()
    }

    /// All entries, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.map.iter().map(|(key, value)| (*key, value))
    }
}

/// Sums that never overflow, whatever a recording says.
pub(crate) trait Grow {
    /// Adds, as far as there is room.
    fn grow(&mut self, by: u64);
}

impl Grow for u64 {
    fn grow(&mut self, by: u64) {
        *self = self.saturating_add(by);
    }
}

/// Whether `part` is at least so many per cent of `whole`.
#[must_use]
pub(crate) fn is_percent(part: u64, whole: u64, percent: u64) -> bool {
    u128::from(part) * 100 >= u128::from(whole) * u128::from(percent)
}

/// `part` of `whole` in per cent.
#[must_use]
pub(crate) fn percent_of(part: u64, whole: u64) -> u64 {
    u64::try_from(u128::from(part) * 100 / u128::from(whole.max(1))).unwrap_or(u64::MAX)
}

/// Two numbers as one key.
#[must_use]
pub(crate) fn pair(pid: u32, other: u64) -> u64 {
    other ^ (u64::from(pid) << 48).wrapping_mul(ODD | 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_when_a_table_is_full_is_not_kept_and_said() {
        let mut table = Bounded::<u64>::new(2);
        for key in [1, 2, 3, 1] {
            if let Some(value) = table.entry(key) {
                *value += 1;
            }
        }
        assert_eq!((table.get(1), table.get(2), table.get(3)), (Some(&2), Some(&1), None));
        assert!(table.overflowed);
    }

    #[test]
    fn texts_differ_by_any_byte_and_by_length() {
        let texts = ["", "\0", "a", "aaaaaaaa", "aaaaaaab", "aaaaaaaaa", "aaaaaaaa\0"];
        let hashes: std::collections::BTreeSet<u64> = texts.iter().map(|text| hash(text)).collect();
        assert_eq!(hashes.len(), texts.len());
    }
}
