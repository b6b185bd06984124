use super::*;
use proptest::prelude::*;

const STREAM: StreamName = StreamName {
    stream: 0x5000,
    context: 0,
    tid: 0,
};

/// 4 bytes to pinned memory in thread 7, from 1000 ns to 3000 ns.
const SMALL: CopyWait = CopyWait {
    tid: 7,
    entered: 1000,
    returned: 3000,
    bytes: Some(4),
    direction: Some(CopyKind::DtoH),
    host: Some(HostMemory::Pinned),
    blocking: false,
    stream: STREAM,
    site: 5,
};

/// 100 ns later, for 50 us.
const SYNC: SyncWait = SyncWait {
    tid: 7,
    entered: 3100,
    returned: 53_100,
    stream: Some(STREAM),
    site: 6,
};

fn after(copy: CopyWait, sync: SyncWait) -> Vec<(HiddenKind, u64, u64, u64)> {
    let mut hidden = HiddenWaits::default();
    hidden.copied(&copy);
    hidden.synced(&sync);
    told(&hidden)
}

fn told(hidden: &HiddenWaits) -> Vec<(HiddenKind, u64, u64, u64)> {
    let report = hidden.report();
    let told = report.iter();
    told.map(|wait| (wait.kind, wait.site, wait.count, wait.total_ns))
        .collect()
}

#[test]
fn a_small_copy_to_the_host_and_a_wait_right_behind_it_are_an_item() {
    let item = vec![(HiddenKind::Item, 6, 1, 52_000)];
    assert_eq!(after(SMALL, SYNC), item);
    assert_eq!(after(SMALL, SyncWait { stream: None, ..SYNC }), item, "for a context");
    let nameless = SyncWait { site: 0, ..SYNC };
    assert_eq!(after(SMALL, nameless), [(HiddenKind::Item, 5, 1, 52_000)]);
}

#[test]
fn anything_else_is_none() {
    let nothing = vec![];
    let bytes = Some(65);
    assert_eq!(after(CopyWait { bytes, ..SMALL }, SYNC), nothing, "too large");
    let direction = Some(CopyKind::HtoD);
    assert_eq!(after(CopyWait { direction, ..SMALL }, SYNC), nothing, "the other way");
    assert_eq!(after(SMALL, SyncWait { tid: 8, ..SYNC }), nothing, "another thread");
    let stream = Some(StreamName::default());
    assert_eq!(after(SMALL, SyncWait { stream, ..SYNC }), nothing, "another stream");
    let entered = SMALL.returned + 50_001;
    let late = SyncWait {
        entered,
        returned: entered,
        ..SYNC
    };
    assert_eq!(after(SMALL, late), nothing, "too late");
}

#[test]
fn a_wait_is_for_the_last_copy_before_it() {
    let mut hidden = HiddenWaits::default();
    let bytes = Some(1 << 20);
    hidden.copied(&SMALL);
    hidden.copied(&CopyWait { bytes, ..SMALL });
    hidden.synced(&SYNC);
    assert_eq!(told(&hidden), []);
}

#[test]
fn one_wait_is_for_one_copy() {
    let mut hidden = HiddenWaits::default();
    hidden.copied(&SMALL);
    hidden.synced(&SYNC);
    hidden.synced(&SYNC);
    assert_eq!(told(&hidden).len(), 1);
    assert_eq!(told(&hidden)[0].2, 1);
}

#[test]
fn a_copy_without_a_stream_waits_for_its_bytes() {
    let mut hidden = HiddenWaits::default();
    let blocking = true;
    hidden.copied(&CopyWait { blocking, ..SMALL });
    let bytes = Some(1 << 20);
    hidden.copied(&CopyWait {
        bytes,
        blocking,
        ..SMALL
    });
    hidden.synced(&SYNC);
    assert_eq!(
        told(&hidden),
        [(HiddenKind::BlockingCopy, 5, 1, 2000), (HiddenKind::Item, 5, 1, 2000)]
    );
    assert!(hidden.report().iter().all(|wait| wait.certainty == Certainty::Measured));
}

#[test]
fn an_asynchronous_copy_of_pageable_memory_that_takes_long_has_waited() {
    let long = |direction, host, ns| {
        let copy = CopyWait {
            bytes: Some(1_000_000),
            direction: Some(direction),
            host: Some(host),
            returned: SMALL.entered + ns,
            ..SMALL
        };
        after(copy, SyncWait { tid: 8, ..SYNC })
    };
    let waited = |ns| vec![(HiddenKind::PageableAsync, 5, 1, ns)];
    assert_eq!(long(CopyKind::DtoH, HostMemory::Pageable, 20_001), waited(20_001));
    assert_eq!(long(CopyKind::DtoH, HostMemory::Pageable, 20_000), []);
    assert_eq!(long(CopyKind::DtoH, HostMemory::Pinned, 20_001), []);
    assert_eq!(long(CopyKind::HtoD, HostMemory::Pageable, 1_020_001), waited(1_020_001));
    assert_eq!(long(CopyKind::HtoD, HostMemory::Pageable, 1_020_000), []);
}

#[test]
fn a_slow_small_copy_with_a_wait_behind_it_counts_once() {
    let copy = CopyWait {
        host: Some(HostMemory::Pageable),
        entered: 0,
        returned: 30_000,
        ..SMALL
    };
    let (entered, returned) = (30_010, 30_020);
    let mut hidden = HiddenWaits::default();
    hidden.copied(&copy);
    assert_eq!(told(&hidden), [(HiddenKind::PageableAsync, 5, 1, 30_000)]);
    assert_eq!(hidden.decided().len(), 0);
    hidden.synced(&SyncWait {
        entered,
        returned,
        ..SYNC
    });
    assert_eq!(told(&hidden), [(HiddenKind::Item, 6, 1, 30_010)]);
}

#[test]
fn memory_calls_that_take_long_may_have_waited() {
    let mut hidden = HiddenWaits::default();
    hidden.memory(HiddenKind::Free, 3, 90_000);
    hidden.memory(HiddenKind::Free, 3, 10_000);
    hidden.memory(HiddenKind::Alloc, 4, 95_000);
    assert_eq!(
        told(&hidden),
        [(HiddenKind::Alloc, 4, 1, 95_000), (HiddenKind::Free, 3, 1, 90_000)]
    );
    assert!(hidden.report().iter().all(|wait| wait.certainty == Certainty::Inferred));
}

#[test]
fn threads_and_places_without_end_take_no_room_without_end() {
    let mut hidden = HiddenWaits::default();
    for number in 0..3 * KEYS as u64 {
        hidden.copied(&CopyWait {
            tid: number as u32,
            ..SMALL
        });
        hidden.memory(HiddenKind::Free, number, 90_000);
    }
    assert!(hidden.small.len() <= SMALL_COPIES);
    assert!(hidden.tallies.len() <= KEYS + 1);
    assert_eq!(told(&hidden).iter().map(|wait| wait.2).sum::<u64>(), 3 * KEYS as u64);
}

proptest! {
    #[test]
    fn each_call_is_in_one_kind_at_most(
        calls in proptest::collection::vec(
            (0u32..3, (0u64..90_000, 0u64..90_000), proptest::option::of(0u64..200), any::<[bool; 4]>(), 0u64..3),
            0..60)
    ) {
        let mut hidden = HiddenWaits::default();
        let mut copies = 0;
        for (tid, (entered, returned), bytes, [sync, blocking, to_host, pageable], site) in calls {
            if sync {
                hidden.synced(&SyncWait { tid, entered, returned, site, ..SYNC });
                continue;
            }
            copies += 1;
            let direction = to_host.then_some(CopyKind::DtoH);
            let host = pageable.then_some(HostMemory::Pageable);
            hidden.copied(&CopyWait { tid, entered, returned, bytes, direction, host, blocking, site, ..SMALL });
        }
        prop_assert!(told(&hidden).iter().map(|wait| wait.2).sum::<u64>() <= copies);
    }

    #[test]
    fn what_is_decided_never_falls(
        calls in proptest::collection::vec(
            (0u32..2, (0u64..90_000, 0u64..90_000), proptest::option::of(0u64..70), any::<[bool; 3]>()), 0..60)
    ) {
        let mut hidden = HiddenWaits::default();
        let mut before = Vec::new();
        for (tid, (entered, lasted), bytes, [sync, blocking, pageable]) in calls {
            let returned = entered + lasted;
            let host = pageable.then_some(HostMemory::Pageable);
            if sync {
                hidden.synced(&SyncWait { tid, entered, returned, ..SYNC });
            } else {
                hidden.copied(&CopyWait { tid, entered, returned, bytes, host, blocking, ..SMALL });
            }
            let now = hidden.decided();
            for old in before {
                let HiddenWait { kind, site, count, total_ns, .. } = old;
                let same = now.iter().find(|wait| (wait.kind, wait.site) == (kind, site));
                prop_assert!(same.is_some_and(|wait| wait.count >= count && wait.total_ns >= total_ns));
            }
            before = now;
        }
    }
}
