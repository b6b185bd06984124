//! Words for what could not be decoded, and why.

use super::branch::Branch;
use super::layout::Size;
use super::request::Request;
use super::tables::{self, Entry, Unfit};

/// Bit of a method's number: undocumented, forwarded to the GPU's firmware.
const FORWARDED: u32 = 0x8000;

/// Why a call has no name.
pub(super) fn unknown(request: &Request) -> String {
    let Request { device, nr, word, .. } = request;
    match request.size {
        _ if !device.is_front() && !device.is_uvm() => format!("ioctls of {device} are not decoded"),
        Some(size) => format!("number {nr:#x} of {device} is in no table: request {word:#x}, {size} bytes"),
        None => format!("number {nr:#x} of {device} is in no table"),
    }
}

/// Why a known call's fields are not shown.
pub(super) fn unfit(entry: &Entry, unfit: &Unfit, asked: Option<u32>, branch: Branch) -> String {
    let name = entry.name;
    match unfit {
        Unfit::Branch(first, last) => {
            format!("{name} is known in branches {first} to {last}, the driver is of {branch}: not decoded")
        }
        Unfit::Size(sizes) => {
            let sizes: Vec<String> = sizes.iter().map(|size| size_words(*size)).collect();
            let asked = asked.unwrap_or_default();
            format!(
                "{name} takes {} bytes in branch {branch}, this call says {asked}: not decoded",
                sizes.join(" or ")
            )
        }
    }
}

fn size_words(size: Size) -> String {
    match size {
        Size::Bytes(bytes) => bytes.to_string(),
        Size::Times(bytes) => format!("a multiple of {bytes}"),
        Size::Unknown => "any number of".to_owned(),
    }
}

/// What is to be known of a method's name.
pub(super) fn method(cmd: u32, branch: Branch) -> Option<String> {
    let Some(control) = tables::control(cmd, branch) else {
        let why = if cmd & FORWARDED != 0 {
            "undocumented: forwarded to the GPU's firmware"
        } else {
            "in no table"
        };
        return Some(format!("method {cmd:#x} is {why}"));
    };
    let known = (control.first..=control.last).contains(&branch);
    (!known).then(|| {
        format!(
            "{cmd:#x} has this name in branches {} to {}",
            control.first, control.last
        )
    })
}
