//! The table of functions, as the summary of a run and reports have it.

use crate::section::{Cell, Column};

/// What is told of one function; `None`: not known.
#[derive(Debug, Clone)]
pub(crate) struct FunctionRow {
    pub name: Cell,
    pub class: &'static str,
    pub calls: u64,
    pub errors: Option<u64>,
    pub total_ns: Option<u64>,
    pub p50_ns: Option<u64>,
    pub p99_ns: Option<u64>,
    pub max_ns: Option<u64>,
    pub bytes: u64,
}

/// The place of calls in a row.
pub(crate) const CALLS: usize = 2;

/// Of [`FunctionRow::cells`].
pub(crate) fn columns() -> Vec<Column> {
    vec![
        Column::text("function"),
        Column::text("class").on_pages(),
        Column::number("calls"),
        Column::number("errors"),
        Column::number("total").bar(),
        Column::number("mean"),
        Column::number("~p50"),
        Column::number("~p99"),
        Column::number("max"),
        Column::number("bytes"),
    ]
}

impl FunctionRow {
    /// A row.
    pub(crate) fn cells(self) -> Vec<Cell> {
        let mean_ns = self.total_ns.and_then(|ns| ns.checked_div(self.calls));
        let bytes = Some(self.bytes).filter(|bytes| *bytes > 0);
        vec![
            self.name,
            Cell::Text(self.class.to_owned()),
            Cell::Count(self.calls),
            Cell::of(self.errors, Cell::Count),
            Cell::of(self.total_ns, Cell::Duration),
            Cell::of(mean_ns, Cell::Duration),
            Cell::of(self.p50_ns, Cell::Duration),
            Cell::of(self.p99_ns, Cell::Duration),
            Cell::of(self.max_ns, Cell::Duration),
            Cell::of(bytes, Cell::Bytes),
        ]
    }
}
