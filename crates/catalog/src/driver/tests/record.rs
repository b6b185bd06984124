//! Records of system calls, as the kernel side writes them.

use super::dialect;
use crate::driver::{Device, Record, Step, Value};
use crate::wire::{self, DRIVER_BYTES, HEADER_BYTES};
use proptest::collection::vec;
use proptest::prelude::*;

/// A record that is all zero but for these.
fn record(step: u8, family: u8, minor: u32) -> Vec<u8> {
    let mut bytes = vec![0; DRIVER_BYTES];
    let at = HEADER_BYTES;
    bytes[at + 28..at + 32].copy_from_slice(&minor.to_le_bytes());
    bytes[at + 32] = family;
    bytes[at + 33] = step;
    bytes
}

/// `RM_FREE` of object 7, whose 16 bytes were read at these times.
fn free(seen: u8) -> Vec<u8> {
    let mut bytes = record(wire::STEP_IOCTL, wire::FAMILY_FRONT, 255);
    let at = HEADER_BYTES;
    bytes[at + 16..at + 20].copy_from_slice(&0xc010_4629_u32.to_le_bytes());
    bytes[at + 35] = seen;
    for piece in [48, 48 + 2 * wire::PIECE] {
        bytes[at + piece + 8..at + piece + 12].copy_from_slice(&7u32.to_le_bytes());
    }
    bytes
}

fn old(bytes: &[u8]) -> Option<Value> {
    let ioctl = Record::parse(bytes).expect("a record").decode(dialect(580));
    assert_eq!(ioctl.name, "RM_FREE");
    let found = ioctl.args.into_iter().find(|(name, _)| *name == "hObjectOld");
    found.map(|(_, value)| value)
}

#[test]
fn an_argument_is_that_of_enter_or_else_of_exit() {
    for seen in [
        wire::SEEN_BEFORE,
        wire::SEEN_AFTER,
        wire::SEEN_BEFORE | wire::SEEN_AFTER,
    ] {
        assert_eq!(old(&free(seen)), Some(Value::Handle(7)));
    }
}

#[test]
fn what_could_not_be_read_is_not_made_up() {
    assert_eq!(old(&free(0)), None);
    let ioctl = Record::parse(&free(0)).expect("a record").decode(dialect(580));
    assert_eq!(ioctl.notes, ["its argument could not be read"]);
}

#[test]
fn a_device_is_told_by_family_and_minor_number() {
    let device =
        |family, minor| Record::parse(&record(wire::STEP_POLL, family, minor)).and_then(|record| record.device);
    assert_eq!(device(wire::FAMILY_FRONT, 255), Some(Device::Control));
    assert_eq!(device(wire::FAMILY_FRONT, 3), Some(Device::Gpu(3)));
    assert_eq!(device(wire::FAMILY_UVM, 0), Some(Device::Uvm));
    assert_eq!(device(wire::FAMILY_UVM, 1), Some(Device::UvmTools));
    assert_eq!(device(wire::FAMILY_CAPS, 1), Some(Device::Caps));
    assert_eq!(device(0, 0), None);
}

#[test]
fn the_last_close_ends_a_file() {
    let mut bytes = record(wire::STEP_CLOSE, wire::FAMILY_FRONT, 0);
    let step = |bytes: &[u8]| Record::parse(bytes).expect("a record").step;
    assert_eq!(step(&bytes), Step::Close { last: false });
    bytes[HEADER_BYTES + 35] = wire::LAST_CLOSE;
    assert_eq!(step(&bytes), Step::Close { last: true });
}

#[test]
fn a_device_that_cannot_be_opened_is_told_by_its_path() {
    let mut bytes = record(wire::STEP_OPEN, wire::FAMILY_FRONT, 0);
    bytes[24..32].copy_from_slice(&(-i64::from(libc::ENOENT)).to_le_bytes());
    let path = b"/dev/nvidia7\0";
    bytes[HEADER_BYTES + 48..HEADER_BYTES + 48 + path.len()].copy_from_slice(path);
    let record = Record::parse(&bytes).expect("a record");
    assert_eq!(record.device, None);
    let ioctl = record.decode(dialect(580));
    assert_eq!(ioctl.args, [("path", Value::Text("/dev/nvidia7".to_owned()))]);
    assert!(ioctl.failed());
}

#[test]
fn a_wrapped_request_is_that_inside() {
    let mut bytes = free(wire::SEEN_AFTER);
    let at = HEADER_BYTES;
    bytes[at + 16..at + 20].copy_from_slice(&0xc010_46d3_u32.to_le_bytes());
    bytes[at + 20..at + 24].copy_from_slice(&0x29_u32.to_le_bytes());
    bytes[at + 24..at + 28].copy_from_slice(&16_u32.to_le_bytes());
    bytes[at + 34] = 1;
    assert_eq!(old(&bytes), Some(Value::Handle(7)));
}

proptest! {
    #[test]
    fn any_bytes_are_decoded_or_refused(bytes in vec(any::<u8>(), 0..2 * DRIVER_BYTES), step in 0..7u8, family in 0..5u8) {
        let mut bytes = bytes;
        if bytes.len() > HEADER_BYTES + 33 {
            bytes[46] = 0;
            bytes[HEADER_BYTES + 32] = family;
            bytes[HEADER_BYTES + 33] = step;
        }
        if let Some(record) = Record::parse(&bytes) {
            let ioctl = record.decode(dialect(595));
            prop_assert!(!ioctl.name.is_empty());
        }
    }
}
