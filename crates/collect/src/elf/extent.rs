//! A function by its place in a file.

/// A function's first byte and size, without the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Extent {
    pub offset: u64,
    pub size: u64,
}
