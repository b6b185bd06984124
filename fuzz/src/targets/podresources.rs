//! What a kubelet answers on its socket of pod resources: frames of HTTP/2, and the message in them.

use crate::memory::within;
use gpuscope::reserved::{DeviceName, Holder, body_of, reservations};

const MOST: usize = 4096;

fn read(message: &[u8]) {
    // each device is kept with the names of its container
    let Ok(found) = within(64 * message.len() + (64 << 10), || reservations(message)) else {
        return;
    };
    assert!(found.len() <= MOST);
    for reservation in found {
        let Holder::Container(names) = reservation.holder else {
            panic!("{:?}", reservation.holder);
        };
        for name in [&names.namespace, &names.pod, &names.container] {
            assert!(name.len() <= 128 && !name.contains(char::is_control), "{name:?}");
        }
        if let DeviceName::Uuid(uuid) = reservation.device {
            assert!(uuid.len() <= 128 && !uuid.contains("::"), "{uuid:?}");
        }
    }
}

pub fn run(bytes: &[u8]) {
    read(bytes);
    if let Ok(message) = body_of(bytes) {
        assert!(message.len() <= bytes.len());
        read(&message);
    }
}
