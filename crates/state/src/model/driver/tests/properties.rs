//! Any calls in any order.

use std::collections::HashMap;

use proptest::prelude::*;

use super::{CLIENT, Caller, FileId, Machine, Objects, create, ioctl};
use crate::driver::Act;
use crate::driver::tables::ClassKind;

/// The plainest account there can be: all live objects, searched through.
#[derive(Default)]
struct Plain(Vec<(u32, u32, u64)>);

impl Plain {
    fn free(&mut self, handle: u32) {
        let mut gone = vec![handle];
        while let Some(handle) = gone.pop() {
            self.0.retain(|object| object.0 != handle);
            gone.extend(self.0.iter().filter(|object| object.1 == handle).map(|object| object.0));
        }
    }

    fn make(&mut self, parent: u32, handle: u32, bytes: u64) {
        self.free(handle);
        self.0.push((handle, parent, bytes));
    }
}

proptest! {
    #[test]
    fn bytes_are_those_of_the_objects_that_live(
        steps in prop::collection::vec((any::<bool>(), 0u32..12, 1u32..12, 0u64..1000), 0..80)
    ) {
        let mut machine = Machine::with_client();
        let mut plain = Plain::default();
        for (make, parent, handle, bytes) in steps {
            let parent = if parent == 0 || parent >= handle { CLIENT } else { parent };
            if make {
                plain.make(parent, handle, bytes);
                machine = machine.made(parent, handle, ClassKind::Vidmem, bytes);
            } else {
                plain.free(handle);
                machine = machine.freed(handle);
            }
            let held = machine.report(1).vidmem;
            prop_assert_eq!(held.count, plain.0.len() as u64);
            prop_assert_eq!(held.bytes, plain.0.iter().map(|object| object.2).sum::<u64>());
        }
        let after = machine.freed(CLIENT).report(1);
        prop_assert_eq!((after.vidmem.count, after.vidmem.bytes, after.clients), (0, 0, 0));
    }

    #[test]
    fn any_order_of_anything_is_taken(
        acts in prop::collection::vec((0u8..12, 0u32..4, 0u32..4, 0u32..4, any::<u64>(), 0u64..3), 0..200)
    ) {
        let mut objects = Objects::default();
        for (what, client, a, b, number, file) in acts {
            let act = match what {
                0 => create(client, a, b, ClassKind::Vidmem, Some(number)),
                1 => create(client, a, client, ClassKind::Client, None),
                2 => Act::Duplicate { client, parent: a, object: b, from_client: a, from: b },
                3 => Act::Free { client, object: a },
                4 => Act::MapCpu { client, object: a, bytes: number },
                5 => Act::UnmapCpu { client, object: a },
                6 => Act::OpenRange { base: u64::from(a), bytes: number },
                7 => Act::MapRange { base: u64::from(b), bytes: number },
                8 => Act::CloseRange { base: u64::from(a) },
                9 => Act::OpenEvent { client, descriptor: 1 },
                10 => { objects.closed(FileId(file)); continue }
                _ => { objects.exited(a); continue }
            };
            objects.called(Caller { pid: b, file: FileId(file) }, &ioctl(act), number);
        }
        let mut ended = HashMap::new();
        for pid in 0..4 {
            ended.insert(pid, objects.exited(pid));
        }
        prop_assert!(objects.report().processes.is_empty());
    }
}
