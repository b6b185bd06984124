//! Calls of NVIDIA's kernel driver in each format, and who held what there.

use crate::summary::function;
use gpuscope::capture::{Use, plan};
use gpuscope::catalog::{Catalog, Class, Layer};
use gpuscope::clock::Clock;
use gpuscope::decode::Call;
use gpuscope::driver::{Act, Branch, Device, Dialect, DriverRows, Ioctl, NvStatus, Record, Request, Value};
use gpuscope::model::driver::{Caller, FileId, Objects};
use gpuscope::model::order::Numbered;
use gpuscope::model::summary::Summary;
use gpuscope::record::{Asked, Encoder, Facts, Maker, Traced};
use gpuscope::sink::summary::{to_json, to_text};
use gpuscope::sink::{json::Json, text::Text};
use gpuscope::wire::{self, DRIVER_BYTES, DriverShare};

const DIALECT: Dialect = Dialect {
    branch: Branch::R580,
    certain: true,
};

const CLOCK: Clock = Clock {
    start_monotonic_ns: 1_000_000_000,
    start_unix_ns: 1_700_000_000_000_000_000,
};

fn ioctl(name: &str, result: i64, status: Option<u32>, args: Vec<(&'static str, Value)>) -> Asked {
    Asked::new(
        Some(Device::Control),
        Ioctl {
            request: Request::new(Device::Control, 0xc030_462b),
            name: name.to_owned(),
            args,
            size: None,
            status: status.map(|code| NvStatus::of(code, Branch::R580)),
            result,
            act: Act::Nothing,
            notes: Vec::new(),
        },
    )
}

/// One of each kind of answer; texts that want to drive a terminal.
fn asked() -> Vec<Asked> {
    let memory = vec![
        ("hObjectNew", Value::Handle(0x5c00_0010)),
        ("hClass", Value::Class(0x40, Some("NV01_MEMORY_LOCAL_USER"))),
        ("size", Value::Bytes(64 << 20)),
    ];
    let mut taken = ioctl("RM_ALLOC NV01_MEMORY_LOCAL_USER", 0, Some(0), memory);
    taken.ioctl.size = Some(64 << 20);
    let mut unknown = ioctl("nvidia ioctl 0x5e", 0, None, Vec::new());
    let note = "number 0x5e of nvidiactl is in no table";
    unknown.ioctl.notes.push(note.to_owned());
    let path = vec![("path", Value::Text("/dev/nvidia7\u{1b}[2J\"".to_owned()))];
    let mut open = ioctl("open", -i64::from(libc::ENOENT), None, path);
    open.device = None;
    let mut map = ioctl("mmap", 0x7f00_0000_1000, None, Vec::new());
    map.ioctl.size = Some(65_536);
    let cmd = vec![("cmd", Value::Command(0x2080_8162, None))];
    let full = ioctl("RM_CONTROL 0x20808162", 0, Some(0x51), cmd);
    vec![open, taken, full, unknown, map]
}

fn written(encoder: &mut dyn Encoder) -> String {
    let mut maker = Maker::new(CLOCK);
    let mut catalog = Catalog::builtin().expect("the tables");
    catalog.add_driver(DIALECT).expect("room");
    let used = Use {
        stream: true,
        returns: true,
        memory: false,
        stacks: false,
        kernels: false,
        work: false,
        launch_stacks: false,
        sync_stacks: false,
    };
    let row = catalog.driver.expect("rows").unknown(false);
    let plans: Vec<_> = catalog.rows.iter().map(|row| plan(&catalog, row, used)).collect();
    let mut bytes = vec![0; DRIVER_BYTES];
    bytes[..8].copy_from_slice(&1_000_250_000_u64.to_le_bytes());
    bytes[8..16].copy_from_slice(&12_500_u64.to_le_bytes());
    bytes[32..36].copy_from_slice(&1234_u32.to_le_bytes());
    bytes[36..40].copy_from_slice(&1240_u32.to_le_bytes());
    bytes[40..44].copy_from_slice(&row.to_le_bytes());
    bytes[44] = 2;
    let call = Call::decode(&bytes, &catalog, &plans).expect("a call");
    let mut out = Vec::new();
    for (index, asked) in asked().iter().enumerate() {
        let traced = Traced {
            call: &call,
            number: Numbered {
                id: index as u64 + 5,
                caller: Some(4),
            },
            comm: "python",
            layer: "kernel",
            kernel: None,
            asked: Some(asked),
            stack: None,
            facts: Facts::default(),
        };
        encoder.take(&maker.call(&traced, true), &mut out);
    }
    String::from_utf8(out).expect("UTF-8")
}

#[test]
fn text() {
    insta::assert_snapshot!(written(&mut Text::new(CLOCK, 3600, false)));
}

#[test]
fn json() {
    insta::assert_snapshot!(written(&mut Json::default()));
}

/// An `RM_ALLOC` whose argument holds these words, at enter and exit.
fn alloc(words: &[(usize, u32)], behind: u64) -> Vec<u8> {
    let mut bytes = vec![0; DRIVER_BYTES];
    let at = wire::HEADER_BYTES;
    bytes[at + 16..at + 20].copy_from_slice(&0xc030_462b_u32.to_le_bytes());
    bytes[at + 28..at + 32].copy_from_slice(&255_u32.to_le_bytes());
    bytes[at + 32..at + 36].copy_from_slice(&[wire::FAMILY_FRONT, wire::STEP_IOCTL, 0, 7]);
    bytes[at + 40..at + 48].copy_from_slice(&behind.to_le_bytes());
    for (offset, word) in words {
        for piece in [48, 48 + 2 * wire::PIECE] {
            let to = at + piece + offset;
            bytes[to..to + 4].copy_from_slice(&word.to_le_bytes());
        }
    }
    bytes
}

#[test]
fn a_summary_tells_what_was_held_and_how_long_calls_were_in_the_driver() {
    let mut objects = Objects::default();
    let caller = Caller {
        pid: 1234,
        file: FileId(1),
    };
    let client = alloc(&[(0, 1), (4, 1), (8, 1), (12, 0x41)], 0);
    let memory = alloc(&[(0, 1), (4, 1), (8, 2), (12, 0x40)], 64 << 20);
    for bytes in [client, memory] {
        let record = Record::parse(&bytes).expect("a record");
        objects.called(caller, &record.decode(DIALECT), 1000);
    }
    let mut asking = function(Layer::Driver, "driver", "cuMemAlloc_v2", Class::Alloc, 3);
    asking.driver = Some(DriverShare { calls: 12, ns: 3900 });
    let name = "RM_ALLOC NV01_MEMORY_LOCAL_USER";
    let summary = Summary {
        functions: vec![asking, function(Layer::Kernel, "kernel", name, Class::Ioctl, 3)],
        driver: Some(objects.report()),
        ..Summary::default()
    };
    insta::assert_snapshot!(to_text(&summary));
    let json = to_json(&summary);
    assert_eq!(json["functions"][0]["driver_calls"], 12);
    assert_eq!(json["functions"][0]["driver_us"], 3.9);
    let objects = serde_json::to_string_pretty(&json["driver_objects"]);
    insta::assert_snapshot!(objects.expect("JSON"));
}

#[test]
fn every_row_of_the_driver_has_a_name_of_its_own() {
    let rows = DriverRows::new(0, DIALECT);
    let mut names: Vec<&str> = DriverRows::names().collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(rows.contains(count as u32 - 1) && !rows.contains(count as u32));
}
