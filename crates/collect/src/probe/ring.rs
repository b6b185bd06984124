//! Takes events and notices out of the kernel's rings.

use super::Session;
use super::poll::wait_readable;
pub use crate::wire::Inbox;
use crate::wire::Notice;
use anyhow::{Context, Result};
use libbpf_rs::{RingBuffer, RingBufferBuilder};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Notices that were taken out and not yet handled.
#[derive(Debug, Default)]
pub struct Notices {
    pub notices: Vec<Notice>,
    /// Records that are none.
    pub malformed: u64,
}

impl Notices {
    fn push(&mut self, bytes: &[u8]) {
        match Notice::parse(bytes) {
            Some(notice) => self.notices.push(notice),
            None => self.malformed += 1,
        }
    }
}

/// The ring of events.
pub struct Events {
    ring: RingBuffer<'static>,
    inbox: Rc<RefCell<Inbox>>,
}

impl Events {
    /// Opens the event ring of `session`.
    ///
    /// # Errors
    /// The kernel refuses to map it.
    pub fn open(session: &Session) -> Result<Events> {
        let inbox = Rc::new(RefCell::new(Inbox::default()));
        let to = Rc::clone(&inbox);
        let ring = build(&session.skel.maps.events, move |bytes| to.borrow_mut().push(bytes))?;
        Ok(Events { ring, inbox })
    }

    /// Waits until one of `bells` (-1: none) is readable, the ring fills up, or `timeout` is over; then empties the ring.
    pub fn wait(&self, timeout: Duration, bells: [i32; 6]) {
        let millis = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        let [a, b, c, d, e, f] = bells;
        wait_readable([a, b, c, d, e, f, self.ring.epoll_fd()], millis);
        self.drain();
    }

    /// Empties the ring into the inbox.
    pub fn drain(&self) {
        // an interrupted call leaves the rest for the next one
        let _ = self.ring.consume();
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

/// The ring of memory calls, that of work, that of the driver's system calls, or that of Xids.
pub struct Records {
    ring: RingBuffer<'static>,
    inbox: Rc<RefCell<RecordInbox>>,
}

impl Records {
    /// Opens the memory ring of `session`.
    ///
    /// # Errors
    /// The kernel refuses to map it.
    pub fn of_memory(session: &Session) -> Result<Records> {
        Records::open(&session.skel.maps.memory)
    }

    /// Opens its ring of work.
    ///
    /// # Errors
    /// The kernel refuses to map it.
    pub fn of_work(session: &Session) -> Result<Records> {
        Records::open(&session.skel.maps.work)
    }

    /// Opens its ring of Xids.
    ///
    /// # Errors
    /// The kernel refuses to map it.
    pub(crate) fn of_xids(session: &Session) -> Result<Records> {
        Records::open(&session.skel.maps.xids)
    }

    /// Opens its ring of samples.
    ///
    /// # Errors
    /// The kernel refuses to map it.
    pub fn of_samples(session: &Session) -> Result<Records> {
        Records::open(&session.skel.maps.samples)
    }

    /// Opens its ring of system calls on the driver's devices.
    ///
    /// # Errors
    /// The kernel refuses to map it.
    pub fn of_driver(session: &Session) -> Result<Records> {
        Records::open(&session.skel.maps.driver)
    }

    fn open(map: &dyn libbpf_rs::MapCore) -> Result<Records> {
        let inbox = Rc::new(RefCell::new(RecordInbox::default()));
        let to = Rc::clone(&inbox);
        let ring = build(map, move |bytes| to.borrow_mut().push(bytes))?;
        Ok(Records { ring, inbox })
    }

    /// Becomes readable when something urgent is in the ring.
    pub fn bell(&self) -> i32 {
        self.ring.epoll_fd()
    }

    /// Empties the ring into the inbox.
    pub fn drain(&self) -> &Rc<RefCell<RecordInbox>> {
        // an interrupted call leaves the rest for the next one
        let _ = self.ring.consume();
        &self.inbox
    }
}

/// Opens the ring of notices of `session`, and where they go when it is emptied.
///
/// # Errors
/// The kernel refuses to map it.
pub(super) fn notices(session: &Session) -> Result<(RingBuffer<'static>, Arc<Mutex<Notices>>)> {
    let inbox = Arc::new(Mutex::new(Notices::default()));
    let to = Arc::clone(&inbox);
    let ring = build(&session.skel.maps.notices, move |bytes| {
        to.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
    })?;
    Ok((ring, inbox))
}

fn build(map: &dyn libbpf_rs::MapCore, mut on_record: impl FnMut(&[u8]) + 'static) -> Result<RingBuffer<'static>> {
    let mut builder = RingBufferBuilder::new();
    let callback = move |bytes: &[u8]| {
        on_record(bytes);
        0
    };
    builder.add(map, callback).context("failed to open a ring")?;
    builder.build().context("failed to map a ring")
}
