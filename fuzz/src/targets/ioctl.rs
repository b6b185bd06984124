//! The copied words of ioctls, one after the other: decoded, shown, and taken into account.

use gpuscope::driver::reads::{MOST, reads};
use gpuscope::driver::{Branch, Device, Dialect, Request, Seen, decode};
use gpuscope::model::driver::{Caller, FileId, Objects};

const DEVICES: [Device; 6] = [
    Device::Control,
    Device::Gpu(0),
    Device::Uvm,
    Device::UvmTools,
    Device::Modeset,
    Device::Caps,
];

/// Bytes of one call: choices, request, result, argument at enter and at exit, what lies behind.
const CALL: usize = 4 + 4 + 1 + 64 + 64 + 8;

fn chosen<T: Copy>(from: &[T], byte: u8) -> T {
    from[usize::from(byte) % from.len()]
}

pub fn run(data: &[u8]) {
    let mut objects = Objects::default();
    for call in data.chunks_exact(CALL) {
        let (head, rest) = call.split_at(9);
        let (enter, rest) = rest.split_at(64);
        let (exit, behind) = rest.split_at(64);
        let dialect = Dialect {
            branch: chosen(&Branch::ALL, head[1]),
            certain: head[1] < 128,
        };
        let request = Request::new(
            chosen(&DEVICES, head[0]),
            u32::from_le_bytes([head[4], head[5], head[6], head[7]]),
        );
        let plan = reads(&request, dialect);
        assert!(plan.enter.length() <= MOST && plan.exit.length() <= MOST);

        let ioctl = decode(
            &Seen {
                request,
                enter,
                exit,
                behind,
                result: i64::from(head[8].cast_signed()),
            },
            dialect,
        );
        assert!(!ioctl.name.is_empty());
        for (_, value) in &ioctl.args {
            assert!(!value.to_string().contains(char::is_control));
        }
        let caller = Caller {
            pid: u32::from(head[2] % 4),
            file: FileId(u64::from(head[2] / 64)),
        };
        objects.called(caller, &ioctl, 1);
        match head[3] {
            0 => objects.closed(caller.file),
            1 => drop(objects.exited(caller.pid)),
            _ => {}
        }
    }
    let held = objects.report();
    for process in held.processes {
        assert_eq!(objects.exited(process.pid), Some(process));
    }
    assert!(objects.report().processes.is_empty());
}
