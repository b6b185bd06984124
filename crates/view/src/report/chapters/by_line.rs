//! Which line of the program the GPU's time went to.

use super::super::Report;
use crate::model::snapshot::executed::{Executed, Site};
use crate::section::{Cell, Chapter, Column, Section, Table};
use crate::sink::by_site::without_launches;
use crate::text::quantity::duration;

pub(super) fn by_line(report: &Report) -> Chapter {
    let nothing = Executed::default();
    let executed = report.totals.gpu.as_ref().unwrap_or(&nothing);
    let sites = executed.by_site.as_deref().unwrap_or_default();
    let section = match sites.is_empty() {
        true => Section::default(),
        false => section(executed, sites),
    };
    Chapter::of("by-line", "By line", "GPU time, by line of the program", section)
}

fn section(executed: &Executed, sites: &[Site]) -> Section {
    let rest = executed.unattributed_ns.unwrap_or(0);
    let known = super::super::sum(sites.iter().map(|site| site.total_ns));
    let all = known.saturating_add(rest).max(1);
    let columns = vec![
        Column::text("kernel"),
        Column::text("from").after(" at "),
        Column::number("time").bar(),
        Column::number("share"),
        Column::number("runs"),
    ];
    let row = |site: &Site| {
        vec![
            Cell::Name(site.kernel.clone()),
            Cell::site(site.place.clone()),
            Cell::Duration(site.total_ns),
            Cell::Share(site.total_ns as f64 / all as f64),
            Cell::Count(site.runs),
        ]
    };
    let launched = executed
        .devices
        .iter()
        .any(|device| device.kernels > 0 || device.graphs > 0);
    let names = sites.iter().map(|site| site.kernel.as_str());
    let share = rest as f64 * 100.0 / all as f64;
    Section {
        about: format!("{} of {}", duration(known), duration(all)),
        lines: vec![format!(
            "{} ({share:.1} %) belongs to no line that is known{}",
            duration(rest),
            without_launches(launched, names)
        )],
        table: Table::flat(columns, sites.iter().map(row)).counting("line", 4, "run"),
        ..Section::default()
    }
}
