//! What devices were given to do: kernels and copies.

use super::super::{Copies, Kernel, Report, sum, words};
use crate::section::{Cell, Chapter, Column, Section, Table};
use crate::text::quantity::bytes;

pub(super) fn kernels(report: &Report) -> Chapter {
    let columns = vec![
        Column::text("kernel"),
        Column::text("mostly as"),
        Column::number("launches").bar(),
        Column::number("in graphs").rare(),
        Column::number("captured").rare(),
        Column::number("share"),
        Column::number("failed").on_pages(),
        Column::number("~p50"),
        Column::number("~p99"),
        Column::number("max").on_pages(),
    ];
    let all = sum(report.kernels.iter().map(Kernel::runs));
    let rows = report.kernels.iter().map(|one| kernel(one, all));
    let times = "Times are those of the launching call: the CPU's, not the GPU's.".to_owned();
    let section = Section {
        about: words::kernels(report),
        lines: (!report.kernels.is_empty()).then_some(times).into_iter().collect(),
        table: Table::flat(columns, rows).counting("kernel", 2, "launch"),
        ..Section::default()
    };
    Chapter::of("kernels", "Kernels", "Kernels", section)
}

fn kernel(kernel: &Kernel, all: u64) -> Vec<Cell> {
    vec![
        Cell::Name(kernel.name.clone()),
        Cell::of(kernel.shape.clone(), Cell::Text),
        Cell::Count(kernel.launches),
        Cell::of(kernel.in_graphs, Cell::Count),
        Cell::of(kernel.captured, Cell::Count),
        Cell::Share(kernel.runs() as f64 / all.max(1) as f64),
        Cell::Count(kernel.failed),
        Cell::of(kernel.p50_ns, Cell::Duration),
        Cell::of(kernel.p99_ns, Cell::Duration),
        Cell::of(kernel.max_ns, Cell::Duration),
    ]
}

pub(super) fn copies(report: &Report) -> Chapter {
    let columns = vec![
        Column::text("copies"),
        Column::number("count"),
        Column::number("bytes").bar(),
        Column::number("bandwidth"),
        Column::number("in calls"),
    ];
    let section = Section {
        about: bytes(report.copied_bytes()),
        table: Table::flat(columns, report.copies.iter().map(copy)).of("kind"),
        ..Section::default()
    };
    Chapter::of("copies", "Copies", "Copies", section)
}

fn copy(copies: &Copies) -> Vec<Cell> {
    let speed = |rate| match copies.at_least {
        true => Cell::AtLeast(Box::new(Cell::Bandwidth(rate))),
        false => Cell::Bandwidth(rate),
    };
    vec![
        Cell::Text(words::copies(copies)),
        Cell::Count(copies.count),
        Cell::Bytes(copies.bytes),
        Cell::of(copies.bytes_per_second, speed),
        Cell::Duration(copies.call_ns),
    ]
}
