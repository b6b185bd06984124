//! What a recorded program held.

use super::recording as trace;
use super::{CLIENT, CONTROL, Caller, Machine, Objects, UVM};
use crate::driver::tables::ClassKind;
use crate::driver::{Act, Branch, Device, Dialect};

/// Plays recorded calls; the trace has no handles, so each object gets one, below the first client.
fn play(objects: &mut Objects, call: &str) {
    for (at, recorded) in trace::of(call).into_iter().enumerate() {
        let mut ioctl = recorded.argument().decode(Dialect::of(Branch::R580));
        let fresh = 0x5c00_0000 + at as u32;
        match &mut ioctl.act {
            Act::Create {
                client,
                object,
                kind: ClassKind::Client,
                ..
            } => (*client, *object) = (fresh, fresh),
            Act::Create { client, object, .. } => (*client, *object) = (CLIENT, fresh),
            Act::OpenEvent { descriptor, .. } => *descriptor = at as i32,
            Act::OpenRange { base, .. } => *base = (at as u64) << 21,
            _ => {}
        }
        let file = if recorded.device == Device::Uvm { UVM } else { CONTROL };
        objects.called(Caller { pid: 1, file }, &ioctl, 1);
    }
}

#[test]
fn a_recorded_context_holds_what_it_was_seen_to_make() {
    let mut objects = Machine::with_client().0;
    play(&mut objects, "CtxCreate_v2");
    let held = objects.exited(1).expect("the process");
    assert_eq!((held.channel_groups, held.channels, held.context_shares), (4, 20, 1));
    assert_eq!(
        (held.vidmem.count, held.sysmem.count),
        (17, 26 + 4),
        "four of them pinned"
    );
    assert_eq!(
        (held.vidmem.unsized_count, held.uvm_spaces),
        (17, 1),
        "the trace has no sizes"
    );
    assert_eq!(held.os_events, 8);
    assert_eq!(
        held.ranges.count,
        27 + 2,
        "with a semaphore pool and a region of dynamic parallelism"
    );
}
