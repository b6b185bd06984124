//! The kernel's rings.

use super::Session;
use crate::engine::{Feed, Stream, Take};
use crate::wire::Notice;
use anyhow::{Context, Result, bail};
use libbpf_rs::{MapCore, RingBuffer, RingBufferBuilder};
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, PoisonError};

/// Notices that were taken out and not yet handled.
#[derive(Debug, Default)]
pub(super) struct Notices {
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

struct Ring(RingBuffer<'static>);

impl Feed for Ring {
    fn bell(&self) -> RawFd {
        self.0.epoll_fd()
    }

    fn drain(&self) {
        // an interrupted call leaves the rest for the next one
        let _ = self.0.consume();
    }
}

/// Opens the ring that `stream` comes through.
///
/// # Errors
/// The kernel refuses to map it.
pub(super) fn open(session: &Session, stream: Stream, mut take: Take) -> Result<Box<dyn Feed>> {
    let maps = &session.skel.maps;
    let map: &dyn MapCore = match stream {
        Stream::Calls => &maps.events,
        Stream::Memory => &maps.memory,
        Stream::Work => &maps.work,
        Stream::Driver => &maps.driver,
        Stream::Xids => &maps.xids,
        Stream::Samples => &maps.samples,
        Stream::Ranges => bail!("what programs call their phases is told from inside alone"),
    };
    Ok(Box::new(Ring(build(map, move |bytes| take(bytes))?)))
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

fn build(map: &dyn MapCore, mut on_record: impl FnMut(&[u8]) + 'static) -> Result<RingBuffer<'static>> {
    let mut builder = RingBufferBuilder::new();
    let callback = move |bytes: &[u8]| {
        on_record(bytes);
        0
    };
    builder.add(map, callback).context("failed to open a ring")?;
    builder.build().context("failed to map a ring")
}
