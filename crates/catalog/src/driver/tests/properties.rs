//! Any bytes, any request, any branch: the decoder answers, and shows what it answers.

use proptest::prelude::*;

use crate::driver::layout::Size;
use crate::driver::reads::{MOST, reads};
use crate::driver::tables::{escapes, uvm_calls};
use crate::driver::xid::Xid;
use crate::driver::{Branch, Device, Dialect, DriverVersion, Request, Seen, decode};

fn device() -> impl Strategy<Value = Device> {
    let devices = [
        Device::Control,
        Device::Uvm,
        Device::UvmTools,
        Device::Modeset,
        Device::Caps,
        Device::Gpu(0),
    ];
    prop_oneof![
        prop::sample::select(devices.to_vec()),
        any::<u8>().prop_map(Device::Gpu)
    ]
}

fn dialect() -> impl Strategy<Value = Dialect> {
    let branches = prop::sample::select(Branch::ALL.to_vec());
    (branches, any::<bool>()).prop_map(|(branch, certain)| Dialect { branch, certain })
}

/// Half of the words are requests that the tables know.
fn word() -> impl Strategy<Value = u32> {
    let of_front = escapes().iter().flat_map(|entry| {
        entry.layouts.iter().filter_map(|layout| match layout.size {
            Size::Bytes(size) | Size::Times(size) => Some(0xc000_4600 | size << 16 | entry.nr),
            Size::Unknown => None,
        })
    });
    let known: Vec<u32> = of_front.chain(uvm_calls().iter().map(|entry| entry.nr)).collect();
    prop_oneof![any::<u32>(), prop::sample::select(known)]
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..=80)
}

proptest! {
    #[test]
    fn any_call_is_decoded_and_shown(
        device in device(), word in word(), dialect in dialect(), result in -200i64..3,
        enter in bytes(), exit in bytes(), behind in bytes(),
    ) {
        let request = Request::new(device, word);
        let ioctl = decode(&Seen { request, enter: &enter, exit: &exit, behind: &behind, result }, dialect);
        prop_assert!(!ioctl.name.is_empty());
        prop_assert!(ioctl.name.chars().chain(ioctl.notes.concat().chars()).all(|c| !c.is_control()));
        for (_, value) in &ioctl.args {
            prop_assert!(value.to_string().chars().all(|c| !c.is_control()), "{value:?}");
        }
        prop_assert!(result >= 0 || (ioctl.status.is_none() && ioctl.failed()));
    }

    #[test]
    fn no_plan_is_larger_than_the_limit(device in device(), word in word(), dialect in dialect()) {
        let reads = reads(&Request::new(device, word), dialect);
        prop_assert!(reads.enter.length() <= MOST && reads.exit.length() <= MOST);
    }

    #[test]
    fn a_call_that_does_not_fit_is_only_named(word in word(), dialect in dialect(), bytes in bytes()) {
        let request = Request::new(Device::Control, word);
        let fits = escapes().iter().any(|entry| {
            entry.nr == request.nr && entry.layouts.iter().any(|layout| layout.size.fits(request.size))
        });
        let ioctl = decode(&Seen { request, enter: &bytes, exit: &bytes, behind: &bytes, result: 0 }, dialect);
        prop_assert!(fits || (ioctl.args.is_empty() && !ioctl.notes.is_empty()));
    }

    #[test]
    fn any_line_of_a_log_is_an_xid_or_none(line in ".{0,200}", code in any::<u32>(), rest in "[^\n]{0,40}") {
        let _ = Xid::parse(&line);
        let xid = Xid::parse(&format!("NVRM: Xid (PCI:0000:17:00): {code}, {rest}"));
        prop_assert_eq!(xid.map(|xid| xid.code), Some(code));
    }

    #[test]
    fn any_text_is_a_version_or_none(text in ".{0,200}", major in 100u32..10_000, minor in 0u32..1000) {
        let _ = DriverVersion::parse(&text);
        let version = DriverVersion::parse(&format!("{major}.{minor}"));
        prop_assert!(version.is_some_and(|version| version.dialect.certain == Branch::of(major).is_some()
            || major == 550));
    }
}
