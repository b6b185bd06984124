//! Why devices had nothing to do.

use super::super::Report;
use crate::model::snapshot::executed::{Device, IdleCause};
use crate::section::{Cell, Chapter, Column, Part, Section, Table};
use crate::text::quantity::{duration, share_down};

/// Causes that are shown of the whole run, where those of its steady part are.
const FEW: usize = 3;

pub(super) fn waited(report: &Report) -> Chapter {
    let devices = report.totals.gpu.iter().flat_map(|gpu| &gpu.devices);
    let mut devices: Vec<&Device> = devices.filter(|device| !device.idle_causes.is_empty()).collect();
    devices.sort_by_key(|device| std::cmp::Reverse(device.idle_ns));
    Chapter {
        id: "waited",
        name: "Why idle",
        title: "Why the GPU waited".to_owned(),
        sections: devices.into_iter().flat_map(sections).collect(),
    }
}

fn sections(device: &Device) -> Vec<Section> {
    let whose = format!("Why the GPU waited, process {}, device {}", device.pid, device.device);
    let Some(steady) = device.steady.as_ref().filter(|_| device.is_measured()) else {
        return vec![section(device, whose, &device.idle_causes, device.idle_ns, "")];
    };
    let of = duration(steady.of_ns());
    let whole = section(
        device,
        format!(
            "The same with start-up and end, process {}, device {}",
            device.pid, device.device
        ),
        &device.idle_causes,
        device.idle_ns,
        "",
    );
    let few = Table {
        few: FEW,
        ..whole.table
    };
    vec![
        section(
            device,
            whose,
            &steady.idle_causes,
            steady.idle_ns,
            &format!(" in the {of} between start-up and end"),
        ),
        Section { table: few, ..whole },
    ]
}

fn section(device: &Device, title: String, causes: &[IdleCause], idle_ns: u64, part: &str) -> Section {
    let columns = vec![
        Column::text("because"),
        Column::text("from").after(" at "),
        Column::number("time").bar(),
        Column::number("share"),
        Column::number("gaps"),
        Column::number("longest"),
    ];
    let known = causes.iter().filter(|cause| cause.is_known());
    let known = super::super::sum(known.map(|cause| cause.idle_ns));
    let share = share_down(known, idle_ns).unwrap_or_default();
    let most = if device.is_measured() { "" } else { "at most " };
    let rows = causes.iter().map(|cause| row(cause, idle_ns));
    Section {
        title: Some(title),
        about: format!(
            "known of {share} of {most}{}{part} ({})",
            duration(idle_ns),
            device.certainty
        ),
        table: Table::flat(columns, rows).of("cause"),
        ..Section::default()
    }
}

fn row(cause: &IdleCause, idle_ns: u64) -> Vec<Cell> {
    vec![
        Cell::Text(cause.words()),
        Cell::site_of(
            cause.place.clone(),
            Part::of(cause.where_percent, cause.where_estimated),
        ),
        Cell::Duration(cause.idle_ns),
        Cell::Share(cause.idle_ns as f64 / idle_ns.max(1) as f64),
        Cell::Count(cause.gaps),
        Cell::Duration(cause.longest_ns),
    ]
}
