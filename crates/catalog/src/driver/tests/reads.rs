//! The plan of what is copied.

use super::{every_layout, place};
use crate::driver::layout::Size;
use crate::driver::reads::{MOST, Piece, Pieces, classes, reads, table};
use crate::driver::{Branch, Dialect};

fn inside(pieces: Pieces, place: &std::ops::Range<usize>) -> bool {
    let holds = |piece: Piece| {
        let (from, to) = (
            usize::from(piece.offset),
            usize::from(piece.offset) + usize::from(piece.length),
        );
        from <= place.start && place.end <= to
    };
    pieces.0.into_iter().any(holds)
}

#[test]
fn nothing_larger_than_the_limit_is_copied() {
    for (branch, request, entry, _) in every_layout() {
        let reads = reads(&request, Dialect::of(branch));
        assert!(
            reads.enter.length() <= MOST && reads.exit.length() <= MOST,
            "{} in {branch}: {reads:?}",
            entry.name
        );
    }
}

#[test]
fn nothing_behind_the_argument_is_copied() {
    for (branch, request, entry, layout) in every_layout() {
        let reads = reads(&request, Dialect::of(branch));
        let Size::Bytes(size) = layout.size else { continue };
        for piece in reads.enter.0.into_iter().chain(reads.exit.0) {
            assert!(
                u32::from(piece.offset) + u32::from(piece.length) <= size,
                "{} in {branch}",
                entry.name
            );
        }
    }
}

#[test]
fn every_field_and_the_status_are_copied_at_exit() {
    for (branch, request, entry, layout) in every_layout() {
        let reads = reads(&request, Dialect::of(branch));
        for field in &layout.fields {
            assert!(
                inside(reads.exit, &place(field)),
                "{}.{} in {branch}",
                entry.name,
                field.name
            );
        }
        let status = layout.status.map(usize::from);
        assert!(
            status.is_none_or(|at| inside(reads.exit, &(at..at + 4))),
            "{} in {branch}",
            entry.name
        );
    }
}

#[test]
fn the_plan_of_a_branch_is_what_its_calls_ask_for() {
    for branch in Branch::ALL {
        let plan = table(Dialect::of(branch));
        let calls: Vec<_> = every_layout().filter(|(of, ..)| *of == branch).collect();
        let copied: Vec<_> = calls
            .iter()
            .filter(|(_, r, ..)| reads(r, Dialect::of(branch)).exit.length() > 0)
            .collect();
        assert_eq!(plan.len(), copied.len());
        for (row, (_, request, _, layout)) in plan.iter().zip(copied) {
            assert_eq!(
                (row.nr, row.uvm, row.size),
                (request.nr, request.device.is_uvm(), layout.size)
            );
            assert_eq!(row.reads, reads(request, Dialect::of(branch)));
        }
    }
}

#[test]
fn the_plan_for_a_driver_without_tables_has_every_size_that_is_decoded() {
    for branch in Branch::ALL {
        let dialect = Dialect { branch, certain: false };
        let plan = table(dialect);
        for (_, request, entry, layout) in every_layout() {
            let reads = reads(&request, dialect);
            let mut rows = plan
                .iter()
                .filter(|row| (row.nr, row.uvm) == (request.nr, request.device.is_uvm()));
            let planned = rows.any(|row| row.reads == reads && (row.uvm || row.size == layout.size));
            assert!(
                planned || reads.exit.length() == 0,
                "{} with {branch} assumed: {layout:?}",
                entry.name
            );
        }
    }
}

#[test]
fn parameters_of_memory_and_channels_lie_behind() {
    let classes = classes();
    let at = |class: u32| {
        classes
            .iter()
            .find(|row| row.0 == class)
            .map(|row| (row.1.offset, row.1.length))
    };
    assert_eq!(
        (at(0x3e), at(0x40), at(0x50a0)),
        (Some((64, 8)), Some((64, 8)), Some((64, 8)))
    );
    assert_eq!(
        (at(0xc86f), at(0xa06c), at(0x9067)),
        (Some((128, 4)), Some((12, 4)), Some((0, 4)))
    );
    assert!(classes.iter().all(|row| row.1.length <= 8));
}

#[test]
fn pieces_give_back_what_was_copied_of_them() {
    let pieces = Pieces([Piece { offset: 0, length: 4 }, Piece { offset: 100, length: 8 }]);
    let copied: Vec<u8> = (0..12).collect();
    assert_eq!(pieces.bytes(&copied, 100, 4), Some(&[4, 5, 6, 7][..]));
    assert_eq!(pieces.bytes(&copied, 2, 2), Some(&[2, 3][..]));
    assert_eq!(pieces.bytes(&copied, 2, 4), None, "across the gap");
    assert_eq!(pieces.bytes(&copied[..8], 104, 4), None, "not copied");
    assert_eq!(pieces.bytes(&copied, u16::MAX, u16::MAX), None);
}
