//! How sizes are written in lines of text.

use crate::text::quantity::bytes;

/// How sizes are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sizes {
    /// `1.0 GiB`
    #[default]
    Rounded,
    /// `1073741824 B`
    Exact,
}

impl Sizes {
    pub(super) fn text(self, size: u64) -> String {
        match self {
            Sizes::Rounded => bytes(size),
            Sizes::Exact => format!("{size} B"),
        }
    }
}
