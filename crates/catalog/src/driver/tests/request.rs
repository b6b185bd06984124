//! Devices and request words.

use crate::driver::request::Majors;
use crate::driver::{Device, Request};

const MAJORS: Majors = Majors {
    uvm: Some(238),
    caps: Some(241),
};

#[test]
fn devices_are_told_by_their_numbers() {
    let device = |major, minor| Device::of(major, minor, MAJORS);
    assert_eq!(device(195, 255), Some(Device::Control));
    assert_eq!(device(195, 254), Some(Device::Modeset));
    assert_eq!(device(195, 7), Some(Device::Gpu(7)));
    assert_eq!(device(195, 250), None);
    assert_eq!(
        (device(238, 0), device(238, 1), device(238, 2)),
        (Some(Device::Uvm), Some(Device::UvmTools), None)
    );
    assert_eq!(device(241, 99), Some(Device::Caps));
    assert_eq!(Device::of(238, 0, Majors::default()), None, "the module is not loaded");
    assert_eq!(device(1, 3), None);
}

#[test]
fn majors_are_those_of_character_devices() {
    let text =
        "Character devices:\n  1 mem\n195 nvidia\n238 nvidia-uvm\n241 nvidia-caps\n\nBlock devices:\n  7 nvidia-uvm\n";
    assert_eq!(Majors::parse(text), MAJORS);
    assert_eq!(Majors::parse("Character devices:\n195 nvidia\n"), Majors::default());
    assert_eq!(Majors::parse(""), Majors::default());
}

#[test]
fn the_front_end_reads_number_and_size_alone() {
    let request = Request::new(Device::Control, 0xc030_462b);
    assert_eq!((request.nr, request.size), (0x2b, Some(48)));
    assert_eq!(
        Request::new(Device::Gpu(0), 0x0030_002b).size,
        Some(48),
        "whatever type and direction"
    );
}

#[test]
fn uvm_numbers_are_whole_words() {
    let request = Request::new(Device::Uvm, 0x3000_0001);
    assert_eq!((request.nr, request.size), (0x3000_0001, None));
}
