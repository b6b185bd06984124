//! What devices have executed, in the summary: as text and as JSON.

use super::ALL_IN;
use super::by_site;
use super::causes;
use super::coverage;
use super::micros;
use super::work::Stacks;
use crate::catalog::CopyKind;
use crate::model::activity::{
    CopyTotal, DeviceReport, KernelTotal, LimitedBy, Matching, OverheadTotal, Report, Total, part_words, windows_words,
};
use crate::model::work::Certainty;
use crate::section::text::Ink;
use crate::section::{self, Cell, Column, Table};
use crate::text::quantity::{bytes, count, duration, escaped, plural, share_down};
use serde_json::{Value, json};
use std::fmt::Write;

/// Devices of processes that are shown, and kernels of each.
const FEW: usize = 8;
const KERNELS: usize = 10;

/// All of it.
#[must_use]
pub(crate) fn to_json(report: &Report, stacks: &Stacks, full: bool) -> Value {
    let devices = report.devices.iter();
    let devices = devices.map(|device| device_json(device, report, stacks, full));
    let mut all = json!({
        "devices": devices.collect::<Vec<_>>(),
        "coverage": report.coverage.iter().map(coverage::to_json).collect::<Vec<_>>(),
        "overheads": report.overheads.iter().map(overhead_json).collect::<Vec<_>>(),
        "refused": report.refused,
        "matched": {"activities": report.matching.looked_for, "ordered": report.matching.found},
    });
    by_site::add_json(report, stacks, full, &mut all);
    all
}

fn device_json(device: &DeviceReport, report: &Report, stacks: &Stacks, full: bool) -> Value {
    let span = &device.span;
    let copies = device.copies.iter().map(|copies| {
        json!({"direction": copies.direction.map(CopyKind::name), "count": copies.total.count, "bytes": copies.bytes,
            "total_us": micros(copies.total.ns)})
    });
    let kernels = device.by_kernel.iter().map(|kernel| {
        json!({"kernel": shown(kernel, full), "symbol": kernel.name.as_ref().map(|name| &name.symbol),
            "runs": kernel.total.count, "total_us": micros(kernel.total.ns), "max_us": micros(kernel.total.max_ns),
            "occupancy_percent": occupancy_of(kernel).map(|share| (share * 1e4).round() / 1e2), "limited_by": limit_of(kernel)})
    });
    json!({
        "pid": device.pid,
        "device": device.device,
        "kernels": device.kernels.count,
        "kernel_us": micros(device.kernels.ns),
        "in_graphs": device.in_graphs,
        "memsets": device.memsets.count,
        "memset_us": micros(device.memsets.ns),
        "graphs": device.graphs.count,
        "graph_us": micros(device.graphs.ns),
        "copies": copies.collect::<Vec<_>>(),
        "by_kernel": kernels.collect::<Vec<_>>(),
        "other_kernels": device.other_kernels.count,
        "first_ns": span.first,
        "last_ns": span.last,
        "busy_us": micros(span.busy_ns),
        "idle_us": micros(span.idle_ns()),
        "unmeasured_us": micros(span.unmeasured_ns),
        "idle_gaps": span.gaps,
        "longest_idle_us": micros(span.longest_gap_ns),
        "idle_causes": causes::to_json(&device.causes, stacks),
        "steady": causes::steady_json(device, stacks),
        "certainty": certainty_of(device, report).name(),
    })
}

fn overhead_json(overhead: &OverheadTotal) -> Value {
    let total = &overhead.total;
    json!({
        "pid": overhead.pid,
        "kind": overhead.kind.name(),
        "count": total.count,
        "total_us": micros(total.ns),
        "max_us": micros(total.max_ns),
    })
}

fn certainty_of(device: &DeviceReport, report: &Report) -> Certainty {
    match report.is_measured(device) {
        true => Certainty::Measured,
        false => Certainty::Bound,
    }
}

/// The section of the summary; empty where no process has started CUDA.
#[must_use]
pub(crate) fn to_text(report: &Report, stacks: &Stacks, full: bool) -> String {
    let mut out = String::new();
    if !report.devices.is_empty() {
        out.push_str("\nGPU, as executed (CUPTI)\n");
    }
    let mut devices: Vec<&DeviceReport> = report.devices.iter().collect();
    devices.sort_by_key(|device| std::cmp::Reverse(device.span.busy_ns));
    for device in devices.iter().take(FEW) {
        device_text(device, report, stacks, full, &mut out);
    }
    if devices.len() > FEW {
        let more = plural((devices.len() - FEW) as u64, "more device");
        let _ = writeln!(out, "  {more} of processes ({ALL_IN})");
    }
    for line in overhead_lines(report) {
        let _ = writeln!(out, "{line}");
    }
    by_site::to_text(report, stacks, full, &mut out);
    let Matching { looked_for, found } = report.matching;
    if let Some(share) = share_down(found, looked_for) {
        let all = count(looked_for);
        let _ = writeln!(out, "  calls found for {share} of {all}, by their order on streams");
    }
    let of_cupti = [coverage::holders(report), coverage::stays(report)]
        .into_iter()
        .flatten();
    for line in of_cupti.filter(|_| !report.devices.is_empty()) {
        let _ = writeln!(out, "{line}");
    }
    for line in coverage::lines(report) {
        let _ = writeln!(out, "{line}");
    }
    out
}

fn device_text(device: &DeviceReport, report: &Report, stacks: &Stacks, full: bool, out: &mut String) {
    let comm = report.coverage.iter().find(|coverage| coverage.pid == device.pid);
    let comm = comm.map_or("process", |coverage| coverage.comm.as_str());
    let _ = writeln!(out, "  {} {}, device {}", escaped(comm), device.pid, device.device);
    let span = &device.span;
    let window = span.measured_ns();
    let share = |ns: u64| ns as f64 * 100.0 / window.max(1) as f64;
    let certainty = certainty_of(device, report);
    let (least, most) = match certainty {
        Certainty::Measured => ("", ""),
        _ => (" at least", " at most"),
    };
    let _ = writeln!(
        out,
        "    busy{least} {} of {} ({:.1} %), idle{most} {} ({:.1} %) in {}, the longest {} ({})",
        duration(span.busy_ns),
        duration(window),
        share(span.busy_ns),
        duration(span.idle_ns()),
        share(span.idle_ns()),
        plural(span.gaps, "gap"),
        duration(span.longest_gap_ns),
        certainty.name()
    );
    if let Some(windows) = report.windows_of(device.pid) {
        let number = windows_words(windows.number, windows.length_ns, windows.period_ns);
        let part = part_words(window, windows.of_ns);
        let _ = writeln!(
            out,
            "    {part}: {number}; {} nothing is known but what calls prove",
            if windows.period_ns > 0 {
                "between them"
            } else {
                "from then on"
            }
        );
    }
    causes::to_text(device, most, stacks, out);
    let _ = writeln!(out, "    {}", work_words(device));
    kernels_text(device, full, out);
}

fn work_words(device: &DeviceReport) -> String {
    let timed = |total: &Total, one: &str| format!("{} {}", plural(total.count, one), duration(total.ns));
    let graphs = match device.in_graphs {
        0 => String::new(),
        number => format!(" ({} of them in graphs)", count(number)),
    };
    let mut words = vec![timed(&device.kernels, "kernel") + &graphs];
    if device.graphs.count > 0 {
        words.push(timed(&device.graphs, "graph launch") + ", each as a whole");
    }
    words.extend(device.copies.iter().map(copy_words));
    if device.memsets.count > 0 {
        words.push(timed(&device.memsets, "memset"));
    }
    words.join("; ")
}

fn copy_words(copies: &CopyTotal) -> String {
    let direction = copies.direction.map_or("", CopyKind::name);
    let what = format!("{direction} copy");
    format!(
        "{} {} {}",
        plural(copies.total.count, what.trim_start()),
        bytes(copies.bytes),
        duration(copies.total.ns)
    )
}

fn kernels_text(device: &DeviceReport, full: bool, out: &mut String) {
    if device.by_kernel.is_empty() {
        return;
    }
    let columns = vec![
        Column::text("kernel"),
        Column::number("time"),
        Column::number("share"),
        Column::number("runs"),
        Column::number("mean"),
        Column::number("max"),
        Column::number("occupancy").rare(),
        Column::text("limited by").after(", limited by ").rare(),
    ];
    let all = device.kernels.ns.max(1);
    let rows = device.by_kernel.iter().map(|kernel| {
        let total = &kernel.total;
        vec![
            Cell::Text(shown(kernel, full).unwrap_or("?").to_owned()),
            Cell::Duration(total.ns),
            Cell::Share(total.ns as f64 / all as f64),
            Cell::Count(total.count),
            Cell::Duration(total.ns / total.count.max(1)),
            Cell::Duration(total.max_ns),
            Cell::of(occupancy_of(kernel), |share| Cell::AtMost(Box::new(Cell::Share(share)))),
            Cell::of(limit_of(kernel), |limit| Cell::Text(limit.to_owned())),
        ]
    });
    let table = Table::flat(columns, rows).counting("kernel", 3, "run");
    let table = Table {
        few: KERNELS,
        all_in: ALL_IN,
        ..table.wide(&[10, 7, 10, 10, 10, 10])
    };
    section::text::table(&table, Ink(false), out);
}

/// Theoretical, of 1.
fn occupancy_of(kernel: &KernelTotal) -> Option<f64> {
    kernel.occupied.share(&kernel.total)
}

fn limit_of(kernel: &KernelTotal) -> Option<&'static str> {
    occupancy_of(kernel)
        .and(kernel.occupied.limited_by())
        .map(LimitedBy::name)
}

fn shown(kernel: &KernelTotal, full: bool) -> Option<&str> {
    let name = kernel.name.as_ref()?;
    Some(if full { &name.full } else { &name.short })
}

fn overhead_lines(report: &Report) -> Vec<String> {
    let all = report.overheads.iter();
    let lines = overheads(all.map(|OverheadTotal { pid, kind, total }| (*pid, kind.name(), *total)));
    lines.map(|line| format!("  {line}")).take(FEW).collect()
}

/// What CUPTI took for itself, a line for each process; those of one process stand side by side.
pub(crate) fn overheads<'a>(all: impl Iterator<Item = (u32, &'a str, Total)>) -> impl Iterator<Item = String> {
    let mut lines: Vec<(u32, String)> = Vec::new();
    for (pid, kind, total) in all {
        let words = format!(
            "{kind} {} in {}, the longest {}",
            duration(total.ns),
            plural(total.count, "time"),
            duration(total.max_ns)
        );
        match lines.last_mut().filter(|(last, _)| *last == pid) {
            Some((_, line)) => *line += &format!("; {words}"),
            None => lines.push((pid, words)),
        }
    }
    let line = |(pid, words)| format!("CUPTI's own overhead in process {pid}: {words}");
    lines.into_iter().map(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cupti_took_for_itself_is_a_line_for_each_process() {
        let took = |count, ns, max_ns| Total { count, ns, max_ns };
        let all = [
            (7, "buffer-flush", took(2, 3_000, 2_000)),
            (7, "resource", took(1, 500, 500)),
            (8, "resource", took(1, 900, 900)),
        ];
        let lines: Vec<String> = overheads(all.into_iter()).collect();
        assert_eq!(
            lines,
            [
                "CUPTI's own overhead in process 7: buffer-flush 3.0 µs in 2 times, the longest 2.0 µs; \
                 resource 500 ns in 1 time, the longest 500 ns",
                "CUPTI's own overhead in process 8: resource 900 ns in 1 time, the longest 900 ns",
            ]
        );
    }
}
