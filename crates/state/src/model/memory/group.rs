//! What allocations have in common when they are shown.

use crate::catalog::Family;

/// What allocations have in common when they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct GroupKey {
    pub site: u64,
    /// The function that allocated.
    pub row: u32,
    pub family: Family,
    pub device: i16,
}
