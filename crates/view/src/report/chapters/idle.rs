//! When devices had nothing to do, and what the host did meanwhile.

use super::super::idle::share_words;
use super::super::{Gap, Idle, Meanwhile, Report, at_least};
use crate::model::activity::Why;
use crate::section::{Cell, Chapter, Column, Section, Table};
use crate::text::quantity::{duration, plural};

/// Gaps of a process that are told one by one where there is little room.
const GAPS: usize = 3;
/// The same of what the host did.
const MEANWHILE: usize = 5;
const NO_CALL: &str = "no CUDA call";
/// The gap was told of when calls around it were not remembered any more.
const NOT_KNOWN: &str = "not known";

pub(super) fn idle(report: &Report) -> Chapter {
    Chapter {
        id: "idle",
        name: "Idle",
        title: "GPU idle, and what the host did meanwhile".to_owned(),
        sections: report
            .idle
            .iter()
            .flat_map(|one| std::iter::once(gaps(one)).chain(meanwhile(one)))
            .collect(),
    }
}

fn gaps(idle: &Idle) -> Section {
    let has_causes = idle.longest.iter().any(|gap| gap.cause.is_some());
    let mut columns = vec![
        Column::number("took"),
        Column::number("at"),
        Column::text("the host mostly in"),
    ];
    columns.extend(has_causes.then(|| Column::text("cause").after(": ")));
    let (word, label) = match (idle.measured, idle.inferred) {
        (true, _) => ("", " (measured)"),
        (false, true) => ("", " (inferred)"),
        (false, false) => ("at least ", ""),
    };
    let gaps = format!(
        "{}, the longest {}",
        plural(idle.gaps, "gap"),
        duration(idle.longest_ns)
    );
    let table = Table::flat(columns, idle.longest.iter().map(|one| gap(one, has_causes))).of("gap");
    Section {
        title: Some(format!("GPU idle, process {}", idle.pid)),
        about: format!("{word}{} in {gaps}{label}", idle.words()),
        lines: likely(idle).into_iter().collect(),
        table: Table { few: GAPS, ..table },
        ..Section::default()
    }
}

fn likely(idle: &Idle) -> Option<String> {
    (idle.likely_ns.saturating_sub(idle.total_ns) > idle.window_ns / 100).then(|| {
        let (time, share) = (duration(idle.likely_ns), at_least(idle.likely_ns, idle.window_ns));
        format!("{time} ({share}) if streams that were given nothing for a second are done (inferred)")
    })
}

fn gap(gap: &Gap, has_causes: bool) -> Vec<Cell> {
    let mut cells = vec![
        Cell::Duration(gap.ns),
        Cell::Moment(gap.at_ns),
        match gap.host_known {
            true => within(gap.mostly_in.as_deref().unwrap_or_default()),
            false => Cell::Text(NOT_KNOWN.to_owned()),
        },
    ];
    cells.extend(has_causes.then(|| Cell::of(gap.cause, |cause| Cell::Text(cause.to_owned()))));
    cells
}

/// Where most of it is not known, the causes of gaps say more.
fn meanwhile(idle: &Idle) -> Option<Section> {
    let (of_ns, known_ns) = (idle.meanwhile_of_ns, idle.meanwhile_known_ns);
    let about = match known_ns < of_ns {
        false => String::new(),
        true => format!("; known of {} of them", share_words(known_ns, of_ns)),
    };
    if known_ns < of_ns / 2
        && idle
            .longest
            .iter()
            .any(|gap| gap.cause.is_some_and(|cause| cause != Why::Other.name()))
    {
        return None;
    }
    let columns = vec![
        Column::text("the host in"),
        Column::number("time, all threads together").bar(),
    ];
    let row = |one: &Meanwhile| vec![within(&one.name), Cell::Duration(one.ns)];
    let table = Table::flat(columns, idle.meanwhile.iter().filter(|one| one.ns > 0).map(row));
    Some(Section {
        title: Some(format!("The host meanwhile, process {}", idle.pid)),
        about: format!("in gaps of 20 µs and more{about}"),
        table: Table {
            few: MEANWHILE,
            ..table.of("function")
        },
        ..Section::default()
    })
}

fn within(name: &str) -> Cell {
    match name {
        "" => Cell::Text(NO_CALL.to_owned()),
        name => Cell::Name(name.to_owned()),
    }
}
