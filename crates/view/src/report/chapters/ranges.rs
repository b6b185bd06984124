//! Phases as the program calls them.

use super::super::Report;
use super::super::ranges::{Mark, Range};
use crate::section::{Cell, Chapter, Column, Section, Table};
use crate::text::quantity::duration;

pub(super) fn ranges(report: &Report) -> Chapter {
    let columns = vec![
        Column::text("range"),
        Column::text("domain").after(" of "),
        Column::number("count"),
        Column::number("not ended").rare(),
        Column::number("total").bar(),
        Column::number("~p50"),
        Column::number("max"),
        Column::number("GPU").rare(),
    ];
    let ranges = &report.ranges;
    let rows = ranges.ranges.iter().map(|one| range(one, ranges.gpu_at_least));
    let section = Section {
        lines: explained(report),
        table: match ranges.ranges.is_empty() {
            true => Table::default(),
            false => Table::flat(columns, rows).counting("range", 2, "time"),
        },
        ..Section::default()
    };
    let mut chapter = Chapter::of("ranges", "Ranges", "Ranges (NVTX)", section);
    chapter.sections.push(marks(&ranges.marks));
    chapter
}

fn explained(report: &Report) -> Vec<String> {
    let ranges = &report.ranges;
    if ranges.ranges.is_empty() {
        return Vec::new();
    }
    let mut lines = vec!["Times are the host's; those of ranges within others are in both.".to_owned()];
    if let Some(outside) = ranges.gpu_outside_ns {
        lines.push(format!(
            "GPU: what devices did for calls of which it was the innermost range; {} were for none of them.",
            duration(outside)
        ));
    }
    lines
}

fn range(range: &Range, at_least: bool) -> Vec<Cell> {
    let gpu = |ns| match at_least {
        true => Cell::AtLeast(Box::new(Cell::Duration(ns))),
        false => Cell::Duration(ns),
    };
    vec![
        Cell::Name(range.name.clone()),
        domain(&range.domain),
        Cell::Count(range.count),
        Cell::Count(range.open),
        Cell::Duration(range.total_ns),
        Cell::of(range.p50_ns, Cell::Duration),
        Cell::Duration(range.max_ns),
        Cell::of(range.gpu_ns, gpu),
    ]
}

fn domain(domain: &str) -> Cell {
    match domain {
        "" => Cell::Unknown,
        domain => Cell::Name(domain.to_owned()),
    }
}

fn marks(marks: &[Mark]) -> Section {
    let columns = vec![
        Column::text("mark"),
        Column::text("domain").after(" of "),
        Column::number("count"),
    ];
    let row = |mark: &Mark| {
        vec![
            Cell::Name(mark.name.clone()),
            domain(&mark.domain),
            Cell::Count(mark.count),
        ]
    };
    Section {
        title: Some("Marks (NVTX)".to_owned()),
        table: match marks.is_empty() {
            true => Table::default(),
            false => Table::flat(columns, marks.iter().map(row)).counting("mark", 2, "time"),
        },
        ..Section::default()
    }
}
