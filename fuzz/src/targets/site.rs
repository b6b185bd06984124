//! A record of the memory ring that says where a call came from.

use gpuscope::stack::wire::{NATIVE, PYTHON, SiteEvent};

pub fn run(bytes: &[u8]) {
    if let Some(site) = SiteEvent::parse(bytes) {
        assert!(site.native.len() <= NATIVE && site.frames.len() <= PYTHON);
    }
}
