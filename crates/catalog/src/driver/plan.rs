//! What the kernel side is told: which words of which call to copy, and to which row it is counted.

use super::branch::Dialect;
use super::layout::{Layout, Size};
use super::reads::{self, Pieces, Reads};
use super::rows::DriverRows;
use super::tables::Entry;
use crate::wire::{self, IoctlKey, IoctlPlan};

/// For each call of the tables: its sizes, and what is done where no size fits. `selected`: rows that are traced.
#[must_use]
pub fn plans(rows: &DriverRows, selected: &dyn Fn(u32) -> bool) -> Vec<(IoctlKey, IoctlPlan)> {
    let table = reads::table(rows.dialect);
    let mut plans = Vec::new();
    for (row, uvm, entry) in rows.calls().filter(|(row, ..)| selected(*row)) {
        let nr = entry.nr | if uvm { wire::UVM_REQUEST } else { 0 };
        plans.push((
            IoctlKey {
                nr,
                size: wire::ANY_SIZE,
            },
            IoctlPlan { row, ..EMPTY },
        ));
        for planned in table
            .iter()
            .filter(|planned| planned.uvm == uvm && planned.nr == entry.nr)
        {
            let size = match planned.size {
                _ if uvm => 0,
                Size::Bytes(bytes) => bytes,
                Size::Times(_) | Size::Unknown => wire::ANY_SIZE,
            };
            let plan = IoctlPlan {
                row,
                ..plan(entry, planned.size, &planned.reads, rows.dialect)
            };
            plans.push((IoctlKey { nr, size }, plan));
        }
    }
    plans
}

/// What lies behind `pAllocParms`, by class.
#[must_use]
pub fn classes() -> Vec<(u32, wire::Piece)> {
    let pieces = reads::classes().into_iter();
    pieces.map(|(class, at)| (class, piece(at))).collect()
}

const EMPTY: IoctlPlan = IoctlPlan {
    before: [wire::Piece { offset: 0, length: 0 }; 2],
    after: [wire::Piece { offset: 0, length: 0 }; 2],
    status: wire::NO_OFFSET,
    subject: wire::NO_OFFSET,
    pointer: wire::NO_OFFSET,
    pad: 0,
    row: 0,
    pad2: 0,
};

fn plan(entry: &Entry, size: Size, reads: &Reads, dialect: Dialect) -> IoctlPlan {
    let of_size = |layout: &&Layout| layout.size == size && layout.is_of(dialect.branch);
    let layout = entry.layouts.iter().find(of_size);
    let layout = layout.or_else(|| entry.layouts.iter().rfind(|layout| layout.size == size));
    let subject = layout.and_then(|layout| layout.fields.iter().find(|field| field.kind.is_subject()));
    IoctlPlan {
        before: pieces(reads.enter),
        after: pieces(reads.exit),
        status: layout.and_then(|layout| layout.status).unwrap_or(wire::NO_OFFSET),
        subject: subject.map_or(wire::NO_OFFSET, |field| field.offset),
        pointer: reads.behind.map_or(wire::NO_OFFSET, |behind| behind.pointer),
        ..EMPTY
    }
}

fn pieces(pieces: Pieces) -> [wire::Piece; 2] {
    pieces.0.map(piece)
}

fn piece(piece: reads::Piece) -> wire::Piece {
    wire::Piece {
        offset: piece.offset,
        length: piece.length,
    }
}
