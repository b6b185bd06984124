//! Memory of devices: who held it, and who asked for it.

use super::super::{Held, MemorySite, Report};
use crate::section::{Cell, Chapter, Column, Section, Table};
use crate::text::quantity::{bytes, duration, plural};

/// Rows where there is little room.
const FEW: usize = 5;

pub(super) fn memory(report: &Report) -> Chapter {
    Chapter {
        id: "memory",
        name: "Memory",
        title: "Memory".to_owned(),
        sections: vec![held(report), sites(report)],
    }
}

fn held(report: &Report) -> Section {
    let columns = vec![
        Column::text("process"),
        Column::number("peak").bar(),
        Column::number("at"),
        Column::number("held last"),
    ];
    let table = Table::flat(columns, report.memory.holders().map(process)).of("process");
    Section {
        lines: asked(report).into_iter().chain(late(report)).collect(),
        table: Table { few: FEW, ..table },
        ..Section::default()
    }
}

/// `3,735 allocations of 426.6 GiB in 328.9 ms, 3,721 frees in 1.79 s`; `None`: nothing of that.
fn asked(report: &Report) -> Option<String> {
    let memory = &report.memory;
    (memory.allocations > 0 || memory.frees > 0 || memory.holders().next().is_some()).then(|| {
        let taken = plural(memory.allocations, "allocation");
        let (size, time) = (bytes(memory.allocated_bytes), duration(memory.allocation_ns));
        let freed = plural(memory.frees, "free");
        format!("{taken} of {size} in {time}, {freed} in {}", duration(memory.free_ns))
    })
}

/// Which processes may have held more.
fn late(report: &Report) -> Option<String> {
    let late = report.memory.processes.iter().filter(|held| held.late);
    let pids: Vec<String> = late.map(|held| held.pid.to_string()).collect();
    (!pids.is_empty()).then(|| {
        format!(
            "attached late to {}: what was allocated before is not known, and is in no number here",
            pids.join(", ")
        )
    })
}

fn process(held: &Held) -> Vec<Cell> {
    vec![
        Cell::Text(held.pid.to_string()),
        Cell::Bytes(held.peak_bytes),
        Cell::Moment(held.peak_at_ns),
        Cell::Bytes(held.last_bytes),
    ]
}

fn sites(report: &Report) -> Section {
    let columns = vec![
        Column::text("asked for at"),
        Column::number("allocations"),
        Column::number("bytes in all").bar(),
    ];
    let table = Table::flat(columns, report.memory.sites.iter().map(site)).of("place");
    Section {
        title: Some("Memory, by who asked for it".to_owned()),
        table: Table { few: FEW, ..table },
        ..Section::default()
    }
}

fn site(site: &MemorySite) -> Vec<Cell> {
    vec![
        Cell::site(site.site.clone()),
        Cell::Count(site.allocations),
        Cell::Bytes(site.bytes),
    ]
}
