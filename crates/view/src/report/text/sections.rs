//! Totals, one section for each thing; what there is nothing of is left out.

use super::super::{Function, Idle, Kernel, Layer, Report, Slow, at_least, sum, words};
use super::{Ink, table};
use crate::sink::outside;
use crate::text::quantity::{bytes, count, duration, escaped, plural};
use std::fmt::Write;

/// Rows of a table; the rest is one line.
const SHOWN: usize = 12;

pub(super) fn write(report: &Report, ink: Ink, out: &mut String) {
    in_short(report, ink, out);
    for layer in &report.layers {
        functions(layer, ink, out);
    }
    slowest(report, ink, out);
    kernels(report, ink, out);
    copies(report, ink, out);
    waits(report, ink, out);
    report.idle.iter().for_each(|idle| idleness(idle, ink, out));
    outside(report, ink, out);
    memory(report, ink, out);
    failures(report, ink, out);
    processes(report, ink, out);
    xids(report, ink, out);
    honesty(report, ink, out);
}

fn head(title: &str, ink: Ink, out: &mut String) {
    let _ = writeln!(out, "\n{}", ink.strong(title));
}

fn optional(ns: Option<u64>) -> String {
    ns.map_or_else(|| "-".to_owned(), duration)
}

fn in_short(report: &Report, ink: Ink, out: &mut String) {
    head("In short", ink, out);
    let seconds = report.wall_ns() as f64 / 1e9;
    let mut line = |name: &str, value: String| {
        let _ = writeln!(out, "  {name:<18}{value}");
    };
    if let Some(layer) = report.cuda() {
        line(
            "calls",
            format!("{} of the {} layer", count(layer.calls), escaped(&layer.layer)),
        );
    }
    line("failed", words::figure(report.failed()));
    let launches = report.launches();
    let rate = words::per_second(launches.number as f64 / seconds.max(1e-9));
    line("launches", format!("{}, {rate}", words::figure(launches)));
    words::graphs(report).into_iter().for_each(|graphs| line("", graphs));
    line("copied", bytes(report.copied_bytes()));
    line("waiting", words::waiting(report));
    words::unasked(report).into_iter().for_each(|more| line("", more));
    for idle in report.idle.iter().take(3) {
        let word = if idle.inferred { "inferred:" } else { "at least" };
        line("GPU idle", format!("{word} {} of process {}", idle.words(), idle.pid));
    }
    if let Some(peak) = report.memory.peak_bytes() {
        line("memory", format!("{} at the peak of one process", bytes(peak)));
    }
    if let Some(driver) = &report.driver {
        let share = driver.in_calls_ns as f64 / driver.cuda_ns.max(1) as f64;
        line(
            "kernel driver",
            format!(
                "{} of the time in CUDA calls, {}",
                words::percent(share.min(1.0)),
                plural(driver.calls, "call")
            ),
        );
    }
}

fn functions(layer: &Layer, ink: Ink, out: &mut String) {
    let title = format!(
        "{} layer: {}, {} failed, {}",
        escaped(&layer.layer),
        plural(layer.calls, "call"),
        count(layer.errors),
        duration(layer.total_ns)
    );
    head(&title, ink, out);
    let row = |function: &Function| {
        vec![
            count(function.calls),
            function.errors.map_or_else(|| "-".to_owned(), count),
            optional(function.total_ns),
            optional(function.mean_ns()),
            optional(function.p50_ns),
            optional(function.p99_ns),
            optional(function.max_ns),
            if function.bytes > 0 {
                bytes(function.bytes)
            } else {
                "-".to_owned()
            },
            table::name(&function.name),
        ]
    };
    let rows: Vec<Vec<String>> = layer.functions.iter().take(SHOWN).map(row).collect();
    let heads = [
        "calls", "errors", "total", "mean", "~p50", "~p99", "max", "bytes", "function",
    ];
    table::write(&heads, &rows, out);
    let rest = layer.functions.get(SHOWN..).unwrap_or_default();
    let calls = sum(rest.iter().map(|function| function.calls));
    more(rest.len(), "function", Some(calls), out);
}

/// What a table leaves out.
fn more(number: usize, what: &str, calls: Option<u64>, out: &mut String) {
    if number > 0 {
        let calls = calls.map_or_else(String::new, |calls| format!(", {}", plural(calls, "call")));
        let _ = writeln!(
            out,
            "  … {}{calls} (--html, --json)",
            plural(number as u64, &format!("more {what}"))
        );
    }
}

fn slowest(report: &Report, ink: Ink, out: &mut String) {
    if report.slowest.is_empty() {
        return;
    }
    head("Slowest calls", ink, out);
    let row = |slow: &Slow| {
        let place = slow
            .site
            .as_ref()
            .map_or_else(String::new, |site| format!("  at {site}"));
        let result = if slow.failed {
            slow.result.as_deref().unwrap_or("failed")
        } else {
            ""
        };
        vec![
            words::at(slow.at_ns),
            duration(slow.ns),
            format!("{}/{}", slow.pid, slow.tid),
            format!("{} {}{place}", table::name(&slow.name), ink.bad(&escaped(result)))
                .trim_end()
                .to_owned(),
        ]
    };
    let rows: Vec<Vec<String>> = report.slowest.iter().map(row).collect();
    table::write(&["at", "took", "pid/tid", "call"], &rows, out);
}

fn kernels(report: &Report, ink: Ink, out: &mut String) {
    if report.kernels.is_empty() {
        return;
    }
    head(&format!("Kernels: {}", words::kernels(report)), ink, out);
    let all = sum(report.kernels.iter().map(Kernel::runs));
    let rows: Vec<Vec<String>> = report
        .kernels
        .iter()
        .take(SHOWN)
        .map(|kernel| {
            let shape = kernel
                .shape
                .as_ref()
                .map_or_else(String::new, |shape| format!(" {shape}"));
            vec![
                count(kernel.launches),
                kernel.in_graphs.map_or_else(|| "-".to_owned(), count),
                words::percent(kernel.runs() as f64 / all.max(1) as f64),
                optional(kernel.p50_ns),
                optional(kernel.p99_ns),
                format!("{}{shape}{}", table::name(&kernel.name), captured(kernel)),
            ]
        })
        .collect();
    table::write(
        &[
            "launches",
            "in graphs",
            "share",
            "~p50",
            "~p99",
            "kernel (times: of the launching call)",
        ],
        &rows,
        out,
    );
    more(report.kernels.len().saturating_sub(SHOWN), "kernel", None, out);
}

/// Calls that ran nothing.
fn captured(kernel: &Kernel) -> String {
    match kernel.captured {
        None | Some(0) => String::new(),
        Some(calls) => format!(" ({} of the calls captured)", count(calls)),
    }
}

fn copies(report: &Report, ink: Ink, out: &mut String) {
    if report.copies.is_empty() {
        return;
    }
    head(&format!("Copies: {}", bytes(report.copied_bytes())), ink, out);
    let rows: Vec<Vec<String>> = report
        .copies
        .iter()
        .take(SHOWN)
        .map(|copies| {
            vec![
                count(copies.count),
                bytes(copies.bytes),
                words::speed(copies),
                duration(copies.call_ns),
                words::copies(copies),
            ]
        })
        .collect();
    table::write(&["count", "bytes", "bandwidth", "in calls", "copies"], &rows, out);
}

fn waits(report: &Report, ink: Ink, out: &mut String) {
    if !report.waits.is_empty() {
        head(&format!("Waiting for the GPU: {}", words::waiting(report)), ink, out);
        asked(report, out);
    }
    if !report.hidden.is_empty() {
        let (_, measured) = report.hidden_ns();
        let legend = match measured {
            true => "",
            false => "; ≤: inferred, not all of that time need be waiting",
        };
        let title = format!("Waits that nobody asked for (some may be among those above{legend})");
        head(&title, ink, out);
        unasked(report, out);
    }
}

fn unasked(report: &Report, out: &mut String) {
    let mut rows = Vec::new();
    for wait in &report.hidden {
        let sign = if wait.at_most { "≤ " } else { "" };
        let total = format!("{sign}{}", duration(wait.total_ns));
        rows.push(vec![total, count(wait.calls), words::hidden(wait)]);
        for site in wait.sites.iter().take(3) {
            let total = format!("{sign}{}", duration(site.total_ns));
            rows.push(vec![total, count(site.calls), format!("  at {}", site.site)]);
        }
    }
    table::write(&["total", "calls", "why it waits"], &rows, out);
}

fn asked(report: &Report, out: &mut String) {
    let mut rows = Vec::new();
    for wait in report.waits.iter().take(SHOWN) {
        let mean = wait.total_ns.checked_div(wait.calls).unwrap_or(0);
        rows.push(vec![
            duration(wait.total_ns),
            count(wait.calls),
            duration(mean),
            duration(wait.max_ns),
            table::name(&wait.name),
        ]);
        for site in wait.sites.iter().take(3) {
            let mean = site.total_ns.checked_div(site.calls).unwrap_or(0);
            let cells = [
                duration(site.total_ns),
                count(site.calls),
                duration(mean),
                String::new(),
            ];
            let place = format!("  at {}", site.site);
            rows.push(cells.into_iter().chain([place]).collect());
        }
    }
    table::write(&["total", "calls", "mean", "max", "call"], &rows, out);
}

fn outside(report: &Report, ink: Ink, out: &mut String) {
    let lines = outside::lines(&report.outside);
    if !lines.is_empty() {
        head(outside::TITLE, ink, out);
    }
    for line in lines {
        let _ = writeln!(out, "  {line}");
    }
}

fn idleness(idle: &Idle, ink: Ink, out: &mut String) {
    let word = if idle.inferred { "" } else { "at least " };
    let label = if idle.inferred { " (inferred)" } else { "" };
    let title = format!(
        "GPU idle: process {} had nothing at work for {word}{} in {}{label}",
        idle.pid,
        idle.words(),
        plural(idle.gaps, "gap")
    );
    head(&title, ink, out);
    if idle.likely_ns.saturating_sub(idle.total_ns) > idle.window_ns / 100 {
        let _ = writeln!(
            out,
            "  {} ({}) if streams that were given nothing for a second are done (inferred)",
            duration(idle.likely_ns),
            at_least(idle.likely_ns, idle.window_ns)
        );
    }
    for gap in idle.longest.iter().take(3) {
        let mostly = gap
            .mostly_in
            .as_deref()
            .map_or_else(|| "in no call".to_owned(), |name| format!("in {}", escaped(name)));
        let _ = writeln!(
            out,
            "  {} from {} on, the host mostly {mostly}",
            duration(gap.ns),
            words::at(gap.at_ns)
        );
    }
    let meanwhile: Vec<String> = idle
        .meanwhile
        .iter()
        .filter(|one| one.ns > 0)
        .take(5)
        .map(|one| match one.name.as_str() {
            "" => format!("{} in no call", duration(one.ns)),
            name => format!("{} in {}", duration(one.ns), escaped(name)),
        })
        .collect();
    if !meanwhile.is_empty() {
        let line = format!(
            "the host meanwhile, in gaps of 20 µs and more: {}",
            meanwhile.join(", ")
        );
        out.push_str(&format!("  {}", super::wrapped(&line, "  ")));
    }
}

fn memory(report: &Report, ink: Ink, out: &mut String) {
    let memory = &report.memory;
    if memory.processes.is_empty() && memory.allocations + memory.frees == 0 {
        return;
    }
    head("Memory", ink, out);
    let _ = writeln!(
        out,
        "  {} of {} in {}, {} in {}",
        plural(memory.allocations, "allocation"),
        bytes(memory.allocated_bytes),
        duration(memory.allocation_ns),
        plural(memory.frees, "free"),
        duration(memory.free_ns)
    );
    for process in memory.processes.iter().take(5) {
        let _ = writeln!(
            out,
            "  process {} held at most {} (at {}), last {}",
            process.pid,
            bytes(process.peak_bytes),
            words::at(process.peak_at_ns),
            bytes(process.last_bytes)
        );
    }
    for site in memory.sites.iter().take(5) {
        let _ = writeln!(
            out,
            "  {:>12} in {} at {}",
            bytes(site.bytes),
            plural(site.allocations, "allocation"),
            site.site
        );
    }
}

fn failures(report: &Report, ink: Ink, out: &mut String) {
    if report.failures.is_empty() {
        return;
    }
    head("Failed calls", ink, out);
    let rows: Vec<Vec<String>> = report
        .failures
        .iter()
        .take(SHOWN)
        .map(|failure| {
            let place = failure
                .site
                .as_ref()
                .map_or_else(String::new, |site| format!(" at {site}"));
            vec![
                count(failure.count),
                failure.first_ns.map_or_else(|| "-".to_owned(), words::at),
                format!(
                    "{} from {}{place}",
                    ink.bad(&escaped(&failure.error)),
                    table::name(&failure.name)
                ),
            ]
        })
        .collect();
    table::write(&["calls", "first", "error"], &rows, out);
    more(report.failures.len().saturating_sub(SHOWN), "error", None, out);
}

fn processes(report: &Report, ink: Ink, out: &mut String) {
    if report.processes.is_empty() {
        return;
    }
    head("Processes", ink, out);
    let rows: Vec<Vec<String>> = report
        .processes
        .iter()
        .take(SHOWN)
        .map(|process| {
            let busy = sum(process.threads.iter().map(|thread| thread.in_calls_ns));
            vec![
                process.pid.to_string(),
                count(process.calls),
                count(process.failed),
                duration(busy),
                plural(process.thread_count as u64, "thread"),
                table::name(&process.comm),
            ]
        })
        .collect();
    table::write(&["pid", "calls", "failed", "in calls", "", "name"], &rows, out);
    more(report.processes.len().saturating_sub(SHOWN), "process", None, out);
}

fn xids(report: &Report, ink: Ink, out: &mut String) {
    if report.xids.is_empty() {
        return;
    }
    head("Faults that the driver reported", ink, out);
    for xid in report.xids.iter().take(SHOWN) {
        let text = |key: &str| xid.fields.get(key).and_then(|value| value.as_str()).unwrap_or_default();
        let line = format!(
            "{}  {} {} {}: {}",
            words::at(xid.at_ns),
            text("name"),
            text("pci"),
            text("comm"),
            text("meaning")
        );
        let _ = writeln!(out, "  {}", escaped(&line));
    }
}

fn honesty(report: &Report, ink: Ink, out: &mut String) {
    out.push('\n');
    for lost in report.losses.functions.iter().take(SHOWN) {
        let _ = writeln!(
            out,
            "lost: {} of {} without rows",
            plural(lost.count, "call"),
            escaped(&lost.name)
        );
    }
    if report.losses.calls == 0 {
        let _ = writeln!(out, "{}", ink.weak("lost: nothing"));
    }
    for unseen in report.unseen() {
        out.push_str(&super::wrapped(&format!("unseen: {}", escaped(unseen)), "  "));
    }
    let cost = &report.totals.cost;
    if !cost.is_null() {
        let seconds = |key: &str| cost[key].as_f64().unwrap_or(0.0);
        let line = format!(
            "cost of tracing: about {} in the program, {:.2} s CPU and {} in gpuscope",
            duration((seconds("program_seconds") * 1e9) as u64),
            seconds("tracer_cpu_seconds"),
            bytes(cost["tracer_rss_bytes"].as_u64().unwrap_or(0))
        );
        let _ = writeln!(out, "{}", ink.weak(&line));
    }
}
