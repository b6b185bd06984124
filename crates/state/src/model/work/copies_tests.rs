use super::*;
use crate::model::work::Certainty;
use crate::model::work::sample::{any_raw, decoded, raw};
use crate::wire::WorkCall;
use proptest::prelude::*;

const TO_DEVICE: CopyClass = CopyClass {
    direction: Some(CopyKind::HtoD),
    host: Some(HostMemory::Pinned),
    blocking: false,
};
const BLOCKING: CopyClass = CopyClass {
    blocking: true,
    ..TO_DEVICE
};

fn sized(symbol: &str, bytes: u64, entered: u64, ns: u64) -> WorkCall {
    WorkCall {
        bytes,
        entered,
        returned: entered + ns,
        ..raw(symbol, &[])
    }
}

fn batched(tid: u32, entered: u64, copies: u32, bytes: u64) -> WorkCall {
    WorkCall {
        tid,
        entered,
        returned: entered + 10,
        copies,
        ..raw("cuMemcpyBatchAsync", &[(WorkPart::Size, bytes)])
    }
}

#[test]
fn a_copy_that_blocks_is_as_fast_as_its_call_is_long() {
    let mut copies = Copies::default();
    copies.copy(&decoded(&sized("cuMemcpyHtoD_v2", 4000, 100, 500)), Some(0), BLOCKING);
    copies.copy(&decoded(&sized("cuMemcpyHtoD_v2", 2000, 700, 500)), Some(0), BLOCKING);
    copies.copy(&decoded(&sized("cuMemcpyHtoD_v2", 0, 2000, 500)), Some(0), BLOCKING);
    let report = copies.report().remove(0);
    assert_eq!((report.count, report.bytes, report.call_ns), (3, 6000, 1500));
    assert_eq!((report.sizes[11], report.sizes[10], report.sizes[0]), (1, 1, 1));
    let bandwidth = report.bandwidth.unwrap();
    assert_eq!(
        (bandwidth.bytes, bandwidth.ns),
        (6000, 1000),
        "one of nothing has no speed"
    );
    assert_eq!(bandwidth.certainty, Certainty::Measured);
}

#[test]
fn one_that_does_not_is_at_least_as_fast_as_from_its_call_until_its_stream_is_drained() {
    let mut copies = Copies::default();
    let copy = |copies: &mut Copies, stream, entered| {
        copies.copy(
            &decoded(&sized("cuMemcpyHtoDAsync_v2", 1 << 20, entered, 10)),
            Some(stream),
            TO_DEVICE,
        );
    };
    copy(&mut copies, 1, 1500);
    copy(&mut copies, 1, 1000); // it returned later
    copy(&mut copies, 2, 1700);
    assert_eq!(copies.report()[0].bandwidth, None, "nothing is known to be done");
    copies.closed(1, 3000);
    copies.closed(1, 9000);
    let expected = Bandwidth {
        bytes: 2 << 20,
        ns: 2000,
        certainty: Certainty::Bound,
    };
    assert_eq!(copies.report()[0].bandwidth, Some(expected));
    assert_eq!(copies.report()[0].bytes, 3 << 20);
}

#[test]
fn a_stream_knows_what_was_copied_in_it_by_direction() {
    let mut copies = Copies::default();
    let back = CopyClass {
        direction: Some(CopyKind::DtoH),
        ..TO_DEVICE
    };
    copies.copy(&decoded(&sized("cuMemcpyHtoDAsync_v2", 30, 1, 1)), Some(4), TO_DEVICE);
    copies.copy(&decoded(&sized("cuMemcpyDtoHAsync_v2", 7, 2, 1)), Some(4), back);
    copies.copy(&decoded(&sized("cuMemcpyDtoHAsync_v2", 5, 3, 1)), Some(5), back);
    assert_eq!(
        copies.of_stream(4),
        BTreeMap::from([(CopyKind::HtoD, 30), (CopyKind::DtoH, 7)])
    );
    assert!(copies.of_stream(6).is_empty());
}

#[test]
fn a_copy_whose_size_no_argument_says_is_counted_as_such() {
    let mut copies = Copies::default();
    copies.copy(&decoded(&raw("cuFabricCpyBatchAsync", &[])), Some(0), TO_DEVICE);
    let mut unreadable = batched(7, 1, 1, 99);
    unreadable.unreadable = u32::MAX;
    copies.copy(&decoded(&unreadable), Some(0), TO_DEVICE);
    let report = copies.report().remove(0);
    assert_eq!((report.count, report.unsized_count, report.bytes), (2, 2, 0));
    assert_eq!(report.sizes, [0; SIZE_BUCKETS]);
}

#[test]
fn of_a_batch_each_copy_counts_and_its_call_once() {
    let mut copies = Copies::default();
    for (bytes, first) in [(16, true), (32, false), (64, false)] {
        for tid in [7, 8] {
            let leads = copies.copy(&decoded(&batched(tid, 100, 3, bytes)), Some(0), TO_DEVICE);
            assert_eq!(leads, first);
        }
    }
    let report = copies.report().remove(0);
    assert_eq!((report.count, report.bytes, report.call_ns), (6, 224, 20));
    assert!(copies.batches.is_empty());
}

#[test]
fn of_a_large_batch_what_is_not_told_is_counted_without_a_size() {
    let mut copies = Copies::default();
    for _ in 0..256 {
        copies.copy(&decoded(&batched(7, 100, 1000, 2)), Some(0), TO_DEVICE);
    }
    let report = copies.report();
    assert_eq!(
        (report[0].count, report[0].bytes, report[0].unsized_count),
        (256, 512, 0)
    );
    assert_eq!(
        (report[1].direction, report[1].count, report[1].unsized_count),
        (None, 744, 744)
    );
}

proptest! {
    #[test]
    fn counts_and_bytes_are_those_of_the_records(
        records in proptest::collection::vec(
            (any_raw(), 0usize..3, any::<bool>(), any::<Option<u8>>(), 0u64..500), 0..80)
    ) {
        let mut copies = Copies::default();
        let (mut told, mut bytes) = (0u64, 0u64);
        for (raw, stream, blocking, direction, done_at) in &records {
            let direction = direction.map(|one| CopyKind::ALL[usize::from(one) % CopyKind::ALL.len()]);
            let call = decoded(raw);
            let class = CopyClass { direction, blocking: *blocking, ..TO_DEVICE };
            copies.copy(&call, Some(*stream), class);
            copies.closed(*stream, *done_at);
            told += 1;
            bytes = bytes.saturating_add(size(&call).unwrap_or(0));
        }
        let report = copies.report();
        let unreported: u64 = report.iter().filter(|one| one.host == UNREPORTED.host).map(|one| one.count).sum();
        prop_assert_eq!(report.iter().map(|one| one.count).sum::<u64>() - unreported, told);
        prop_assert_eq!(report.iter().fold(0u64, |sum, one| sum.saturating_add(one.bytes)), bytes);
        for one in &report {
            prop_assert_eq!(one.sizes.iter().sum::<u64>() + one.unsized_count, one.count);
            if let Some(bandwidth) = one.bandwidth {
                prop_assert!(bandwidth.bytes <= one.bytes);
                prop_assert!(bandwidth.ns > 0 || one.blocking);
            }
        }
    }
}
