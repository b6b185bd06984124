//! Who holds what, after which calls.

#[allow(dead_code, reason = "what the tests of the decoder make is more than is wanted here")]
#[path = "../../../../../catalog/src/driver/tests/argument.rs"]
mod argument;
mod properties;
mod recorded;
#[allow(
    dead_code,
    reason = "tests of the decoder ask more of the recording than is wanted here"
)]
#[path = "../../../../../catalog/src/driver/tests/recording.rs"]
mod recording;

use super::{Caller, FileId, Objects, ProcessReport};
use crate::driver::tables::ClassKind;
use crate::driver::{Act, Branch, Device, Dialect, Ioctl};
use argument::Argument;

const CLIENT: u32 = 0xc1d0_0001;
const MIB: u64 = 1 << 20;
const CONTROL: FileId = FileId(1);
const UVM: FileId = FileId(2);

/// A call that does `act` and succeeds.
fn ioctl(act: Act) -> Ioctl {
    let mut ioctl = Argument::front(Device::Control, 0xd6, 8).decode(Dialect::of(Branch::R580));
    ioctl.act = act;
    ioctl
}

struct Machine(Objects);

impl Machine {
    fn new() -> Self {
        Self(Objects::default())
    }

    /// With a client of process 1.
    fn with_client() -> Self {
        Self::new().did(1, CONTROL, create(CLIENT, 0, CLIENT, ClassKind::Client, None))
    }

    fn did(mut self, pid: u32, file: FileId, act: Act) -> Self {
        self.0.called(Caller { pid, file }, &ioctl(act), 1000);
        self
    }

    fn made(self, parent: u32, object: u32, kind: ClassKind, bytes: u64) -> Self {
        self.did(1, CONTROL, create(CLIENT, parent, object, kind, Some(bytes)))
    }

    fn freed(self, object: u32) -> Self {
        self.did(1, CONTROL, Act::Free { client: CLIENT, object })
    }

    fn report(&self, pid: u32) -> ProcessReport {
        self.0
            .report()
            .processes
            .into_iter()
            .find(|process| process.pid == pid)
            .expect("a process")
    }
}

fn create(client: u32, parent: u32, object: u32, kind: ClassKind, bytes: Option<u64>) -> Act {
    Act::Create {
        client,
        parent,
        object,
        class: 0,
        kind,
        bytes,
    }
}

#[test]
fn memory_is_held_until_it_is_freed() {
    let machine = Machine::with_client()
        .made(CLIENT, 2, ClassKind::Device, 0)
        .made(2, 3, ClassKind::Vidmem, 64 * MIB);
    let held = machine.report(1);
    assert_eq!(
        (held.vidmem.count, held.vidmem.bytes, held.devices, held.clients),
        (1, 64 * MIB, 1, 1)
    );
    let after = machine.freed(3).report(1);
    assert_eq!(
        (after.vidmem.count, after.vidmem.bytes, after.vidmem_peak_bytes),
        (0, 0, 64 * MIB)
    );
    assert_eq!((after.ends.freed, after.ends.with_parent), (1, 0));
}

#[test]
fn a_parent_takes_its_tree_with_it() {
    let machine = Machine::with_client()
        .made(CLIENT, 2, ClassKind::Device, 0)
        .made(2, 10, ClassKind::ChannelGroup, 0)
        .made(10, 11, ClassKind::Channel, 0)
        .made(11, 12, ClassKind::Engine, 0)
        .made(2, 20, ClassKind::Sysmem, MIB);
    let after = machine.freed(10).report(1);
    assert_eq!((after.channel_groups, after.channels, after.sysmem.bytes), (0, 0, MIB));
    assert_eq!((after.ends.freed, after.ends.with_parent), (1, 2));
}

#[test]
fn a_client_takes_everything_with_it() {
    let machine = Machine::with_client()
        .made(CLIENT, 2, ClassKind::Device, 0)
        .made(2, 3, ClassKind::Vidmem, MIB)
        .did(
            1,
            CONTROL,
            Act::MapCpu {
                client: CLIENT,
                object: 3,
                bytes: 4096,
            },
        )
        .did(
            1,
            CONTROL,
            Act::OpenEvent {
                client: CLIENT,
                descriptor: 9,
            },
        );
    let before = machine.report(1);
    assert_eq!((before.cpu_maps.bytes, before.os_events), (4096, 1));
    let after = machine.freed(CLIENT).report(1);
    assert_eq!((after.clients, after.devices, after.vidmem.count), (0, 0, 0));
    assert_eq!((after.cpu_maps.count, after.os_events), (0, 0));
}

#[test]
fn a_duplicated_handle_holds_the_same_memory() {
    let machine = Machine::with_client().made(CLIENT, 3, ClassKind::Vidmem, MIB);
    let duplicate = Act::Duplicate {
        client: CLIENT,
        parent: CLIENT,
        object: 4,
        from_client: CLIENT,
        from: 3,
    };
    let machine = machine.did(1, CONTROL, duplicate);
    assert_eq!(
        (machine.report(1).vidmem.count, machine.report(1).vidmem.bytes),
        (1, MIB)
    );
    let machine = machine.freed(3);
    assert_eq!(machine.report(1).vidmem.bytes, MIB, "the other handle holds it");
    assert_eq!(machine.freed(4).report(1).vidmem.count, 0);
}

#[test]
fn memory_of_another_process_counts_in_both() {
    let other = 0xc1d0_0002;
    let machine = Machine::with_client()
        .made(CLIENT, 3, ClassKind::Vidmem, MIB)
        .did(2, FileId(8), create(other, 0, other, ClassKind::Client, None))
        .did(
            2,
            FileId(8),
            Act::Duplicate {
                client: other,
                parent: other,
                object: 5,
                from_client: CLIENT,
                from: 3,
            },
        );
    assert_eq!(
        (machine.report(1).vidmem.bytes, machine.report(2).vidmem.bytes),
        (MIB, MIB)
    );
    assert_eq!(machine.freed(3).report(2).vidmem.bytes, MIB);
}

#[test]
fn closing_a_file_ends_what_was_made_through_it() {
    let gpu = [7; 16];
    let mut machine = Machine::with_client()
        .made(CLIENT, 3, ClassKind::Vidmem, MIB)
        .did(1, UVM, Act::OpenSpace { gpu })
        .did(
            1,
            UVM,
            Act::OpenRange {
                base: 0x1000_0000,
                bytes: 2 * MIB,
            },
        )
        .did(
            1,
            UVM,
            Act::MapRange {
                base: 0x1010_0000,
                bytes: MIB,
            },
        );
    let before = machine.report(1);
    assert_eq!(
        (before.ranges.bytes, before.mapped_bytes, before.uvm_spaces),
        (2 * MIB, MIB, 1)
    );
    machine.0.closed(UVM);
    let after = machine.report(1);
    assert_eq!(
        (
            after.ranges.count,
            after.mapped_bytes,
            after.uvm_spaces,
            after.vidmem.bytes
        ),
        (0, 0, 0, MIB)
    );
    machine.0.closed(CONTROL);
    assert_eq!(
        (
            machine.report(1).clients,
            machine.report(1).vidmem.bytes,
            machine.report(1).ends.closed
        ),
        (0, 0, 2)
    );
}

#[test]
fn an_ended_process_holds_nothing_and_its_calls_stay() {
    let mut machine = Machine::with_client().made(CLIENT, 3, ClassKind::Vidmem, MIB);
    let last = machine.0.exited(1).expect("what it held");
    assert_eq!(
        (last.vidmem.bytes, last.calls.calls, last.calls.time_ns),
        (MIB, 2, 2000)
    );
    let report = machine.0.report();
    assert_eq!((report.processes.len(), report.calls[0].1.calls), (0, 2));
    assert_eq!(machine.0.exited(1), None);
}

#[test]
fn a_failed_call_changes_nothing_and_is_counted() {
    let mut machine = Machine::with_client();
    let mut failed = ioctl(create(CLIENT, CLIENT, 3, ClassKind::Vidmem, Some(MIB)));
    failed.result = -22;
    machine.0.called(Caller { pid: 1, file: CONTROL }, &failed, 5);
    let report = machine.report(1);
    assert_eq!((report.vidmem.count, report.calls.errors), (0, 1));
}

#[test]
fn what_was_there_before_is_named_as_unseen() {
    let machine = Machine::new()
        .did(1, CONTROL, create(CLIENT, CLIENT, 3, ClassKind::Vidmem, None))
        .freed(99)
        .did(1, UVM, Act::CloseRange { base: 0x1000 })
        .did(1, UVM, Act::MapRange { base: 0x1000, bytes: 1 });
    let report = machine.report(1);
    assert_eq!(
        (report.unseen.clients, report.unseen.frees, report.unseen.ends),
        (1, 1, 2)
    );
    assert_eq!((report.vidmem.count, report.vidmem.unsized_count), (1, 1));
}

#[test]
fn a_client_that_another_process_uses_stays_its_makers() {
    let machine = Machine::with_client();
    let machine = machine.did(2, CONTROL, create(CLIENT, CLIENT, 3, ClassKind::Vidmem, Some(MIB)));
    assert_eq!(
        (machine.report(1).vidmem.bytes, machine.report(2).vidmem.bytes),
        (MIB, 0)
    );
    assert_eq!(
        (machine.report(1).calls.calls, machine.report(2).calls.calls),
        (1, 1),
        "calls are their callers'"
    );
}

#[test]
fn a_handle_that_is_used_again_replaces_what_had_it() {
    let machine =
        Machine::with_client()
            .made(CLIENT, 3, ClassKind::Vidmem, MIB)
            .made(CLIENT, 3, ClassKind::Vidmem, 2 * MIB);
    assert_eq!(
        (machine.report(1).vidmem.count, machine.report(1).vidmem.bytes),
        (1, 2 * MIB)
    );
}

#[test]
fn maps_end_one_by_one() {
    let map = Act::MapGpu {
        client: CLIENT,
        space: 5,
        address: 0x1000,
        bytes: MIB,
    };
    let machine = Machine::with_client()
        .made(CLIENT, 5, ClassKind::VaSpace, 0)
        .did(1, CONTROL, map)
        .did(
            1,
            CONTROL,
            Act::MapCpu {
                client: CLIENT,
                object: 5,
                bytes: 4096,
            },
        )
        .did(
            1,
            CONTROL,
            Act::MapCpu {
                client: CLIENT,
                object: 5,
                bytes: 4096,
            },
        );
    assert_eq!(
        (machine.report(1).gpu_maps.bytes, machine.report(1).cpu_maps.count),
        (MIB, 2)
    );
    let machine = machine
        .did(
            1,
            CONTROL,
            Act::UnmapGpu {
                client: CLIENT,
                space: 5,
                address: 0x1000,
            },
        )
        .did(
            1,
            CONTROL,
            Act::UnmapCpu {
                client: CLIENT,
                object: 5,
            },
        );
    assert_eq!(
        (machine.report(1).gpu_maps.count, machine.report(1).cpu_maps.count),
        (0, 1)
    );
}

#[test]
fn names_without_end_are_counted_together() {
    let mut objects = Objects::default();
    for nr in 0..5000 {
        let ioctl = Argument::uvm(0x1000_0000 + nr).decode(Dialect::of(Branch::R580));
        objects.called(Caller { pid: 1, file: UVM }, &ioctl, 1);
    }
    let calls = objects.report().calls;
    assert_eq!(calls.iter().map(|(_, totals)| totals.calls).sum::<u64>(), 5000);
    assert_eq!(calls[0].0, "other ioctls");
    assert_eq!(calls[0].1.calls, 5000 - 4096);
}
