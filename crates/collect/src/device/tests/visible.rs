use super::super::Device;
use super::super::identifier::number;
use super::super::visible::{Order, by_bus, choose};
use super::{divided, gpu, gpus};
use proptest::prelude::*;

/// The numbers of the devices that a list makes visible; `@0` and `@1` stand for the UUIDs of GPU 0 and 1, bare.
fn chosen(list: &str, devices: &[Device]) -> Vec<usize> {
    let list = list.replace("@0", &gpu(0).uuid[4..]).replace("@1", &gpu(1).uuid[4..]);
    let devices: Vec<&Device> = devices.iter().collect();
    let picks = choose(Some(&list), &devices).picks;
    let place = |uuid: &str| devices.iter().position(|device| device.uuid == uuid).expect("a GPU");
    picks.iter().map(|pick| place(pick.uuid())).collect()
}

/// Each line was seen of driver 580.159 with two H200, by asking it for its devices' UUIDs.
const SEEN_WITH_TWO: &[(&str, &[usize])] = &[
    ("", &[]),
    ("0", &[0]),
    ("1", &[1]),
    ("1,0", &[1, 0]),
    ("0,0", &[]),
    ("0,1,0", &[]),
    ("0,1,5,0", &[0, 1]),
    ("1,2,0", &[1]),
    ("0,-1,1", &[0]),
    ("-1", &[]),
    ("0x1", &[0]),
    ("01", &[1]),
    ("1gpu,0", &[1, 0]),
    (" 1 , 0", &[1, 0]),
    ("1 0", &[1]),
    ("0,,1", &[0]),
    (",0", &[]),
    ("+1", &[1]),
    ("4294967297", &[1]),
    ("99999999999999999999", &[]),
    ("all", &[]),
    ("NoDevFiles", &[]),
    ("\"1\"", &[]),
    ("1;0", &[1]),
    ("GPU-@1", &[1]),
    ("GPU-496f", &[0]),
    ("GPU-", &[]),
    ("GPU", &[]),
    ("@1", &[]),
    ("GPU-9B83F6D3-F738-C091-5DF2-C63FDCCEB51D", &[1]),
    ("gpu-@1", &[]),
    ("GPU-@1,GPU-@0", &[1, 0]),
    ("GPU-@1,GPU-@1", &[]),
    ("GPU-@1,GPU-9b83f", &[]),
    ("GPU-@1, GPU-@0", &[1]),
    ("GPU-@1 ,GPU-@0", &[1, 0]),
    ("GPU-@1x", &[1]),
    ("0,GPU-@1", &[0]),
    ("GPU-@1,0", &[1]),
    ("GPU-@1,GPU-zz,GPU-@0", &[1]),
    ("GPU-zz,GPU-@0", &[]),
    ("MIG-GPU-@1", &[]),
    ("MIG-GPU-@1/0/0", &[]),
    ("MIG-x", &[]),
    ("1,MIG-x,0", &[1]),
    ("\t1", &[1]),
    ("\n1", &[1]),
    ("1.5", &[1]),
    ("-0", &[0]),
    ("1,", &[1]),
];

/// The same with one H100, whose UUID stood where GPU 0's stands here.
const SEEN_WITH_ONE: &[(&str, &[usize])] = &[
    ("GPU-", &[]),
    ("GPU-zz", &[]),
    ("GPU-,", &[]),
    ("GPU-496fx", &[]),
    ("GPU-496f ", &[]),
    ("GPU-496f-", &[0]),
    ("GPU-496", &[0]),
    ("GPU-4", &[0]),
    ("GPU-496fcbea-", &[0]),
    ("GPU-496fcbea-8", &[0]),
    ("GPU-496fcbea860cdc49026015549f07516e", &[0]),
    ("GPU-496fcbea860c", &[0]),
    ("GPU-496fcbea-860c-dc49-0260-15549f07516", &[0]),
    ("GPU-496fcbea-860c-dc49-0260-15549f07516f", &[]),
    ("GPU-497fcbea-860c-dc49-0260-15549f07516e", &[]),
    (" GPU-@0", &[]),
    ("GPU-@0-x", &[0]),
    ("GPU-496fcbea-860c-dc49-0260-15549f07516x", &[]),
    ("GPU-496fcbea-860c-dc49-0260-15549f07516 ", &[]),
    ("GPU-x@0", &[]),
    ("GPU-496fcbea_860c-dc49-0260-15549f07516e", &[]),
    ("GPU-496f,GPU-@0", &[]),
    ("GPU-@0,", &[0]),
    ("GPU-@0,,", &[0]),
    ("0 ", &[0]),
    ("0,0x", &[]),
    ("0,00", &[]),
    ("0,1,0", &[0]),
    ("\u{b}0", &[0]),
    ("--0", &[]),
    ("+ 0", &[]),
    ("0,GPU-", &[0]),
    ("9223372036854775808", &[0]),
    ("4294967296", &[0]),
    ("18446744073709551616", &[]),
    ("-4294967296", &[0]),
    ("2147483648", &[]),
    ("-1,0", &[]),
    ("MIG", &[]),
    ("MIG-", &[]),
    ("MIG-0", &[]),
    ("MIG-@0", &[0]),
];

#[test]
fn lists_are_read_as_the_driver_was_seen_to_read_them() {
    for (count, seen) in [(2, SEEN_WITH_TWO), (1, SEEN_WITH_ONE)] {
        for (list, devices) in seen {
            assert_eq!(chosen(list, &gpus(count)), *devices, "{list:?} with {count}");
        }
    }
}

#[test]
fn without_a_list_all_are_visible() {
    let devices = gpus(3);
    let devices: Vec<&Device> = devices.iter().collect();
    assert_eq!(choose(None, &devices).picks.len(), 3);
}

#[test]
fn mig_devices_are_named_by_either_kind_of_name() {
    let devices = [divided(0, 2), gpu(1)];
    let devices: Vec<&Device> = devices.iter().collect();
    let (gpu, second) = (&devices[0].uuid, &devices[0].parts()[1].uuid);
    let named = |list: &str| {
        let picks = choose(Some(list), &devices).picks;
        picks
            .iter()
            .map(|pick| pick.uuid().to_owned())
            .collect::<Vec<_>>()
            .join(",")
    };
    assert_eq!(named(second), *second);
    assert_eq!(named(&format!("MIG-{gpu}/8/0")), *second);
    assert_eq!(named(&format!("MIG-{gpu}/9/0")), "");
    assert_eq!(named(&format!("MIG-{gpu}/8")), "");
    assert_eq!(named("MIG-d000000"), "", "two begin so");
}

#[test]
fn a_list_that_hides_devices_says_why() {
    let devices = gpus(2);
    let devices: Vec<&Device> = devices.iter().collect();
    let problem = |list| choose(Some(list), &devices).problem.unwrap_or_default();
    assert_eq!(problem(""), "CUDA_VISIBLE_DEVICES is empty: no device is visible");
    assert_eq!(
        problem("0,7,1"),
        "\"7\" in CUDA_VISIBLE_DEVICES fits no device and ends the list"
    );
    assert!(problem("1,1").contains("for a second time"));
    assert_eq!((problem("0,1"), problem("1,")), (String::new(), String::new()));
}

#[test]
fn an_order_of_another_name_is_refused() {
    assert_eq!(Order::parse(None), Some(Order::FastestFirst));
    assert_eq!(Order::parse(Some("FASTEST_FIRST")), Some(Order::FastestFirst));
    assert_eq!(Order::parse(Some("PCI_BUS_ID")), Some(Order::PciBusId));
    for other in ["", "x", "PCI", "pci_bus_id", "PCI_BUS_ID "] {
        assert_eq!(Order::parse(Some(other)), None, "{other:?}");
    }
}

#[test]
fn buses_are_compared_whatever_the_length_of_the_domain() {
    let mut devices = gpus(3);
    for (device, bus) in devices
        .iter_mut()
        .zip(["0000:C1:00.0", "00000000:0a:00.0", "00000001:01:00.0"])
    {
        device.pci_bus_id = bus.to_owned();
    }
    let order: Vec<u32> = by_bus(&devices).iter().map(|device| device.index).collect();
    assert_eq!(order, [1, 0, 2]);
}

proptest! {
    #[test]
    fn any_list_makes_devices_visible_at_most_once(list in "([GPUMI0-9a-f,/ +-]|GPU-|MIG-|\\PC){0,40}", count in 0_u32..4) {
        let devices = [gpus(count), vec![divided(9, 2)]].concat();
        let devices: Vec<&Device> = devices.iter().collect();
        let picks = choose(Some(&list), &devices).picks;
        for (place, pick) in picks.iter().enumerate() {
            prop_assert!(!picks[..place].contains(pick));
        }
    }

    #[test]
    fn indices_that_exist_are_kept_in_their_order(order in Just((0_u32..6).collect::<Vec<_>>()).prop_shuffle(), len in 0_usize..7) {
        let wanted: Vec<usize> = order.iter().take(len).map(|index| *index as usize).collect();
        let list = wanted.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        prop_assert_eq!(chosen(&list, &gpus(6)), wanted);
    }

    #[test]
    fn numbers_are_read_as_c_reads_them(text in "[ \t]{0,2}[+-]?[0-9]{0,22}[a-z .]{0,2}") {
        let c = std::ffi::CString::new(text.clone()).expect("no NUL");
        let mut end = std::ptr::null_mut();
        // SAFETY: a C string, and a place for the end
        let value = unsafe { libc::strtoul(c.as_ptr(), &raw mut end, 10) };
        let read = (!std::ptr::eq(end, c.as_ptr())).then_some(value as u32);
        prop_assert_eq!(number(&text), read);
    }
}
