//! Who held what when most was held.
//!
//! A picture is taken when a sum begins to fall from a new height, unless one was taken at nearly that height: it
//! shows at least 99 % of the highest sum, and says which sum it shows.

use super::account::Account;
use super::group::GroupKey;
use crate::catalog::{Family, Holder};

/// What is summed up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Sum {
    /// On devices, and pinned on the host.
    Memory,
    /// Handed out by frameworks.
    Tensors,
}

impl Sum {
    /// The sum that a family is part of.
    pub fn of(family: Family) -> Option<Sum> {
        match (family, family.holder()) {
            (Family::Tensor, _) => Some(Sum::Tensors),
            (_, Holder::Nobody) => None,
            _ => Some(Sum::Memory),
        }
    }

    /// The name in outputs.
    pub fn name(self) -> &'static str {
        match self {
            Sum::Memory => "memory",
            Sum::Tensors => "tensors",
        }
    }
}

/// Bytes and number of one group's allocations.
pub type Share = (u32, u64, u64);

/// A sum over time, with the last picture.
#[derive(Debug, Clone, Default)]
pub(crate) struct Height {
    now: u64,
    /// When it last rose, CLOCK_MONOTONIC ns.
    rose_at: u64,
    highest: u64,
    picture_bytes: u64,
    picture_at: u64,
    picture: Vec<Share>,
}

impl Height {
    /// Rises.
    pub(crate) fn add(&mut self, bytes: u64, at: u64) {
        self.now = self.now.saturating_add(bytes);
        self.rose_at = at;
        self.highest = self.highest.max(self.now);
    }

    /// Whether a picture is due before it falls.
    pub(crate) fn is_summit(&self) -> bool {
        self.now > self.picture_bytes.saturating_add(self.picture_bytes / 100)
    }

    /// Takes a picture.
    pub(crate) fn keep(&mut self, shares: Vec<Share>) {
        self.picture = shares;
        self.picture_bytes = self.now;
        self.picture_at = self.rose_at;
    }

    /// Falls.
    pub(crate) fn remove(&mut self, bytes: u64) {
        self.now = self.now.saturating_sub(bytes);
    }

    /// The highest sum that there is a picture of, with `shares` being what is held now.
    pub(crate) fn peak(&self, shares: Vec<Share>) -> Peak {
        let now = self.now >= self.picture_bytes;
        Peak {
            bytes: if now { self.now } else { self.picture_bytes },
            at: if now { self.rose_at } else { self.picture_at },
            highest_bytes: self.highest,
            shares: if now { shares } else { self.picture.clone() },
        }
    }
}

/// A sum near its highest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Peak {
    pub bytes: u64,
    /// CLOCK_MONOTONIC ns.
    pub at: u64,
    /// Highest that it ever was; at most 1 % more.
    pub highest_bytes: u64,
    pub shares: Vec<Share>,
}

/// Groups of `sum` among all, with what they hold.
pub(crate) fn shares(groups: &[(GroupKey, Account)], sum: Sum) -> Vec<Share> {
    let numbered = groups.iter().enumerate();
    let part = numbered.filter(|(_, (key, account))| account.outstanding > 0 && Sum::of(key.family) == Some(sum));
    part.map(|(number, (_, account))| (number as u32, account.held_bytes, account.outstanding))
        .collect()
}
