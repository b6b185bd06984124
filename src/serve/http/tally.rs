//! How many requests were answered, by status code.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// How many requests were answered.
#[derive(Debug, Default)]
pub struct Tally(Mutex<BTreeMap<u16, u64>>);

impl Tally {
    pub fn count(&self, code: u16) {
        *self.counts().entry(code).or_default() += 1;
    }

    /// Codes, rising, with their counts.
    pub fn all(&self) -> Vec<(u16, u64)> {
        self.counts().iter().map(|(code, count)| (*code, *count)).collect()
    }

    fn counts(&self) -> std::sync::MutexGuard<'_, BTreeMap<u16, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
