//! Records as they come in, taken out of an engine's streams.

use super::poll::wait_readable;
use super::{Engine, Feed, Stream};
use crate::clock::monotonic_ns;
pub(crate) use crate::wire::Inbox;
use anyhow::Result;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

/// The stream of calls that are to be shown.
pub struct Events {
    feed: Box<dyn Feed>,
    inbox: Rc<RefCell<Inbox>>,
}

impl Events {
    /// Opens it.
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub fn open(engine: &dyn Engine) -> Result<Events> {
        let inbox = Rc::new(RefCell::new(Inbox::default()));
        let to = Rc::clone(&inbox);
        let feed = engine.open(Stream::Calls, Box::new(move |bytes| to.borrow_mut().push(bytes)))?;
        Ok(Events { feed, inbox })
    }

    /// Waits until one of `bells` (-1: none) is readable, the stream fills up, or `timeout` is over; then empties it.
    /// Gives the time, CLOCK_MONOTONIC ns, before which all was taken out.
    pub fn wait(&self, timeout: Duration, bells: [i32; 6]) -> u64 {
        let millis = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        let [a, b, c, d, e, f] = bells;
        wait_readable([a, b, c, d, e, f, self.feed.bell()], millis);
        let drained = monotonic_ns();
        self.drain();
        drained
    }

    /// Empties the stream into the inbox.
    pub fn drain(&self) {
        self.feed.drain();
    }

    /// Bytes of events that have come in.
    pub fn pending_bytes(&self) -> usize {
        self.inbox.borrow().bytes.len()
    }

    /// The inbox in place.
    pub fn inbox(&self) -> &RefCell<Inbox> {
        &self.inbox
    }
}

/// Records of a ring, end to end, and where each begins.
#[derive(Debug, Default)]
pub struct RecordInbox {
    bytes: Vec<u8>,
    starts: Vec<u32>,
}

impl RecordInbox {
    fn push(&mut self, record: &[u8]) {
        self.starts.push(self.bytes.len() as u32);
        self.bytes.extend_from_slice(record);
    }

    /// The records, in the order in which their calls returned.
    pub fn records(&self) -> impl Iterator<Item = &[u8]> {
        let ends = self.starts.iter().skip(1).copied().chain([self.bytes.len() as u32]);
        self.starts
            .iter()
            .zip(ends)
            .map(|(start, end)| &self.bytes[*start as usize..end as usize])
    }

    /// Forgets them.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.starts.clear();
    }
}

/// One of the other streams.
pub struct Records {
    feed: Box<dyn Feed>,
    inbox: Rc<RefCell<RecordInbox>>,
}

impl Records {
    /// Opens `stream`.
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub fn open(engine: &dyn Engine, stream: Stream) -> Result<Records> {
        let inbox = Rc::new(RefCell::new(RecordInbox::default()));
        let to = Rc::clone(&inbox);
        let feed = engine.open(stream, Box::new(move |bytes| to.borrow_mut().push(bytes)))?;
        Ok(Records { feed, inbox })
    }

    /// Becomes readable when something urgent is in it.
    #[must_use]
    pub fn bell(&self) -> i32 {
        self.feed.bell()
    }

    /// Empties the stream into the inbox.
    pub fn drain(&self) -> &Rc<RefCell<RecordInbox>> {
        self.feed.drain();
        &self.inbox
    }
}
