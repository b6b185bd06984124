//! Records for tests, as the kernel would send them.

use super::Call;
use crate::catalog::{Catalog, WorkPart};
use crate::wire::{WORK, WorkCall};
use proptest::prelude::*;
use std::sync::LazyLock;

pub(crate) static CATALOG: LazyLock<Catalog> = LazyLock::new(|| Catalog::builtin().unwrap());

/// A call of the driver in thread 7 that took 10 ns.
pub(crate) fn raw(symbol: &str, parts: &[(WorkPart, u64)]) -> WorkCall {
    let library = CATALOG.library("driver").unwrap();
    let id = CATALOG.find(library, symbol, None).unwrap();
    let work = CATALOG.row(id).unwrap().work.as_ref().unwrap();
    let mut raw = WorkCall {
        row: id.0,
        entered: 1000,
        returned: 1010,
        tid: 7,
        copies: 1,
        ..WorkCall::default()
    };
    for (part, value) in parts {
        let index = work.parts.iter().position(|(known, _)| known == part).unwrap();
        raw.part[index] = *value;
    }
    raw
}

/// The same with its meaning.
pub(crate) fn decoded(raw: &WorkCall) -> Call<'_> {
    Call::decode(raw, &CATALOG).unwrap()
}

/// Any record of a row that has to do with work: few streams, events, graphs and threads, any numbers.
pub(crate) fn any_raw() -> impl Strategy<Value = WorkCall> {
    let rows: Vec<u32> = (0u32..)
        .zip(&CATALOG.rows)
        .filter(|(_, row)| row.work.is_some())
        .map(|(id, _)| id)
        .collect();
    let number = || prop_oneof![4 => 0u64..5, 1 => any::<u64>()];
    let parts = proptest::array::uniform::<_, WORK>(number());
    let words = (number(), number(), number(), number(), 0u64..400, 0u64..400);
    let small = (0u32..3, prop_oneof![4 => Just(0u32), 1 => any::<u32>()], number());
    (proptest::sample::select(rows), words, parts, small).prop_map(|(row, words, part, small)| WorkCall {
        row,
        stream: words.0,
        context: words.1,
        bytes: words.2,
        kernel: words.3,
        entered: words.4,
        returned: words.5,
        variant: small.2,
        tid: small.0,
        unreadable: small.1,
        copies: small.2 as u32,
        part,
        ..WorkCall::default()
    })
}
