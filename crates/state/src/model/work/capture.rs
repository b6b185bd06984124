//! Which streams' calls become nodes of a graph.
//!
//! A stream joins a capture by waiting for an event that was recorded in it; all leave when it ends. An end that fails
//! is not told, but ends the capture, too: a capture is also over once a call succeeds that may not be made during
//! one. Source of both: CUDA programming guide, "Creating a graph using stream capture".

use super::StreamName;
use super::content::Content;
use std::collections::HashMap;

#[derive(Debug)]
struct Capture {
    context: u64,
    into: Option<u64>,
    content: Content,
}

/// What a capture has made.
#[derive(Debug, PartialEq)]
pub(crate) struct Captured {
    /// The graph that it adds to; `None`: a new one.
    pub into: Option<u64>,
    pub content: Content,
}

/// Captures under way. Streams and events of those that are over are left behind until all are.
#[derive(Debug, Default)]
pub(crate) struct Captures {
    next: u64,
    live: HashMap<u64, Capture>,
    streams: HashMap<StreamName, u64>,
    events: HashMap<u64, u64>,
}

impl Captures {
    fn number_of(&self, stream: StreamName) -> Option<u64> {
        let number = *self.streams.get(&stream)?;
        self.live.contains_key(&number).then_some(number)
    }

    /// Whether a stream's calls become nodes.
    pub(crate) fn has(&self, stream: StreamName) -> bool {
        self.number_of(stream).is_some()
    }

    /// What they become nodes of.
    pub(crate) fn content(&mut self, stream: StreamName) -> Option<&mut Content> {
        let number = self.number_of(stream)?;
        self.live.get_mut(&number).map(|capture| &mut capture.content)
    }

    /// Calls may have been missed that belong to those under way.
    pub(crate) fn miss(&mut self) {
        self.live
            .values_mut()
            .for_each(|capture| capture.content.incomplete = true);
    }

    /// From now on they do, as part of the graph `into` if there is one.
    pub(crate) fn begin(&mut self, stream: StreamName, context: u64, into: Option<u64>) {
        self.end(stream);
        self.next += 1;
        let content = Content::default();
        let capture = Capture { context, into, content };
        self.live.insert(self.next, capture);
        self.streams.insert(stream, self.next);
    }

    /// And now no longer. `None`: it was not seen to begin.
    pub(crate) fn end(&mut self, stream: StreamName) -> Option<Captured> {
        let number = self.number_of(stream)?;
        let Capture { into, content, .. } = self.live.remove(&number)?;
        self.tidy();
        Some(Captured { into, content })
    }

    /// The same for all of a context.
    pub(crate) fn end_all_of(&mut self, context: u64) {
        self.live.retain(|_, capture| capture.context != context);
        self.tidy();
    }

    fn tidy(&mut self) {
        if self.live.is_empty() {
            self.streams.clear();
            self.events.clear();
        }
    }

    /// An event is recorded in a stream. Whether that becomes part of a graph.
    pub(crate) fn record(&mut self, event: u64, stream: StreamName) -> bool {
        match self.number_of(stream) {
            Some(number) => self.events.insert(event, number),
            None => self.events.remove(&event),
        };
        self.has(stream)
    }

    /// A stream waits for an event. Whether that becomes part of a graph.
    pub(crate) fn wait(&mut self, event: u64, stream: StreamName) -> bool {
        let recorded = self.events.get(&event).copied();
        if let Some(number) = recorded.filter(|number| self.live.contains_key(number))
            && !self.has(stream)
        {
            self.streams.insert(stream, number);
        }
        self.has(stream)
    }

    /// An event is gone.
    pub(crate) fn forget(&mut self, event: u64) {
        self.events.remove(&event);
    }
}
