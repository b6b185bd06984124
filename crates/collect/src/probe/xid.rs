//! The tracepoint by which NVIDIA's driver, from 575 on, tells of Xids.
//!
//! Owns its ring and its link. The tracepoint is there while the driver is loaded, and a link to it keeps the driver
//! loaded.

use super::session::in_kernel;
use crate::driver::xid::Xid;
use crate::engine::{Engine, Records, Stream};
use crate::wire::{XidEvent, text_of};
use anyhow::Result;
use libbpf_rs::Link;
use std::os::fd::RawFd;
use std::path::Path;

const NAME: &str = "nvidia_dev_xid";
const MODULE: &str = "/sys/module/nvidia";

/// The tracepoint by which NVIDIA's driver, from 575 on, tells of Xids.
pub struct Tracepoint {
    records: Records,
    link: Option<Link>,
    /// Whether the driver was loaded when it was last tried.
    tried: bool,
}

impl Tracepoint {
    /// Opens the stream of `engine` and attaches, where the tracepoint exists.
    ///
    /// # Errors
    /// The kernel refuses to map the ring.
    pub fn open(engine: &dyn Engine) -> Result<Tracepoint> {
        let mut this = Tracepoint {
            records: Records::open(engine, Stream::Xids)?,
            link: None,
            tried: false,
        };
        this.attach(engine);
        Ok(this)
    }

    /// Attaches once the driver is loaded. Drivers before 575 have no such tracepoint, and closed ones may not have it.
    pub fn attach(&mut self, engine: &dyn Engine) {
        let loaded = Path::new(MODULE).exists();
        if self.link.is_none()
            && loaded
            && !self.tried
            && let Ok(session) = in_kernel(engine)
        {
            self.link = session.skel.progs.xid_reported.attach_raw_tracepoint(NAME).ok();
        }
        self.tried = loaded;
    }

    /// Whether Xids come from here.
    pub fn is_attached(&self) -> bool {
        self.link.is_some()
    }

    /// Becomes readable when one has come.
    pub fn bell(&self) -> RawFd {
        self.records.bell()
    }

    /// The Xids that have come, and when: CLOCK_MONOTONIC ns.
    pub fn take(&mut self) -> Vec<(Xid, u64)> {
        let mut inbox = self.records.drain().borrow_mut();
        let events = inbox.records().filter_map(XidEvent::parse);
        let found = events.map(|event| {
            let (device, message) = (text_of(&event.device), text_of(&event.message));
            (Xid::of_tracepoint(&device, event.code, &message), event.at)
        });
        let found = found.collect();
        inbox.clear();
        found
    }
}
