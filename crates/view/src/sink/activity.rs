//! What devices have executed, in the summary: as text and as JSON.

use super::ALL_IN;
use super::by_site;
use super::causes;
use super::work::Stacks;
use crate::catalog::CopyKind;
use crate::model::activity::{
    BROKEN_OFF, CopyTotal, Coverage, DeviceReport, GIVEN, KernelTotal, LOCKED_OUT, LimitedBy, Matching, OverheadTotal,
    Report, Sampled, Seen, Total, missing_words, part_words, windows_words,
};
use crate::model::work::Certainty;
use crate::section::text::Ink;
use crate::section::{self, Cell, Column, Table};
use crate::text::quantity::{bytes, count, duration, escaped, plural, share_down};
use serde_json::{Value, json};
use std::collections::BTreeSet;
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
        "coverage": report.coverage.iter().map(coverage_json).collect::<Vec<_>>(),
        "overheads": report.overheads.iter().map(overhead_json).collect::<Vec<_>>(),
        "refused": report.refused,
        "matched": {"activities": report.matching.looked_for, "ordered": report.matching.found},
    });
    by_site::add_json(report, stacks, full, &mut all);
    all
}

fn micros(ns: u64) -> Value {
    json!(ns as f64 / 1e3)
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

fn coverage_json(coverage: &Coverage) -> Value {
    json!({
        "pid": coverage.pid,
        "comm": coverage.comm,
        "seen": coverage.seen == Seen::Yes,
        "why": why_not(coverage),
        "cupti": Some(&coverage.library).filter(|library| !library.is_empty()),
        "version": Some(&coverage.version).filter(|version| !version.is_empty()),
        "lost": coverage.lost,
        "dropped": coverage.dropped,
        "invalid": coverage.invalid,
        "malformed": coverage.malformed,
        "overheads": coverage.tells_overheads,
        "untimed_overheads": coverage.untimed_overheads,
        "early": coverage.early,
        "late": coverage.late,
        "windows": coverage.windows.as_ref().map(windows_json),
        "other_cupti": Some(&coverage.other).filter(|other| !other.is_empty()),
        "gives_way": coverage.gives_way,
        "given_ns": coverage.given_ns,
        "broken_off": coverage.broken_off,
        "goes_on": coverage.goes_on,
        "clock": if coverage.fitted_clock { "fitted" } else { "asked" },
    })
}

fn windows_json(windows: &Sampled) -> Value {
    json!({
        "length_us": micros(windows.length_ns),
        "period_us": micros(windows.period_ns),
        "number": windows.number,
        "unopened": windows.unopened,
        "of_us": micros(windows.of_ns),
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
    let of_cupti = [holders(report), stays(report)].into_iter().flatten();
    for line in of_cupti.filter(|_| !report.devices.is_empty()) {
        let _ = writeln!(out, "{line}");
    }
    for line in coverage_lines(report) {
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
    causes::to_text(device, stacks, out);
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

/// What CUPTI took for itself, of each process.
fn overhead_lines(report: &Report) -> Vec<String> {
    let mut lines: Vec<(u32, String)> = Vec::new();
    for OverheadTotal { pid, kind, total } in &report.overheads {
        let words = format!(
            "{} {} in {}, the longest {}",
            kind.name(),
            duration(total.ns),
            plural(total.count, "time"),
            duration(total.max_ns)
        );
        match lines.last_mut().filter(|(last, _)| last == pid) {
            Some((_, line)) => *line += &format!("; {words}"),
            None => lines.push((*pid, words)),
        }
    }
    let lines = lines.into_iter();
    lines
        .map(|(pid, words)| format!("  CUPTI's own overhead in process {pid}: {words}"))
        .take(FEW)
        .collect()
}

/// How much was seen, and what to do where that is not all.
fn coverage_lines(report: &Report) -> Vec<String> {
    let refused = report.refused.iter().map(|why| format!("  not seen: {}", escaped(why)));
    let own = report.coverage.iter().filter_map(coverage_line);
    let given = report.coverage.iter().filter_map(given_line);
    let early = report.coverage.iter().filter_map(early_line);
    let others = report.coverage.iter().filter_map(other_line);
    let mut lines: Vec<String> = refused.chain(own).chain(given).chain(others).chain(early).collect();
    if report.devices.is_empty() && !lines.is_empty() {
        lines.insert(0, "\nGPU, as executed (CUPTI)".to_owned());
    }
    lines
}

/// Which CUPTI was asked, and what that keeps from others.
fn holders(report: &Report) -> Option<String> {
    let all = report.coverage.iter();
    let holds = |one: &&Coverage| one.seen == Seen::Yes && one.given_ns.is_none() && !one.library.is_empty();
    let holding: Vec<&Coverage> = all.filter(holds).collect();
    let named = holding
        .iter()
        .map(|one| format!("{} ({})", one.version, escaped(&one.library)));
    let named: Vec<String> = named.collect::<BTreeSet<String>>().into_iter().collect();
    let of_others = match holding.iter().all(|one| one.gives_way) {
        true => {
            "a profiler in the program (torch.profiler) gets it as soon as it asks, and gpuscope has no more of it then"
        }
        false => "while it is held, a profiler in the program (torch.profiler) sees no GPU; hint: --gpu off",
    };
    (!named.is_empty()).then(|| format!("  CUPTI {}; {of_others}", named.join(", ")))
}

/// Programs that CUPTI stays in.
fn stays(report: &Report) -> Option<String> {
    let running = report.coverage.iter().filter(|one| one.goes_on);
    let named: Vec<String> = running
        .map(|one| format!("{} {}", escaped(&one.comm), one.pid))
        .take(FEW)
        .collect();
    (!named.is_empty()).then(|| {
        format!(
            "  CUPTI stays in {} until that ends, and takes some of its time even while nobody asks",
            named.join(", ")
        )
    })
}

fn coverage_line(coverage: &Coverage) -> Option<String> {
    let who = format!("{} {}", escaped(&coverage.comm), coverage.pid);
    if let Some(why) = why_not(coverage) {
        return Some(format!("  not seen of {who}: {}", escaped(&why)));
    }
    let (lost, dropped) = (coverage.lost, coverage.dropped);
    let mut words = missing_words(lost, dropped, coverage.invalid, coverage.malformed);
    if coverage.untimed_overheads > 0 {
        let number = plural(coverage.untimed_overheads, "record");
        words.push(format!(
            "{number} of CUPTI's own overhead without times that make sense"
        ));
    }
    let unopened = coverage.windows.map_or(0, |windows| windows.unopened);
    if unopened > 0 {
        words.push(format!("{} that CUPTI refused to open", plural(unopened, "window")));
    }
    if coverage.late {
        words.push("some of the idle time is none: records came seconds later than others".to_owned());
    }
    if coverage.broken_off {
        words.push(BROKEN_OFF.to_owned());
    }
    (!words.is_empty()).then(|| format!("  missing of {who}: {}", words.join("; ")))
}

/// Of a program that profiles itself.
fn given_line(coverage: &Coverage) -> Option<String> {
    let who = format!("{} {}", escaped(&coverage.comm), coverage.pid);
    coverage.given_ns.map(|_| format!("  {who} {GIVEN}"))
}

/// Of a program that has another CUPTI, too.
fn other_line(coverage: &Coverage) -> Option<String> {
    let who = format!("{} {}", escaped(&coverage.comm), coverage.pid);
    let other = escaped(&coverage.other);
    (!other.is_empty()).then(|| {
        format!(
            "  {who} has loaded another CUPTI ({other}): {LOCKED_OUT}; hint: --gpu off, or have it use the one above"
        )
    })
}

/// What contradicts itself.
fn early_line(coverage: &Coverage) -> Option<String> {
    let who = format!("{} {}", escaped(&coverage.comm), coverage.pid);
    let number = count(coverage.early);
    (coverage.early > 0).then(|| {
        format!(
            "  {number} of {who} began before the call whose turn it was: CUPTI's clock is off, or calls were not seen"
        )
    })
}

/// Why nothing was seen of a process, and the cure.
fn why_not(coverage: &Coverage) -> Option<String> {
    let library = &coverage.library;
    Some(match &coverage.seen {
        Seen::Yes => return None,
        Seen::Absent => {
            "no CUPTI was found; hint: pip install nvidia-cuda-cupti, or GPUSCOPE_CUPTI=PATH/libcupti.so.13".to_owned()
        }
        Seen::Held => format!("another tool holds CUPTI ({library}); hint: run without the profiler, or --gpu off"),
        Seen::TooNew => format!(
            "CUPTI {} ({library}) is too new for the driver; hint: GPUSCOPE_CUPTI=PATH of an older libcupti.so",
            coverage.version
        ),
        Seen::TooOld => {
            format!("{library} lacks what is needed; hint: GPUSCOPE_CUPTI=PATH of libcupti.so of CUDA 11.8 or later")
        }
        Seen::Refused { step, error } => {
            format!("CUPTI ({library}) refused {step}: error {error}; hint: --gpu off says nothing of it")
        }
    })
}
