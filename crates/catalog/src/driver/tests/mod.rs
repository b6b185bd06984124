//! What the decoder does with real and made-up calls.

mod argument;
mod branch;
mod decode;
mod every_layout;
mod kmsg;
mod properties;
mod reads;
mod record;
mod recording;
mod request;
mod rows;
mod tables;
mod trace;
mod xid;

use super::layout::{Field, Layout, Size};
use super::tables::Entry;
use super::{Branch, Device, Dialect, Request};
use argument::Argument;

/// Every call with each of its layouts, in each branch that has it.
fn every_layout() -> impl Iterator<Item = (Branch, Request, &'static Entry, &'static Layout)> {
    let front = super::tables::escapes().iter().map(|entry| (Device::Control, entry));
    let uvm = super::tables::uvm_calls().iter().map(|entry| (Device::Uvm, entry));
    front.chain(uvm).flat_map(|(device, entry)| {
        let layouts = entry
            .layouts
            .iter()
            .flat_map(|layout| Branch::ALL.map(|branch| (branch, layout)));
        let has = layouts.filter(|(branch, layout)| layout.is_of(*branch));
        has.map(move |(branch, layout)| (branch, request(device, entry, layout), entry, layout))
    })
}

/// The request of a call: as a program makes it.
fn request(device: Device, entry: &Entry, layout: &Layout) -> Request {
    let size = match layout.size {
        Size::Bytes(bytes) => bytes,
        Size::Times(bytes) => 3 * bytes,
        Size::Unknown => 24,
    };
    let word = 0xc000_4600 | size << 16 | entry.nr;
    Request::new(device, if device.is_uvm() { entry.nr } else { word })
}

/// The field's place in an argument.
fn place(field: &Field) -> std::ops::Range<usize> {
    usize::from(field.offset)..usize::from(field.offset + field.width)
}

fn dialect(number: u32) -> Dialect {
    Dialect::of(Branch::of(number).expect("a branch"))
}
