use super::*;
use crate::model::work::sample::CATALOG;
use crate::wire::MemoryCall;
use proptest::prelude::*;

/// A call of the driver at a time; it takes 5 ns.
fn at(ranges: &mut Ranges, entered: u64, symbol: &str, bytes: u64, parts: &[(Part, u64)]) {
    let library = CATALOG.library("driver").unwrap();
    let id = CATALOG.find(library, symbol, None).unwrap();
    let effect = CATALOG.row(id).unwrap().memory.as_ref().unwrap();
    let mut raw = MemoryCall {
        row: id.0,
        entered,
        returned: entered + 5,
        bytes,
        ..MemoryCall::default()
    };
    for (part, value) in parts {
        let index = effect.parts.iter().position(|(known, _)| known == part).unwrap();
        raw.part[index] = *value;
    }
    ranges.note(&memory::Call::decode(&raw, &CATALOG).unwrap());
}

fn call(ranges: &mut Ranges, symbol: &str, bytes: u64, parts: &[(Part, u64)]) {
    at(ranges, 100, symbol, bytes, parts);
}

fn key(address: u64) -> [(Part, u64); 1] {
    [(Part::Key, address)]
}

#[test]
fn memory_is_of_the_kind_that_its_function_makes_until_it_is_freed() {
    let mut ranges = Ranges::default();
    for (made, freed, kind) in [
        ("cuMemAlloc_v2", "cuMemFree_v2", MemoryKind::Device),
        ("cuMemAllocManaged", "cuMemFree_v2", MemoryKind::Managed),
        ("cuMemHostAlloc", "cuMemFreeHost", MemoryKind::Pinned),
    ] {
        call(&mut ranges, made, 0x100, &key(0x1000));
        let at = |ranges: &Ranges| [0xfff, 0x1000, 0x10ff, 0x1100].map(|address| ranges.kind_at(address));
        assert_eq!(at(&ranges), [None, Some(kind), Some(kind), None], "{made}");
        call(&mut ranges, freed, 0, &key(0x1000));
        assert_eq!(at(&ranges), [None; 4], "{freed}");
    }
}

#[test]
fn the_programs_own_memory_is_pinned_while_it_is_registered() {
    let mut ranges = Ranges::default();
    let parts = [(Part::Key, 0x1000), (Part::Size, 0x100)];
    call(&mut ranges, "cuMemHostRegister_v2", 0, &parts);
    assert_eq!(ranges.kind_at(0x1080), Some(MemoryKind::Pinned));
    call(&mut ranges, "cuMemHostUnregister", 0, &key(0x1000));
    assert_eq!(ranges.kind_at(0x1080), None);
}

#[test]
fn what_is_mapped_is_there_until_it_is_unmapped_even_in_parts() {
    let mut ranges = Ranges::default();
    call(&mut ranges, "cuMemMap", 0, &[(Part::Key, 0x1000), (Part::Size, 0x3000)]);
    call(
        &mut ranges,
        "cuMemUnmap",
        0,
        &[(Part::Key, 0x2000), (Part::Size, 0x1000)],
    );
    let device = Some(MemoryKind::Device);
    assert_eq!(
        [0x1fff, 0x2000, 0x2fff, 0x3000, 0x4000].map(|address| ranges.kind_at(address)),
        [device, None, None, device, None]
    );
}

#[test]
fn a_free_told_of_late_leaves_what_was_handed_out_since() {
    let mut ranges = Ranges::default();
    at(&mut ranges, 100, "cuMemAlloc_v2", 16, &key(0x1000));
    at(&mut ranges, 300, "cuMemAlloc_v2", 16, &key(0x1000));
    at(&mut ranges, 200, "cuMemFree_v2", 0, &key(0x1000));
    assert_eq!(ranges.kind_at(0x1000), Some(MemoryKind::Device));
    at(&mut ranges, 400, "cuMemFree_v2", 0, &key(0x1000));
    assert_eq!(ranges.kind_at(0x1000), None);
}

#[test]
fn memory_of_another_process_is_there_until_its_last_close() {
    let mut ranges = Ranges::default();
    let (base, page_end) = (0x7000_0010_0000, 0x7000_0020_0000);
    call(&mut ranges, "cuIpcOpenMemHandle_v2", 0, &key(base));
    call(&mut ranges, "cuIpcOpenMemHandle_v2", 0, &key(base));
    assert_eq!(ranges.kind_at(page_end - 1), Some(MemoryKind::Device));
    assert_eq!(ranges.kind_at(page_end), None, "how much there is, no call says");
    call(&mut ranges, "cuIpcCloseMemHandle", 0, &key(base));
    assert_eq!(ranges.kind_at(base), Some(MemoryKind::Device));
    call(&mut ranges, "cuIpcCloseMemHandle", 0, &key(base));
    assert_eq!(ranges.kind_at(base), None);
}

#[test]
fn a_graphs_memory_comes_again_with_each_run() {
    let mut ranges = Ranges::default();
    let stream = (Part::Stream, 9);
    call(&mut ranges, "cuStreamBeginCapture_v2", 0, &[stream]);
    call(&mut ranges, "cuMemAllocAsync", 16, &[(Part::Key, 0x1000), stream]);
    call(&mut ranges, "cuMemFreeAsync", 0, &[(Part::Key, 0x1000), stream]);
    call(&mut ranges, "cuStreamEndCapture", 0, &[stream]);
    assert_eq!(ranges.kind_at(0x1000), Some(MemoryKind::Device));
    call(&mut ranges, "cuMemFreeAsync", 0, &[(Part::Key, 0x1000), stream]);
    assert_eq!(ranges.kind_at(0x1000), Some(MemoryKind::Device));
}

#[test]
fn what_a_graph_will_free_is_there_until_it_does() {
    let mut ranges = Ranges::default();
    let stream = (Part::Stream, 9);
    call(&mut ranges, "cuMemAlloc_v2", 16, &key(0x1000));
    call(&mut ranges, "cuStreamBeginCapture_v2", 0, &[stream]);
    call(&mut ranges, "cuMemFreeAsync", 0, &[(Part::Key, 0x1000), stream]);
    assert_eq!(ranges.kind_at(0x1000), Some(MemoryKind::Device));
    call(&mut ranges, "cuStreamEndCapture", 0, &[stream]);
    call(&mut ranges, "cuMemFreeAsync", 0, &[(Part::Key, 0x1000), stream]);
    assert_eq!(ranges.kind_at(0x1000), None);
}

#[test]
fn seeds_fill_what_calls_have_not_told() {
    let mut ranges = Ranges::default();
    call(&mut ranges, "cuMemHostAlloc", 0x100, &key(0x1100));
    ranges.seed(0x1000, 0x1400, MemoryKind::Device);
    let (device, pinned) = (Some(MemoryKind::Device), Some(MemoryKind::Pinned));
    let all = |ranges: &Ranges| [0xfff, 0x1000, 0x1100, 0x1200, 0x1400].map(|address| ranges.kind_at(address));
    assert_eq!(all(&ranges), [None, device, pinned, device, None]);
    call(&mut ranges, "cuMemFree_v2", 0, &key(0x1000));
    assert_eq!(
        ranges.kind_at(0x1000),
        device,
        "of a seed nobody knows how much was freed"
    );
    ranges.seed(0, u64::MAX, MemoryKind::Managed);
    assert_eq!(all(&ranges)[1..4], [device, pinned, device]);
    assert_eq!(ranges.kind_at(0x1400), Some(MemoryKind::Managed));
}

#[test]
fn nothing_lies_in_memory_of_no_size_or_without_an_address() {
    let mut ranges = Ranges::default();
    call(&mut ranges, "cuMemAlloc_v2", 0, &key(0x1000));
    call(&mut ranges, "cuMemAlloc_v2", 16, &key(0));
    call(
        &mut ranges,
        "cuArrayCreate_v2",
        0,
        &[(Part::Key, 0x2000), (Part::Width, 64)],
    );
    assert!(ranges.ranges.is_empty());
}

#[test]
fn a_million_ranges_are_told_apart() {
    let mut ranges = Ranges::default();
    let count = 1_000_000;
    for number in 1..=count {
        ranges.put(number * 0x200, 0x100, number % 3);
    }
    assert_eq!(ranges.ranges.len() as u64, count);
    for number in 1..=count {
        let kind = [MemoryKind::Device, MemoryKind::Managed, MemoryKind::Pinned][(number % 3) as usize];
        assert_eq!(ranges.kind_at(number * 0x200 + 0xff), Some(kind));
        assert_eq!(ranges.kind_at(number * 0x200 + 0x100), None);
    }
}

proptest! {
    /// A range wherever one was put last, and nowhere else.
    #[test]
    fn the_newest_call_wins_at_every_address(
        steps in proptest::collection::vec((1u64..60, 0u64..20, 0u64..4), 0..40)
    ) {
        let mut ranges = Ranges::default();
        let mut painted = [None; 100];
        for (start, bytes, what) in steps {
            let touched = start as usize..(start + bytes) as usize;
            if what == KEPT {
                ranges.clear(start, start + bytes);
                painted[touched].fill(None);
            } else {
                ranges.put(start, bytes, what);
                painted[touched].fill(Some(Packed::new(0, what).kind()));
            }
            for (address, kind) in painted.iter().enumerate() {
                prop_assert_eq!(ranges.kind_at(address as u64), *kind);
            }
        }
    }

    #[test]
    fn no_record_whatever_breaks_it(
        records in proptest::collection::vec(
            (any::<proptest::sample::Index>(), any::<[u64; 4]>(), 0u64..5, any::<u8>()), 0..60),
    ) {
        let rows: Vec<u32> =
            (0u32..).zip(&CATALOG.rows).filter(|(_, row)| row.memory.is_some()).map(|(id, _)| id).collect();
        let mut ranges = Ranges::default();
        for (index, words, small, unreadable) in records {
            let row = rows[index.index(rows.len())];
            let mut raw = MemoryCall { row, unreadable: unreadable & 3, ..MemoryCall::default() };
            (raw.entered, raw.returned, raw.bytes) = (words[0], words[1], words[2]);
            raw.part = [small; crate::wire::PARTS];
            raw.part[0] = words[3].wrapping_neg() >> (8 * small);
            ranges.note(&memory::Call::decode(&raw, &CATALOG).unwrap());
            ranges.seed(words[0] & 0xffff, words[1], MemoryKind::Device);
            let _ = ranges.kind_at(words[3]);
            let mut end = 0;
            for (start, range) in &ranges.ranges {
                prop_assert!(*start >= end, "ranges overlap");
                end = range.end(*start);
            }
        }
    }
}
