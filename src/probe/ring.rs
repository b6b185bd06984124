//! Takes events and notices out of the kernel's rings.

use super::Session;
use crate::wire::{self, Notice};
use anyhow::{Context, Result};
use libbpf_rs::{RingBuffer, RingBufferBuilder};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

/// Where one event lies in [`Inbox::bytes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// When the call was entered, CLOCK_MONOTONIC ns.
    pub entered: u64,
    pub start: u32,
    pub length: u32,
}

/// What was taken out and not yet handled.
#[derive(Debug, Default)]
pub struct Inbox {
    pub bytes: Vec<u8>,
    pub slots: Vec<Slot>,
    pub notices: Vec<Notice>,
    /// Records too short to be what they claim.
    pub malformed: u64,
}

impl Inbox {
    /// Adds the bytes of one event.
    pub fn push(&mut self, event: &[u8]) {
        match u32::try_from(self.bytes.len()) {
            Ok(start) if event.len() >= wire::SMALL_BYTES => {
                self.slots.push(Slot {
                    entered: wire::u64_at(event, 0),
                    start,
                    length: event.len() as u32,
                });
                self.bytes.extend_from_slice(event);
            }
            _ => self.malformed += 1,
        }
    }

    /// The bytes of one event.
    pub fn event(&self, slot: Slot) -> &[u8] {
        let start = slot.start as usize;
        self.bytes.get(start..start + slot.length as usize).unwrap_or_default()
    }

    fn push_notice(&mut self, bytes: &[u8]) {
        match Notice::parse(bytes) {
            Some(notice) => self.notices.push(notice),
            None => self.malformed += 1,
        }
    }
}

/// Both rings of a session.
pub struct Rings {
    events: RingBuffer<'static>,
    notices: RingBuffer<'static>,
    inbox: Rc<RefCell<Inbox>>,
}

impl Rings {
    /// Opens the rings of `session`.
    ///
    /// # Errors
    /// The kernel refuses to map them.
    pub fn open(session: &Session) -> Result<Rings> {
        let inbox = Rc::new(RefCell::new(Inbox::default()));
        let (events, notices) = (Rc::clone(&inbox), Rc::clone(&inbox));
        let events = build(&session.skel.maps.events, move |bytes| events.borrow_mut().push(bytes))?;
        let notices = build(&session.skel.maps.notices, move |bytes| {
            notices.borrow_mut().push_notice(bytes)
        })?;
        Ok(Rings { events, notices, inbox })
    }

    /// Waits until a notice arrives, the event ring fills up, or `timeout` is over; then empties both rings.
    pub fn wait(&self, timeout: Duration) {
        let mut polled = [self.notices.epoll_fd(), self.events.epoll_fd()].map(|fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        });
        let millis = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: `polled` is an array of two initialised entries
        unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, millis) };
        self.drain();
    }

    /// Empties both rings into the inbox.
    pub fn drain(&self) {
        // an interrupted call leaves the rest for the next one
        let _ = self.notices.consume();
        let _ = self.events.consume();
    }

    /// Gives away what has come in.
    pub fn take(&self) -> Inbox {
        std::mem::take(&mut self.inbox.borrow_mut())
    }

    /// Takes only the notices.
    pub fn take_notices(&self) -> Vec<Notice> {
        std::mem::take(&mut self.inbox.borrow_mut().notices)
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

fn build(map: &dyn libbpf_rs::MapCore, mut on_record: impl FnMut(&[u8]) + 'static) -> Result<RingBuffer<'static>> {
    let mut builder = RingBufferBuilder::new();
    let callback = move |bytes: &[u8]| {
        on_record(bytes);
        0
    };
    builder.add(map, callback).context("failed to open a ring")?;
    builder.build().context("failed to map a ring")
}
