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
    marks: HashMap<u64, Known>,
}

/// What an event stands for.
#[derive(Debug)]
struct Known {
    mark: Mark,
    /// Another call that recorded it was under way at the same time: which of them came last is not known.
    ambiguous: bool,
    /// When the last call returned that has shown it to be reached.
    reached_at: u64,
}

impl Events {
    /// An event was recorded by a call that was entered then.
    pub(crate) fn record(&mut self, event: u64, entered: u64, mark: Mark) {
        if self.marks.len() < MOST || self.marks.contains_key(&event) {
            let known = Known {
                mark,
                ambiguous: self.marks.get(&event).is_some_and(|before| before.mark.at > entered),
                reached_at: 0,
            };
            self.marks.insert(event, known);
        }
    }

    /// Whether a call has shown it to be reached which returned after `entered`: it may have waited for a record that was under way.
    #[must_use]
    pub(crate) fn was_reached_after(&self, event: u64, entered: u64) -> bool {
        self.marks.get(&event).is_some_and(|known| known.reached_at > entered)
    }

    /// As [`Self::mark`], of a call that has shown it to be reached and returned at `returned`.
    pub(crate) fn reach(&mut self, event: u64, entered: u64, returned: u64) -> Option<Mark> {
        let mark = self.mark(event, entered)?;
        if let Some(known) = self.marks.get_mut(&event) {
            known.reached_at = known.reached_at.max(returned);
        }
        Some(mark)
    }

    /// What it stood for when a call was entered; `None` also where it was recorded again while that call lasted.
    #[must_use]
    pub(crate) fn mark(&self, event: u64, entered: u64) -> Option<Mark> {
        let known = self.marks.get(&event).filter(|known| !known.ambiguous);
        known.map(|known| known.mark).filter(|mark| mark.at <= entered)
    }

    /// It is gone; its address may stand for another one.
    pub(crate) fn forget(&mut self, event: u64) {
        self.marks.remove(&event);
    }
}
