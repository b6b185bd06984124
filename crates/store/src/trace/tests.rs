use super::recorder::Memory;
use super::*;
use crate::catalog::{Class, CopyKind, HostMemory};
use crate::clock::Clock;
use crate::record::{Encoder, Kind, Meta, Record, Taker};

pub(crate) fn meta() -> Meta {
    Meta {
        clock: Clock {
            start_monotonic_ns: 5,
            start_unix_ns: 1_700_000_000_000_000_000,
        },
        command: vec!["python".to_owned(), "train.py".to_owned()],
        tier: "uprobe.session".to_owned(),
        host: "node-7".to_owned(),
        tool: "0.1.0".to_owned(),
    }
}

/// A call that says everything.
pub(crate) fn full() -> Record<'static> {
    Record {
        ns: Some(1200),
        tid: 8,
        comm: "python",
        layer: "driver",
        name: "cuMemcpyDtoHAsync_v2",
        class: Class::Copy,
        depth: 2,
        count: 1,
        since_caller: Some(300),
        result: Some(-1),
        error: Some("CUDA_ERROR_INVALID_VALUE"),
        failed: true,
        bytes: Some(64),
        direction: Some(CopyKind::DtoH),
        host: Some(HostMemory::Pageable),
        blocking: true,
        stream: Some(0),
        address: Some(0x7f00_0000_0000),
        held: Some(1 << 30),
        kernel: Some("gemm"),
        stack: Some("[]"),
        args: Some("{\"ByteCount\":64}"),
        ..Record::new(Kind::Call, -7, 7)
    }
}

pub(crate) fn recorded(events: &[Record<'_>]) -> Vec<u8> {
    let mut memory = Memory::new();
    memory.start(&meta());
    events.iter().for_each(|event| memory.take(event));
    memory.end();
    memory.bytes
}

/// Looks at each row.
struct Look<F: FnMut(&Record<'_>)>(F);

impl<F: FnMut(&Record<'_>)> Taker for Look<F> {
    fn take(&mut self, event: &Record<'_>) {
        self.0(event);
    }
}

#[test]
fn what_is_recorded_reads_back() {
    let summary = Record {
        args: Some("{}"),
        ..Record::new(Kind::Summary, 9, 0)
    };
    let events = [full(), Record::new(Kind::Idle, 3, 7), summary];
    let bytes = recorded(&events);
    let reader = Reader::new(&bytes[..]).unwrap();
    assert_eq!(reader.meta(), &meta());
    let mut rows = 0;
    let end = reader.read(&mut Look(|event| {
        assert_eq!(event, &events[rows]);
        rows += 1;
    }));
    assert_eq!((end.rows, end.summary.as_deref(), end.cut), (2, Some("{}"), None));
}

#[test]
fn wherever_it_is_cut_off_what_is_before_reads_back() {
    let mut memory = Memory::new();
    memory.start(&meta());
    let mut recorder = Recorder::new(&meta()).unwrap();
    let mut bytes = Vec::new();
    let mut ends = Vec::new();
    for _ in 0..3 {
        recorder.push(&full(), &mut bytes);
        recorder.flush(&mut bytes);
        ends.push(bytes.len());
    }
    let whole = |length: usize| ends.iter().filter(|end| **end <= length).count() as u64;
    for length in (ends[0]..bytes.len()).step_by(7) {
        let end = Reader::new(&bytes[..length]).unwrap().read(&mut Look(|_| {}));
        assert_eq!(end.rows, whole(length), "{length} of {} bytes", bytes.len());
        assert!(end.cut.is_some() && end.summary.is_none());
    }
}

#[test]
fn what_is_no_recording_is_refused() {
    let said = |bytes: &[u8]| Reader::new(bytes).err().map(|error| format!("{error:#}"));
    for foreign in [&b""[..], b"{}\n", b"PAR1 and so on", &[0xff; 64]] {
        assert!(said(foreign).unwrap().contains("it is no recording"), "{foreign:?}");
    }
}

fn totals(kind: Kind, at: i64, args: &'static str) -> Record<'static> {
    Record {
        args: Some(args),
        ..Record::new(kind, at, 0)
    }
}

#[test]
fn of_a_recording_without_its_end_the_last_snapshot_is_told_and_none_is_a_row() {
    let rows = [
        full(),
        totals(Kind::Snapshot, 5, "{\"a\":1}"),
        full(),
        totals(Kind::Snapshot, 9, "{\"a\":2}"),
        full(),
        full(),
    ];
    let mut taken = 0;
    let end = Reader::new(&recorded(&rows)[..])
        .unwrap()
        .read(&mut Look(|event| taken += u64::from(event == &full())));
    let latest = Latest {
        at: 9,
        totals: "{\"a\":2}".to_owned(),
        rows_after: Some(2),
        whole: true,
    };
    assert_eq!((end.rows, end.all_rows, taken), (4, 6, 4));
    assert_eq!((end.summary, end.snapshot), (None, Some(latest)));
}

/// Keeps totals.
#[derive(Default)]
struct Totals(Vec<(i64, String)>);

impl Taker for Totals {
    fn take(&mut self, _: &Record<'_>) {}

    fn totals(&mut self, at: i64, totals: &str) {
        self.0.push((at, totals.to_owned()));
    }
}

#[test]
fn whoever_wants_totals_gets_those_of_each_second() {
    let rows = [
        totals(Kind::Snapshot, 5, "{\"a\":1}"),
        full(),
        totals(Kind::Snapshot, 9, "{\"a\":2}"),
        totals(Kind::Summary, 9, "{}"),
    ];
    let mut taken = Totals::default();
    Reader::new(&recorded(&rows)[..]).unwrap().read(&mut taken);
    assert_eq!(taken.0, [(5, "{\"a\":1}".to_owned()), (9, "{\"a\":2}".to_owned())]);
}

#[test]
fn a_summary_is_what_counts_where_there_is_one() {
    let rows = [
        totals(Kind::Snapshot, 5, "{\"a\":1}"),
        full(),
        totals(Kind::Summary, 9, "{}"),
    ];
    let end = Reader::new(&recorded(&rows)[..]).unwrap().read(&mut Look(|_| {}));
    assert_eq!((end.rows, end.all_rows), (1, 3));
    assert_eq!(
        (end.summary.as_deref(), end.snapshot, end.cut),
        (Some("{}"), None, None)
    );
}

#[test]
fn format_1_is_read() {
    let mut bytes = recorded(&[full(), totals(Kind::Summary, 9, "{}")]);
    let newest = b"\x01\0\0\x005\0";
    let at = bytes.windows(newest.len()).position(|window| window == newest).unwrap();
    bytes[at + 4] = b'1';
    let reader = Reader::new(&bytes[..]).unwrap();
    let end = reader.read(&mut Look(|event| assert_eq!(event, &full())));
    assert_eq!((end.rows, end.summary.as_deref(), end.cut), (1, Some("{}"), None));
}

#[test]
fn there_is_room_for_totals_as_rows_come_and_none_once_the_file_is_full() {
    let trigger = trigger::Trigger::default();
    let mut recorder = Recorder::new(&meta()).unwrap().with_trigger(trigger.clone());
    let (mut bytes, large) = (Vec::new(), " ".repeat(1 << 20));
    assert!(recorder.has_room_for_totals());
    let snapshot = Record {
        args: Some(&large),
        ..Record::new(Kind::Snapshot, 5, 0)
    };
    recorder.take(&snapshot, &mut bytes);
    recorder.tick(&mut bytes);
    assert!(!recorder.has_room_for_totals(), "it has taken more than its part");
    let mut at: i64 = 0;
    while !recorder.has_room_for_totals() {
        assert!(bytes.len() < 16 << 20);
        for _ in 0..10_000 {
            let address = Some((at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            recorder.take(&Record { at, address, ..full() }, &mut bytes);
            at += 1;
        }
        recorder.tick(&mut bytes);
    }
    trigger.fill();
    assert!(!recorder.has_room_for_totals());
    recorder.take(&snapshot, &mut bytes);
    recorder.end(&mut bytes);
    let end = Reader::new(&bytes[..]).unwrap().read(&mut Look(|_| {}));
    assert_eq!(
        end.snapshot.unwrap().rows_after,
        Some(at as u64),
        "the second was not taken"
    );
}
