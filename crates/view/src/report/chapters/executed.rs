//! What devices have executed, and when they were busy, as CUPTI has told it.

mod occupancy;

use super::super::{Report, at_least};
use crate::model::activity::{Total, locked_out_words, part_words};
use crate::model::snapshot::executed::{Coverage, Device, Executed, Kernel, Matched};
use crate::section::words::percent;
use crate::section::{Cell, Chapter, Column, Section, Table};
use crate::sink::activity;
use crate::text::quantity::{self, bytes, count, duration, plural};
use std::collections::BTreeMap;

pub(super) fn executed(report: &Report) -> Chapter {
    let nothing = Executed::default();
    let executed = report.totals.gpu.as_ref().unwrap_or(&nothing);
    let columns = vec![
        Column::text("kernel"),
        Column::number("time").bar(),
        Column::number("share"),
        Column::number("runs"),
        Column::number("mean"),
        Column::number("max"),
        Column::number("occupancy").rare(),
        Column::text("limited by").after(", limited by ").rare(),
    ];
    let kernels = by_name(executed);
    let all: u64 = super::super::sum(kernels.iter().map(|(_, kernel)| kernel.total_ns));
    let rows = kernels.iter().map(|(name, kernel)| row(name, kernel, all));
    let table = match kernels.is_empty() {
        true => Table::default(),
        false => Table::flat(columns, rows).counting("kernel", 3, "run"),
    };
    let section = Section {
        about: if kernels.is_empty() {
            String::new()
        } else {
            format!("{} of kernels", duration(all))
        },
        lines: executed
            .devices
            .iter()
            .map(|device| line(device) + &in_windows(executed, device))
            .chain(occupancy::line(executed))
            .chain(overheads(executed))
            .chain(matched(executed))
            .chain(unseen(executed))
            .chain(missing(executed))
            .chain(untold(executed))
            .chain(others(executed))
            .chain(early(executed))
            .collect(),
        table,
        ..Section::default()
    };
    Chapter::of("executed", "GPU", "GPU, as executed", section)
}

/// Of all devices, most time first.
fn by_name(executed: &Executed) -> Vec<(&str, Kernel)> {
    let mut all: BTreeMap<&str, Kernel> = BTreeMap::new();
    for kernel in executed.devices.iter().flat_map(|device| &device.by_kernel) {
        let sum = all.entry(kernel.name.as_deref().unwrap_or("?")).or_default();
        sum.runs = sum.runs.saturating_add(kernel.runs);
        sum.total_ns = sum.total_ns.saturating_add(kernel.total_ns);
        sum.max_ns = sum.max_ns.max(kernel.max_ns);
        occupancy::join(sum, kernel);
    }
    let mut all: Vec<(&str, Kernel)> = all.into_iter().collect();
    all.sort_by_key(|(_, kernel)| std::cmp::Reverse(kernel.total_ns));
    all
}

fn row(name: &str, kernel: &Kernel, all: u64) -> Vec<Cell> {
    vec![
        Cell::Name(name.to_owned()),
        Cell::Duration(kernel.total_ns),
        Cell::Share(kernel.total_ns as f64 / all.max(1) as f64),
        Cell::Count(kernel.runs),
        Cell::Duration(kernel.total_ns / kernel.runs.max(1)),
        Cell::Duration(kernel.max_ns),
        Cell::of(kernel.occupancy_percent, |percent| {
            Cell::AtMost(Box::new(Cell::Share(percent / 1e2)))
        }),
        Cell::of(kernel.limited_by.clone(), Cell::Text),
    ]
}

fn line(device: &Device) -> String {
    let window = device.window_ns();
    let (least, most, share) = match device.is_measured() {
        true => ("", "", at_least(device.idle_ns, window)),
        false => (
            " at least",
            " at most",
            percent(device.idle_ns as f64 / window.max(1) as f64),
        ),
    };
    format!(
        "process {}, device {}: busy{least} {} of {}, idle{most} {} ({share}) in {}, the longest {} ({}); {}",
        device.pid,
        device.device,
        duration(device.busy_ns),
        duration(window),
        duration(device.idle_ns),
        plural(device.idle_gaps, "gap"),
        duration(device.longest_idle_ns),
        device.certainty,
        work(device)
    )
}

/// Which part of the time was measured, where that was not all of it.
fn in_windows(executed: &Executed, device: &Device) -> String {
    let windows = executed.windows_of(device.pid);
    windows.map_or_else(String::new, |windows| {
        let part = part_words(device.window_ns(), windows.of_ns);
        format!("; {part}: {}", windows.words())
    })
}

/// What it was busy with.
fn work(device: &Device) -> String {
    let mut words = vec![plural(device.kernels, "kernel")];
    if device.graphs > 0 {
        let (number, time) = (count(device.graphs), duration(device.graph_ns));
        words.push(format!("{number} launches of graphs, each as a whole, {time}"));
    }
    words.extend(device.copies.iter().map(|copies| {
        let direction = copies.direction.as_deref().unwrap_or_default();
        let copy = format!("{direction} copy");
        let number = plural(copies.count, copy.trim_start());
        format!("{number} {} {}", bytes(copies.bytes), duration(copies.total_ns))
    }));
    if device.memsets > 0 {
        words.push(format!(
            "{} {}",
            plural(device.memsets, "memset"),
            duration(device.memset_ns)
        ));
    }
    words.join("; ")
}

fn overheads(executed: &Executed) -> impl Iterator<Item = String> {
    activity::overheads(executed.overheads.iter().map(|one| {
        let total = Total {
            count: one.count,
            ns: one.total_ns,
            max_ns: one.max_ns,
        };
        (one.pid, one.kind.as_str(), total)
    }))
}

/// How many activities lead to their calls.
fn matched(executed: &Executed) -> Option<String> {
    let Matched { activities, ordered } = executed.matched;
    let share = quantity::share_down(ordered, activities)?;
    Some(format!(
        "calls found for {share} of {}, by their order on streams",
        count(activities)
    ))
}

fn early(executed: &Executed) -> impl Iterator<Item = String> {
    let early = executed.coverage.iter().filter(|one| one.early > 0);
    early.map(|one| {
        let number = count(one.early);
        format!(
            "{number} of {} {} began before the call whose turn it was",
            one.comm, one.pid
        )
    })
}

/// Programs that went on without our CUPTI, or with less of it.
fn untold(executed: &Executed) -> impl Iterator<Item = String> {
    let words = |one: &Coverage| {
        let who = format!("{} {}", one.comm, one.pid);
        let all = one.untold_words();
        all.map(move |words| format!("{who} {words}"))
    };
    executed.coverage.iter().flat_map(words)
}

/// Programs that have another CUPTI, too.
fn others(executed: &Executed) -> impl Iterator<Item = String> {
    let all = executed.coverage.iter();
    all.filter_map(|one| {
        let other = one.other.as_ref()?;
        Some(format!("{} {} {}", one.comm, one.pid, locked_out_words(other)))
    })
}

fn unseen(executed: &Executed) -> impl Iterator<Item = String> {
    let unseen = executed.coverage.iter();
    unseen.filter_map(|one| Some(format!("not seen of {} {}: {}", one.comm, one.pid, one.why.as_ref()?)))
}

fn missing(executed: &Executed) -> impl Iterator<Item = String> {
    let missing = executed.coverage.iter().filter(|one| one.missing() > 0);
    missing.map(|one| {
        format!(
            "missing of {} {}: {}",
            one.comm,
            one.pid,
            one.missing_words().join(", ")
        )
    })
}
