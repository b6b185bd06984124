//! What a program was given as `CUDA_VISIBLE_DEVICES` and `CUDA_DEVICE_ORDER`, on machines with all kinds of devices.

use gpuscope::device::{Device, MigDevice, Ordinals, environment};
use std::collections::BTreeMap;

const UUIDS: [&str; 4] = [
    "GPU-8a6b1c2d-0000-1111-2222-333344445555",
    "GPU-8a6b1c2d-0000-1111-2222-333344445556",
    "GPU-ffffffff-ffff-ffff-ffff-ffffffffffff",
    "GPU-\u{e9}",
];

fn device(index: usize, parts: bool) -> Device {
    let part = |number: u32| MigDevice {
        uuid: format!("MIG-8a6b1c2d-0000-1111-2222-33334444555{number}"),
        name: String::new(),
        parent: UUIDS[index % UUIDS.len()].to_owned(),
        gpu_instance: number,
        compute_instance: 0,
        memory: None,
    };
    Device {
        index: index as u32,
        uuid: UUIDS[index % UUIDS.len()].to_owned(),
        name: String::new(),
        pci_bus_id: format!("00000000:{:02x}:00.0", 99 - index),
        minor: Some(index as u32),
        memory: None,
        mig: parts.then(|| vec![part(1), part(2)]),
    }
}

pub fn run(input: &[u8]) {
    let Some((&first, environ)) = input.split_first() else {
        return;
    };
    let devices: Vec<Device> = (0..usize::from(first & 7))
        .map(|index| device(index, first & 8 != 0))
        .collect();
    let environment = environment::parse(environ);
    let seen = BTreeMap::from([(u32::from(first >> 4), [first; 16])]);
    let ordinals = Ordinals::new(&environment, &devices, &seen);
    for (number, ordinal) in ordinals.iter() {
        assert_eq!(ordinals.get(number), Some(ordinal));
    }
    assert!(
        ordinals
            .problem()
            .is_none_or(|problem| problem.len() <= 8 * environ.len() + 256)
    );
}
