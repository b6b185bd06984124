//! A recording: the bytes as they are, and a whole one with some of its words replaced by them.

use gpuscope::catalog::Class;
use gpuscope::clock::Clock;
use gpuscope::record::{Kind, Meta, Record, Taker};
use gpuscope::trace::{Reader, Recorder};
use std::sync::LazyLock;

/// Counts rows, and looks at all of each.
struct Rows(u64);

impl Taker for Rows {
    fn take(&mut self, event: &Record<'_>) {
        self.0 += 1;
        std::hint::black_box(format!("{event:?}"));
    }
}

const ROWS: u64 = 3 * 20;

static WHOLE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let meta = Meta {
        clock: Clock {
            start_monotonic_ns: 0,
            start_unix_ns: 0,
        },
        command: vec!["python".to_owned()],
        tier: "uprobe.session".to_owned(),
        host: "node".to_owned(),
        tool: "0.1.0".to_owned(),
    };
    let mut recorder = Recorder::new(&meta).expect("a recorder");
    let mut bytes = Vec::new();
    for number in 0..ROWS {
        let row = Record {
            name: ["cudaMalloc", "cuMemAlloc_v2", "cuLaunchKernel"][number as usize % 3],
            class: Class::Alloc,
            layer: "driver",
            ns: Some(number * 977),
            bytes: (number % 2 == 0).then_some(number << 30),
            error: Some("CUDA_SUCCESS"),
            kernel: (number % 3 == 2).then_some("gemm"),
            args: Some("{\"size\":64}"),
            ..Record::new(Kind::Call, number as i64 * 1000, 7)
        };
        recorder.push(&row, &mut bytes);
        if number % 20 == 19 {
            recorder.flush(&mut bytes);
        }
    }
    recorder.end(&mut bytes);
    bytes
});

/// A recording that is one.
pub fn whole() -> &'static [u8] {
    &WHOLE
}

fn read(bytes: &[u8]) -> Option<u64> {
    let mut rows = Rows(0);
    let end = Reader::new(bytes).ok()?.read(&mut rows);
    assert_eq!(end.rows, rows.0);
    assert!(end.cut.is_some() || end.summary.is_some());
    Some(rows.0)
}

/// Each ten bytes: where, and what.
fn patched(patches: &[u8]) -> Vec<u8> {
    let mut bytes = WHOLE.clone();
    for patch in patches.chunks_exact(10) {
        let at = usize::from(u16::from_le_bytes([patch[0], patch[1]])) % (bytes.len() - 8);
        bytes[at..at + 8].copy_from_slice(&patch[2..]);
    }
    bytes
}

pub fn run(bytes: &[u8]) {
    let _ = read(bytes);
    let rows = read(&patched(bytes));
    assert!(rows.is_none_or(|rows| rows <= ROWS));
}
