//! Calls: by function, the slowest, and those that failed.

use super::super::{Failure, Function, Layer, Report, Slow, site};
use crate::section::{Cell, Chapter, Column, Section, Table};
use crate::sink::functions::{self, FunctionRow};
use crate::text::quantity::{count, duration, plural};

pub(super) fn functions(report: &Report) -> Chapter {
    Chapter {
        id: "functions",
        name: "Functions",
        title: "Functions".to_owned(),
        sections: report.layers.iter().map(layer).collect(),
    }
}

fn layer(layer: &Layer) -> Section {
    let (calls, errors) = (plural(layer.calls, "call"), count(layer.errors));
    let table = Table::flat(functions::columns(), layer.functions.iter().map(function));
    Section {
        title: Some(format!("{} layer", layer.layer)),
        about: format!("{calls}, {errors} failed, {}", duration(layer.total_ns)),
        table: table.counting("function", functions::CALLS, "call"),
        ..Section::default()
    }
}

fn function(function: &Function) -> Vec<Cell> {
    let row = FunctionRow {
        name: Cell::Name(function.name.clone()),
        class: function.category,
        calls: function.calls,
        errors: function.errors,
        total_ns: function.total_ns,
        p50_ns: function.p50_ns,
        p99_ns: function.p99_ns,
        max_ns: function.max_ns,
        bytes: function.bytes,
    };
    row.cells()
}

pub(super) fn slowest(report: &Report) -> Chapter {
    let columns = vec![
        Column::number("took"),
        Column::number("at"),
        Column::text("call"),
        Column::text("result"),
        Column::text("thread").after(" in "),
        Column::text("from").after(" at "),
    ];
    let section = Section {
        table: Table::flat(columns, report.slowest.iter().map(|call| slow(call).into())).of("call"),
        ..Section::default()
    };
    Chapter::of("slowest", "Slowest", "Slowest calls", section)
}

fn slow(slow: &Slow) -> [Cell; 6] {
    let result = match (slow.failed, slow.result.clone()) {
        (true, result) => Cell::Error(result.unwrap_or_else(|| "failed".to_owned())),
        (false, result) => Cell::of(result, Cell::Aside),
    };
    let stack = slow.stack.as_deref().map(site::lines).unwrap_or_default();
    [
        Cell::Duration(slow.ns),
        Cell::Moment(slow.at_ns),
        Cell::Call {
            name: slow.name.clone(),
            args: slow.args.clone().unwrap_or_default(),
        },
        result,
        Cell::Text(format!("{} {}/{}", slow.comm, slow.pid, slow.tid)),
        Cell::of(slow.site.clone(), |place| Cell::Site { place, stack }),
    ]
}

pub(super) fn unreturned(report: &Report) -> Chapter {
    let columns = vec![
        Column::number("open for"),
        Column::number("since"),
        Column::text("call"),
        Column::text("thread").after(" in "),
        Column::text("from").after(" at "),
    ];
    let open = &report.unreturned;
    let section = Section {
        about: match open.count {
            0 => String::new(),
            count => format!("{} under way at the end of the recording", plural(count, "call")),
        },
        table: Table::flat(columns, open.longest.iter().map(unreturned_call)).of("call"),
        unfolded: true,
        ..Section::default()
    };
    Chapter::of("unreturned", "Open", "Calls that had not returned", section)
}

fn unreturned_call(open: &Slow) -> Vec<Cell> {
    let [open_for, since, call, _no_result_yet, thread, from] = slow(open);
    vec![open_for, since, call, thread, from]
}

pub(super) fn failures(report: &Report) -> Chapter {
    let columns = vec![
        Column::text("error"),
        Column::text("call").after(" from "),
        Column::number("calls"),
        Column::number("first"),
        Column::text("from").after(" at "),
    ];
    let section = Section {
        table: Table::flat(columns, report.failures.iter().map(failure)).of("error"),
        unfolded: true,
        ..Section::default()
    };
    Chapter::of("failures", "Errors", "Failed calls", section)
}

fn failure(failure: &Failure) -> Vec<Cell> {
    vec![
        Cell::Error(failure.error.clone()),
        Cell::Name(failure.name.clone()),
        Cell::Count(failure.count),
        Cell::of(failure.first_ns, Cell::Moment),
        Cell::of(failure.site.clone(), Cell::site),
    ]
}
