//! Where the host waited for devices: calls that say so, and those that do not. Rows have call sites as parts.

use super::super::waits::elsewhere;
use super::super::{Hidden, Report, Wait, WaitSite, words};
use crate::section::{Cell, Chapter, Column, Row, Section, Table};

pub(super) fn waits(report: &Report) -> Chapter {
    Chapter {
        id: "waits",
        name: "Waiting",
        title: "Waiting for the GPU".to_owned(),
        sections: vec![asked(report), unasked(report)],
    }
}

/// Calls from one place, or from none that is known.
struct Part {
    site: Cell,
    calls: u64,
    ns: u64,
}

fn parts(calls: u64, ns: u64, sites: &[WaitSite]) -> Vec<Part> {
    let rest = elsewhere(calls, ns, sites).filter(|_| !sites.is_empty());
    let known = sites.iter().map(|site| Part {
        site: Cell::site(site.site.clone()),
        calls: site.calls,
        ns: site.total_ns,
    });
    let rest = rest.map(|(calls, ns)| Part {
        site: Cell::Unknown,
        calls,
        ns,
    });
    known.chain(rest).collect()
}

fn asked(report: &Report) -> Section {
    let columns = vec![
        Column::text("call"),
        Column::text("from").after(" at "),
        Column::number("total").bar(),
        Column::number("calls"),
        Column::number("mean"),
        Column::number("max").in_lines(),
    ];
    Section {
        about: words::waiting(report),
        table: Table::new(columns, report.waits.iter().map(wait).collect()).counting("call", 3, "wait"),
        ..Section::default()
    }
}

fn wait(wait: &Wait) -> Row {
    let row = |site: Cell, calls: u64, ns: u64, max_ns: Option<u64>| {
        vec![
            Cell::Name(wait.name.clone()),
            site,
            Cell::Duration(ns),
            Cell::Count(calls),
            Cell::of(ns.checked_div(calls), Cell::Duration),
            Cell::of(max_ns, Cell::Duration),
        ]
    };
    let parts = parts(wait.calls, wait.total_ns, &wait.sites);
    Row {
        cells: row(Cell::Unknown, wait.calls, wait.total_ns, Some(wait.max_ns)),
        parts: parts
            .into_iter()
            .map(|part| {
                let alone = part.calls == wait.calls;
                row(part.site, part.calls, part.ns, alone.then_some(wait.max_ns))
            })
            .collect(),
    }
}

fn unasked(report: &Report) -> Section {
    let columns = vec![
        Column::text("why it waits"),
        Column::text("from").after(" at "),
        Column::number("total").bar(),
        Column::number("calls"),
    ];
    let (_, measured) = report.hidden_ns();
    let legend = match measured {
        true => "",
        false => "; ≤: inferred, not all of that time need be waiting",
    };
    Section {
        title: Some("Waits that nobody asked for".to_owned()),
        about: format!("some may be among those above{legend}"),
        table: Table::new(columns, report.hidden.iter().map(hidden).collect()).counting("kind", 3, "call"),
        ..Section::default()
    }
}

fn hidden(wait: &Hidden) -> Row {
    let row = |site: Cell, calls: u64, ns: u64| {
        let total = match wait.at_most {
            true => Cell::AtMost(Box::new(Cell::Duration(ns))),
            false => Cell::Duration(ns),
        };
        vec![Cell::Text(words::hidden(wait)), site, total, Cell::Count(calls)]
    };
    let parts = parts(wait.calls, wait.total_ns, &wait.sites);
    Row {
        cells: row(Cell::Unknown, wait.calls, wait.total_ns),
        parts: parts
            .into_iter()
            .map(|part| row(part.site, part.calls, part.ns))
            .collect(),
    }
}
