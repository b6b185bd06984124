use super::super::{Certainty, Device, Environment, Ordinals};
use super::{divided, gpu, gpus, holds};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn environment(visible: Option<&str>, order: Option<&str>) -> Environment {
    Environment {
        visible_devices: visible.map(str::to_owned),
        device_order: order.map(str::to_owned),
        ..Environment::default()
    }
}

fn ordinals(visible: Option<&str>, order: Option<&str>, devices: &[Device]) -> Ordinals {
    Ordinals::new(&environment(visible, order), devices, &BTreeMap::new())
}

fn uuids(ordinals: &Ordinals) -> Vec<String> {
    ordinals.iter().map(|(_, known)| known.uuid.clone()).collect()
}

fn reason(ordinals: &Ordinals) -> (Certainty, &str) {
    let first = ordinals.get(0).expect("ordinal 0");
    (first.certainty, &first.reason)
}

fn bytes(uuid: &str) -> [u8; 16] {
    let digits: String = uuid[4..].chars().filter(char::is_ascii_hexdigit).collect();
    std::array::from_fn(|at| u8::from_str_radix(&digits[at * 2..at * 2 + 2], 16).expect("two digits"))
}

#[test]
fn the_only_device_is_sure() {
    let known = ordinals(None, None, &gpus(1));
    assert_eq!(reason(&known), (Certainty::Exact, "it is the only device"));
}

#[test]
fn what_the_environment_says_is_inferred_with_the_reason() {
    let two = gpus(2);
    let by_bus = ordinals(Some("1"), Some("PCI_BUS_ID"), &two);
    assert_eq!(uuids(&by_bus), [two[1].uuid.clone()]);
    let words = "from CUDA_VISIBLE_DEVICES at its start; in the order of buses, as CUDA_DEVICE_ORDER asks";
    assert_eq!(reason(&by_bus), (Certainty::Inferred, words));

    let equal = ordinals(None, None, &two);
    assert!(reason(&equal).1.ends_with("as equal devices come"), "{equal:?}");
    let by_uuid = ordinals(Some(&two[1].uuid), None, &two);
    assert_eq!(reason(&by_uuid).1, "from CUDA_VISIBLE_DEVICES at its start");
}

#[test]
fn models_that_differ_make_the_default_order_doubtful() {
    let mut mixed = gpus(2);
    mixed[0].name = "T4".to_owned();
    assert!(reason(&ordinals(None, None, &mixed)).1.contains("models differ"));
    assert!(
        !reason(&ordinals(None, Some("PCI_BUS_ID"), &mixed))
            .1
            .contains("models differ")
    );
}

#[test]
fn devices_are_counted_by_bus_and_not_as_nvml_lists_them() {
    let mut two = gpus(2);
    two.reverse();
    assert_eq!(
        uuids(&ordinals(None, Some("PCI_BUS_ID"), &two)),
        [gpu(0).uuid, gpu(1).uuid]
    );
}

#[test]
fn an_order_of_no_known_name_hides_all() {
    let refused = ordinals(Some("0"), Some("pci_bus_id"), &gpus(2));
    assert_eq!(refused.iter().count(), 0);
    assert!(refused.problem().expect("a reason").starts_with("CUDA_DEVICE_ORDER"));
}

#[test]
fn a_container_counts_the_devices_whose_files_it_has() {
    let four = gpus(4);
    let mut given = environment(Some("1"), Some("PCI_BUS_ID"));
    given.minors = [1, 3].into();
    assert_eq!(
        uuids(&Ordinals::new(&given, &four, &BTreeMap::new())),
        [four[3].uuid.clone()]
    );

    given.visible_devices = None;
    given.minors = [2].into();
    let sole = Ordinals::new(&given, &four, &BTreeMap::new());
    assert_eq!(
        (uuids(&sole), reason(&sole).0),
        (vec![four[2].uuid.clone()], Certainty::Exact)
    );
}

#[test]
fn of_mig_devices_a_process_sees_one_and_no_gpu_beside_it() {
    let machine = [gpu(0), divided(1, 2)];
    let parts = machine[1].parts();
    let seen = |list| uuids(&ordinals(list, Some("PCI_BUS_ID"), &machine));
    assert_eq!(seen(None), [parts[0].uuid.clone()]);
    assert_eq!(seen(Some("1")), [parts[0].uuid.clone()]);
    assert_eq!(seen(Some("0")), [machine[0].uuid.clone()]);
    assert_eq!(seen(Some(&parts[1].uuid)), [parts[1].uuid.clone()]);
    assert_eq!(
        seen(Some(&format!("{},{}", parts[1].uuid, parts[0].uuid))),
        [parts[1].uuid.clone()]
    );
    let inferred = ordinals(None, None, &machine);
    assert!(reason(&inferred).0 == Certainty::Inferred && reason(&inferred).1.ends_with("sees the first"));
}

#[test]
fn a_gpu_in_mig_mode_without_parts_is_not_seen() {
    let machine = [divided(0, 0), gpu(1)];
    assert_eq!(uuids(&ordinals(None, None, &machine)), [machine[1].uuid.clone()]);
}

#[test]
fn a_uuid_that_the_program_read_is_sure_and_moves_the_device() {
    let two = gpus(2);
    let seen = BTreeMap::from([(0, bytes(&two[1].uuid))]);
    let known = Ordinals::new(&environment(None, None), &two, &seen);
    assert_eq!(
        uuids(&known),
        [two[1].uuid.clone()],
        "GPU 0 is no longer known to be ordinal 0"
    );
    assert_eq!(
        reason(&known),
        (Certainty::Exact, "the program read this UUID from the driver")
    );
}

#[test]
fn the_uuid_of_a_divided_gpu_means_its_part_where_there_is_one() {
    let seen = |device: &Device| BTreeMap::from([(0, bytes(&device.uuid))]);
    let (one, two) = (divided(0, 1), divided(0, 2));
    let known = Ordinals::new(&environment(None, None), std::slice::from_ref(&one), &seen(&one));
    assert_eq!(
        (uuids(&known), reason(&known).0),
        (vec![one.parts()[0].uuid.clone()], Certainty::Exact)
    );
    let known = Ordinals::new(&environment(None, None), std::slice::from_ref(&two), &seen(&two));
    assert_eq!(reason(&known).0, Certainty::Inferred);
}

#[test]
fn memory_on_one_device_alone_settles_the_only_ordinal() {
    let two = gpus(2);
    let listed = [
        holds(&two[0].uuid, 7, 0),
        holds(&two[1].uuid, 7, 9),
        holds(&two[0].uuid, 8, 5),
    ];
    let settled = ordinals(None, None, &two).settled(&[0], 7, &listed);
    assert_eq!(
        reason(&settled),
        (Certainty::Exact, "NVML shows its memory on this device alone")
    );
    assert_eq!(settled.of_device(&two[1].uuid), Some(0));
    assert_eq!(settled.of_device(&two[0].uuid), None);

    let used_two = ordinals(None, None, &two).settled(&[0, 1], 7, &listed);
    assert_eq!(used_two, ordinals(None, None, &two), "nothing is settled");
}

#[test]
fn memory_on_a_hidden_device_shows_a_changed_environment() {
    let three = gpus(3);
    let listed = [holds(&three[1].uuid, 7, 9), holds(&three[2].uuid, 7, None)];
    let settled = ordinals(Some("0,1"), None, &three).settled(&[0, 1], 7, &listed);
    assert_eq!(settled.iter().count(), 0);
    assert!(settled.problem().expect("a reason").contains(&three[2].uuid));
}

proptest! {
    #[test]
    fn any_environment_gives_each_device_at_most_one_ordinal(
        visible in prop::option::of("([0-9a-f, -]|GPU-|MIG-|496f|9b83|d0){0,12}"),
        order in prop::option::of("PCI_BUS_ID|FASTEST_FIRST|x"),
        minors in prop::collection::btree_set(0_u32..4, 0..4),
        parts in prop::option::of(0_u32..3),
        seen in prop::collection::btree_map(0_u32..4, any::<[u8; 16]>(), 0..2),
        known in 0_usize..2,
    ) {
        let mut machine = gpus(3);
        machine.extend(parts.map(|parts| divided(3, parts)));
        let mut seen = seen;
        seen.insert(9, bytes(&machine[known].uuid));
        let environment = Environment { visible_devices: visible, device_order: order, minors };
        let ordinals = Ordinals::new(&environment, &machine, &seen);
        let existing: Vec<&str> = machine
            .iter()
            .flat_map(|device| device.parts().iter().map(|part| part.uuid.as_str()).chain([device.uuid.as_str()]))
            .collect();
        let mut all = uuids(&ordinals);
        prop_assert!(all.iter().all(|uuid| existing.contains(&uuid.as_str())));
        let count = all.len();
        all.sort();
        all.dedup();
        prop_assert_eq!(all.len(), count);
        prop_assert_eq!(&ordinals.get(9).expect("it was seen").uuid, &machine[known].uuid);
    }
}
