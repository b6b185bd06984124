//! How a report is to look.

use crate::section::text::Ink;

/// How a report is to look.
#[derive(Debug, Clone, Copy)]
pub struct View {
    /// Call sites shown for each process.
    pub top: usize,
    pub colour: bool,
}

impl View {
    pub(super) fn bold(&self, text: &str) -> String {
        Ink(self.colour).strong(text)
    }

    pub(super) fn red(&self, text: &str) -> String {
        Ink(self.colour).bad(text)
    }

    pub(super) fn dim(&self, text: &str) -> String {
        Ink(self.colour).weak(text)
    }
}
