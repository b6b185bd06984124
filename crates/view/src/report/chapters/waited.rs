//! Why devices had nothing to do.

use super::super::Report;
use crate::model::snapshot::executed::{Device, IdleCause};
use crate::section::{Cell, Chapter, Column, Section, Table};
use crate::text::quantity::{duration, share_down};

pub(super) fn waited(report: &Report) -> Chapter {
    let devices = report.totals.gpu.iter().flat_map(|gpu| &gpu.devices);
    let mut devices: Vec<&Device> = devices.filter(|device| !device.idle_causes.is_empty()).collect();
    devices.sort_by_key(|device| std::cmp::Reverse(device.idle_ns));
    Chapter {
        id: "waited",
        name: "Why idle",
        title: "Why the GPU waited".to_owned(),
        sections: devices.into_iter().map(section).collect(),
    }
}

fn section(device: &Device) -> Section {
    let columns = vec![
        Column::text("because"),
        Column::text("from").after(" at "),
        Column::number("time").bar(),
        Column::number("share"),
        Column::number("gaps"),
        Column::number("longest"),
    ];
    let known = device.idle_causes.iter().filter(|cause| cause.is_known());
    let known = super::super::sum(known.map(|cause| cause.idle_ns));
    let share = share_down(known, device.idle_ns).unwrap_or_default();
    let most = if device.is_measured() { "" } else { "at most " };
    let rows = device.idle_causes.iter().map(|cause| row(cause, device.idle_ns));
    Section {
        title: Some(format!(
            "Why the GPU waited, process {}, device {}",
            device.pid, device.device
        )),
        about: format!(
            "known of {share} of {most}{} ({})",
            duration(device.idle_ns),
            device.certainty
        ),
        table: Table::flat(columns, rows).of("cause"),
        ..Section::default()
    }
}

fn row(cause: &IdleCause, idle_ns: u64) -> Vec<Cell> {
    vec![
        Cell::Text(cause.words()),
        Cell::of(cause.place.clone(), Cell::site),
        Cell::Duration(cause.idle_ns),
        Cell::Share(cause.idle_ns as f64 / idle_ns.max(1) as f64),
        Cell::Count(cause.gaps),
        Cell::Duration(cause.longest_ns),
    ]
}
