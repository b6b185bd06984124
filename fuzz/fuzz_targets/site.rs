//! A record of the memory ring that says where a call came from.
#![no_main]

use gpuscope::stack::wire::{NATIVE, PYTHON, SiteEvent};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some(site) = SiteEvent::parse(bytes) {
        assert!(site.native.len() <= NATIVE && site.frames.len() <= PYTHON);
    }
});
