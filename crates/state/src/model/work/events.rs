//! What events stand for: how far their streams had come when they were last recorded.

use std::collections::HashMap;

/// Events that are remembered.
const MOST: usize = 1 << 18;

/// A place in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    pub stream: usize,
    /// What comes after it is told with this, or more.
    pub generation: u64,
    /// Calls of the stream before it.
    pub submitted: u64,
    /// When the call that made it returned, CLOCK_MONOTONIC ns.
    pub at: u64,
}

/// What events stand for. An event that was never recorded stands for nothing: waiting for it proves nothing.
#[derive(Debug, Default)]
pub(crate) struct Events {
    marks: HashMap<u64, Mark>,
}

impl Events {
    /// An event was recorded.
    pub(crate) fn record(&mut self, event: u64, mark: Mark) {
        if self.marks.len() < MOST || self.marks.contains_key(&event) {
            self.marks.insert(event, mark);
        }
    }

    /// What it stood for when a call was entered; `None` also where it was recorded again while that call lasted.
    #[must_use]
    pub(crate) fn mark(&self, event: u64, entered: u64) -> Option<Mark> {
        self.marks.get(&event).copied().filter(|mark| mark.at <= entered)
    }

    /// It is gone; its address may stand for another one.
    pub(crate) fn forget(&mut self, event: u64) {
        self.marks.remove(&event);
    }
}
