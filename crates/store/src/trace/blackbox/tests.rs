use super::*;
use crate::clock::Clock;
use crate::record::Taker;
use crate::trace::{Covers, Reader};
use proptest::prelude::*;

const BOUNDS: Bounds = Bounds {
    time: Duration::from_secs(60),
    bytes: 1 << 20,
};

fn black_box(bounds: Bounds) -> BlackBox {
    let clock = Clock {
        start_monotonic_ns: 0,
        start_unix_ns: 0,
    };
    BlackBox::new(&Meta::here(clock, Vec::new(), "test".to_owned()), bounds)
}

fn call(pid: u32, at: i64) -> Record<'static> {
    Record {
        layer: "driver",
        name: "cuLaunchKernel",
        ns: Some(5),
        ..Record::new(Kind::Call, at, pid)
    }
}

fn failed(pid: u32, code: i64) -> Record<'static> {
    Record {
        failed: true,
        result: Some(code),
        ..call(pid, 1)
    }
}

fn take(kept: &mut BlackBox, record: &Record<'_>) {
    Encoder::take(kept, record, &mut Vec::new());
}

/// PID and time of each row that is kept of these processes.
fn rows(kept: &BlackBox, pids: &[u32]) -> Vec<(u32, i64)> {
    let Some(moments) = kept.moments(&pids.iter().copied().collect()).expect("moments") else {
        return Vec::new();
    };
    let reader = Reader::new(moments.bytes.as_slice()).expect("a recording");
    let mut rows = Rows::default();
    reader.read(&mut rows);
    assert_eq!(rows.0.len() as u64, moments.rows);
    rows.0
}

fn covers(kept: &BlackBox, pid: u32) -> Covers {
    let moments = kept.moments(&BTreeSet::from([pid])).expect("moments").expect("rows");
    Reader::new(moments.bytes.as_slice()).expect("a recording").covers()
}

#[derive(Default)]
struct Rows(Vec<(u32, i64)>);

impl Taker for Rows {
    fn take(&mut self, record: &Record<'_>) {
        self.0.push((record.pid, record.at));
    }
}

#[test]
fn each_process_has_its_own_moments_and_what_was_lost_is_everybodys() {
    let mut kept = black_box(BOUNDS);
    for (pid, at) in [(7, 1), (8, 2), (7, 3)] {
        take(&mut kept, &call(pid, at));
        kept.tick(&mut Vec::new());
    }
    take(&mut kept, &Record::lost("cuLaunchKernel", 3, 4, 5));
    assert_eq!(rows(&kept, &[7]), [(7, 1), (7, 3), (0, 4)]);
    assert_eq!(rows(&kept, &[7, 8]), [(7, 1), (8, 2), (7, 3), (0, 4)]);
    assert_eq!(rows(&kept, &[9]), [], "nothing is known of it");
    assert_eq!(kept.processes(), [7, 8]);
}

#[test]
fn what_is_too_old_is_forgotten_and_the_file_says_from_when_on_it_is_whole() {
    let mut kept = black_box(BOUNDS);
    take(&mut kept, &call(7, 1));
    kept.tick(&mut Vec::new());
    assert_eq!(covers(&kept, 7), Covers::From(0), "nothing was forgotten");
    take(&mut kept, &call(7, 2));
    take(&mut kept, &call(8, 2));
    let later = Instant::now() + BOUNDS.time * 2;
    let forgotten = i64::try_from(crate::clock::monotonic_ns()).expect("a time");
    kept.0.borrow_mut().tick(later);
    assert_eq!(rows(&kept, &[7, 8]), [(7, 2), (8, 2)], "what was not packed is young");
    let Covers::From(from) = covers(&kept, 7) else {
        panic!("it begins in the middle")
    };
    assert!(0 < from && from <= forgotten, "{from} ns");
    assert_eq!(covers(&kept, 8), Covers::From(0));
    kept.0.borrow_mut().tick(later);
    assert_eq!((kept.processes(), kept.bytes()), (Vec::new(), 0));
    assert_eq!(kept.dropped(), Dropped::default(), "nothing before its time");
    take(&mut kept, &call(7, 3));
    assert!(covers(&kept, 7) != Covers::From(0), "it has called before");
}

#[test]
fn calls_that_have_not_returned_are_in_the_next_moments_alone_whatever_else_is_kept() {
    let mut kept = black_box(BOUNDS);
    let open = Record {
        kind: Kind::Open,
        ..call(9, 4)
    };
    take(&mut kept, &call(7, 1));
    kept.take_unreturned(&open, &mut Vec::new());
    assert_eq!(rows(&kept, &[7, 9]), [(7, 1), (9, 4)]);
    assert_eq!(rows(&kept, &[7, 9]), [(7, 1)]);
    kept.take_unreturned(&open, &mut Vec::new());
    assert_eq!(rows(&kept, &[9]), [(9, 4)], "it has no rows beside that");
    assert_eq!(kept.processes(), [7]);
    kept.take_unreturned(&open, &mut Vec::new());
    assert_eq!(covers(&kept, 9), Covers::From(0), "nothing was forgotten");
    kept.0.borrow_mut().tick(Instant::now() + BOUNDS.time * 2);
    kept.0.borrow_mut().tick(Instant::now() + BOUNDS.time * 2);
    kept.take_unreturned(&open, &mut Vec::new());
    assert!(
        covers(&kept, 9) != Covers::From(0),
        "its rows may be among those that were forgotten"
    );
}

#[test]
fn only_cuda_says_that_nothing_works_any_more() {
    let mut kept = black_box(BOUNDS);
    take(&mut kept, &failed(1, 719));
    take(&mut kept, &failed(2, 2));
    take(&mut kept, &failed(3, 1));
    let other = Record {
        layer: "mylib",
        ..failed(4, 719)
    };
    take(&mut kept, &other);
    let expected = BTreeSet::from([(Failure::Fatal, 1), (Failure::OutOfMemory, 2)]);
    assert_eq!(kept.take_failures(), expected);
    assert_eq!(kept.take_failures(), BTreeSet::new(), "each is told once");
}

#[test]
fn beyond_its_bytes_the_one_who_has_most_loses_its_oldest() {
    let mut kept = black_box(BOUNDS);
    take(&mut kept, &call(7, 0));
    let mut random = 1_u64;
    for at in 0..20_000_i64 {
        // nothing that could be packed tightly
        let mut words = String::new();
        for _ in 0..12 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            words.push_str(&format!("{random:x}"));
        }
        let args = format!("{{\"words\":\"{words}\"}}");
        let long = Record {
            args: Some(&args),
            ..call(8, at)
        };
        take(&mut kept, &long);
        assert!(kept.bytes() <= BOUNDS.bytes, "{} bytes", kept.bytes());
    }
    let left = rows(&kept, &[8]);
    let dropped = kept.dropped();
    assert!(dropped.blocks > 0);
    assert_eq!(
        left.len() as u64 + dropped.rows,
        20_000,
        "each row is there, or counted"
    );
    let first = 20_000 - left.len() as i64;
    assert!(left.iter().map(|(_, at)| *at).eq(first..20_000), "the last ones");
    assert_eq!(rows(&kept, &[7]), [(7, 0)], "it had little");
}

#[test]
fn many_processes_of_few_calls_stay_within_the_same_bytes() {
    let mut kept = black_box(BOUNDS);
    for pid in 1..=2000 {
        take(&mut kept, &call(pid, i64::from(pid)));
        assert!(kept.bytes() <= BOUNDS.bytes, "{} bytes", kept.bytes());
    }
    let left = rows(&kept, &(1..=2000).collect::<Vec<u32>>());
    assert!(!left.is_empty());
    assert_eq!(left.len() as u64 + kept.dropped().rows, 2000);
}

proptest! {
    #[test]
    fn every_row_is_there_once_however_they_are_packed(steps in prop::collection::vec((1_u32..4, 0..3), 0..60)) {
        let mut kept = black_box(BOUNDS);
        let mut expected: Vec<(u32, i64)> = Vec::new();
        for (at, (pid, packs)) in steps.into_iter().enumerate() {
            take(&mut kept, &call(pid, at as i64));
            expected.push((pid, at as i64));
            if packs == 0 {
                kept.tick(&mut Vec::new());
            }
        }
        let mut found = rows(&kept, &[1, 2, 3]);
        found.sort_by_key(|(_, at)| *at);
        prop_assert_eq!(found, expected);
    }
}
