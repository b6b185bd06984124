//! Who made calls, and what the driver reported of devices.

use super::super::{Process, Report, Thread, Xid, sum};
use crate::section::{Cell, Chapter, Column, Row, Section, Table};
use crate::text::quantity::plural;

pub(super) fn processes(report: &Report) -> Chapter {
    let columns = vec![
        Column::text("process"),
        Column::text("thread").after(", "),
        Column::number("calls"),
        Column::number("failed").in_lines(),
        Column::number("in calls"),
        Column::number("on a CPU").on_pages(),
        Column::number("waiting for a CPU").on_pages(),
    ];
    let table = Table::new(columns, report.processes.iter().map(process).collect()).of("process");
    let section = Section {
        table: Table { few_parts: 0, ..table },
        ..Section::default()
    };
    Chapter::of("processes", "Processes", "Processes and threads", section)
}

fn process(process: &Process) -> Row {
    let name = Cell::Text(format!("{} {}", process.comm, process.pid));
    let busy = sum(process.threads.iter().map(|thread| thread.in_calls_ns));
    let cells = vec![
        name.clone(),
        Cell::Text(plural(process.thread_count as u64, "thread")),
        Cell::Count(process.calls),
        Cell::Count(process.failed),
        Cell::Duration(busy),
        Cell::Unknown,
        Cell::Unknown,
    ];
    let parts = process.threads.iter().map(|one| thread(name.clone(), one)).collect();
    Row { cells, parts }
}

fn thread(process: Cell, thread: &Thread) -> Vec<Cell> {
    vec![
        process,
        Cell::Text(format!("{} {}", thread.comm, thread.tid)),
        Cell::Count(thread.calls),
        Cell::Unknown,
        Cell::Duration(thread.in_calls_ns),
        Cell::of(thread.cpu_ns, Cell::Duration),
        Cell::of(thread.runnable_ns, Cell::Duration),
    ]
}

pub(super) fn xids(report: &Report) -> Chapter {
    let columns = vec![
        Column::number("at"),
        Column::text("fault"),
        Column::text("device"),
        Column::text("process"),
        Column::text("meaning").after(": "),
        Column::text("do").on_pages(),
    ];
    let section = Section {
        table: Table::flat(columns, report.xids.iter().map(xid)).of("fault"),
        unfolded: true,
        ..Section::default()
    };
    Chapter::of("xids", "Faults", "Faults that the driver reported", section)
}

fn xid(xid: &Xid) -> Vec<Cell> {
    let said = |key: &str| {
        let text = xid.fields.get(key).and_then(|value| value.as_str());
        Cell::of(text.map(str::to_owned), Cell::Text)
    };
    let words = ["name", "pci", "comm", "meaning", "action_words"].map(said);
    [Cell::Moment(xid.at_ns)].into_iter().chain(words).collect()
}
