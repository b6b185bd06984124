//! The report as one page that needs nothing from any network.
//!
//! Every text of the trace goes through `Text`; the page forbids scripts but its own, and all connections.

mod findings;
mod plot;
mod plots;
mod table;
mod tables;
mod written;

use super::{Report, words};
use crate::text::quantity::{bytes, count, duration, plural};
use std::fmt::Write;
use written::Text;

const STYLE: &str = include_str!("html/page.css");
const SCRIPT: &str = include_str!("html/page.js");
/// Only what has it may run.
const NONCE: &str = "gpuscope-report";
/// Three rising bars.
const ICON: &str = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Crect \
                    width='16' height='16' rx='3' fill='%23356b00'/%3E%3Cpath d='M4.5 12V9M8 12V6.5M11.5 12V4' \
                    stroke='white' stroke-width='2' stroke-linecap='round'/%3E%3C/svg%3E";

/// The whole page.
#[must_use]
pub fn page(report: &Report) -> String {
    let title = words::title(report);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; \
         style-src 'unsafe-inline'; script-src 'nonce-{NONCE}'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title} – gpuscope</title>\n<link rel=\"icon\" href=\"{ICON}\">\n<style>\n{STYLE}</style>\n\
         </head>\n<body>\n",
        title = Text(&title),
    );
    header(report, &title, &mut page);
    page.push_str("<main>\n");
    notes(report, &mut page);
    tiles(report, &mut page);
    findings::write(report, &mut page);
    plots::write(report, &mut page);
    tables::write(report, &mut page);
    footer(report, &mut page);
    let _ = write!(
        page,
        "</main>\n<script nonce=\"{NONCE}\">\n{SCRIPT}</script>\n</body>\n</html>\n"
    );
    page
}

fn header(report: &Report, title: &str, page: &mut String) {
    let about = words::circumstances(report).join(" · ");
    let _ = write!(
        page,
        "<header>\n<div class=\"bar\">\n<span class=\"brand\">gpuscope</span>\n<nav>\n"
    );
    for (id, name) in sections(report) {
        let _ = writeln!(page, "<a href=\"#{id}\">{name}</a>");
    }
    let _ = write!(
        page,
        "</nav>\n<button id=\"theme\" type=\"button\" aria-label=\"light or dark\">◐</button>\n</div>\n\
         <h1>{}</h1>\n<p class=\"about\">{}</p>\n</header>\n",
        Text(title),
        Text(&about)
    );
}

/// Those that have something to say.
fn sections(report: &Report) -> Vec<(&'static str, &'static str)> {
    let all = [
        ("findings", "Findings", true),
        ("time", "Over time", !report.rates.steps.is_empty()),
        ("functions", "Functions", !report.layers.is_empty()),
        ("slowest", "Slowest", !report.slowest.is_empty()),
        ("kernels", "Kernels", !report.kernels.is_empty()),
        ("copies", "Copies", !report.copies.is_empty()),
        (
            "waits",
            "Waiting",
            !report.waits.is_empty() || !report.hidden.is_empty(),
        ),
        ("idle", "Idle", !report.idle.is_empty()),
        (
            "memory",
            "Memory",
            !report.memory.processes.is_empty() || report.memory.allocations > 0,
        ),
        ("failures", "Errors", !report.failures.is_empty()),
        ("processes", "Processes", !report.processes.is_empty()),
    ];
    all.into_iter()
        .filter(|(.., there)| *there)
        .map(|(id, name, _)| (id, name))
        .collect()
}

fn notes(report: &Report, page: &mut String) {
    for note in &report.notes {
        let _ = writeln!(page, "<p class=\"note\">{}</p>", Text(note));
    }
}

fn tiles(report: &Report, page: &mut String) {
    let wall = report.wall_ns().max(1) as f64;
    let head = duration(report.wall_ns());
    let mut all: Vec<(String, &str, String, bool)> = vec![(head, "from first to last call", String::new(), false)];
    if let Some(layer) = report.cuda() {
        let rate = words::per_second(layer.calls as f64 / wall * 1e9);
        all.push((
            count(layer.calls),
            "CUDA calls",
            format!("{rate}, {} layer", layer.layer),
            false,
        ));
    }
    let launches = report.launches();
    let rate = words::per_second(launches.number as f64 / wall * 1e9);
    let layer = |note: Option<String>| note.map_or_else(String::new, |note| format!(", {note}"));
    let more = format!("{rate}{}", layer(launches.note()));
    all.push((count(launches.number), "launches", more, false));
    let graphs = report.graphs().unwrap_or_default();
    if graphs.launches > 0 {
        let more = format!("in {}", plural(graphs.launches, "graph launch"));
        all.push((count(graphs.kernels), "kernels of graphs", more, false));
    }
    let rate = words::bandwidth(report.copied_bytes() as f64 / wall * 1e9);
    all.push((
        bytes(report.copied_bytes()),
        "copied",
        format!("{rate} on average"),
        false,
    ));
    all.push((
        duration(report.wait_ns()),
        "waiting in calls",
        words::unasked(report).unwrap_or_else(|| "all threads together".to_owned()),
        false,
    ));
    if let Some(idle) = report.idle.first() {
        let share = super::at_least(idle.total_ns, idle.window_ns);
        let more = format!("{share} of {}, process {}", duration(idle.window_ns), idle.pid);
        all.push((format!("≥ {}", duration(idle.total_ns)), "GPU idle", more, false));
    }
    if let Some(held) = report.memory.processes.first() {
        let more = format!("process {}, at {}", held.pid, words::at(held.peak_at_ns));
        all.push((bytes(held.peak_bytes), "memory peak", more, false));
    }
    let failed = report.failed();
    if failed.number > 0 {
        let more = failed.note().unwrap_or_default();
        all.push((count(failed.number), "failed calls", more, true));
    }
    if !report.xids.is_empty() {
        all.push((count(report.xids.len() as u64), "faults (Xid)", String::new(), true));
    }
    page.push_str("<div class=\"tiles\">\n");
    for (value, name, more, bad) in all {
        let class = if bad { " bad" } else { "" };
        let (value, more) = (Text(&value), Text(&more));
        let _ = writeln!(
            page,
            "<div class=\"tile{class}\"><b>{value}</b><span>{name}</span><small>{more}</small></div>"
        );
    }
    page.push_str("</div>\n");
}

fn footer(report: &Report, page: &mut String) {
    page.push_str("<footer>\n");
    for lost in report.losses.functions.iter().take(20) {
        let _ = writeln!(
            page,
            "<p>lost: {} calls of {} have no row</p>",
            count(lost.count),
            Text(&lost.name)
        );
    }
    if report.losses.calls == 0 {
        page.push_str("<p>lost: nothing</p>\n");
    }
    for unseen in report.unseen() {
        let _ = writeln!(page, "<p>unseen: {}</p>", Text(unseen));
    }
    let cost = &report.totals.cost;
    if !cost.is_null() {
        let seconds = |key: &str| cost[key].as_f64().unwrap_or(0.0);
        let _ = writeln!(
            page,
            "<p>cost of tracing: about {} in the program, {:.2} s CPU and {} in gpuscope</p>",
            duration((seconds("program_seconds") * 1e9) as u64),
            seconds("tracer_cpu_seconds"),
            bytes(cost["tracer_rss_bytes"].as_u64().unwrap_or(0))
        );
    }
    let meta = report.source.meta.as_ref();
    let attach = meta.map_or("", |meta| meta.tier.as_str());
    let _ = write!(
        page,
        "<p>gpuscope {}, hooked by {}, from {}</p>\n</footer>\n",
        env!("CARGO_PKG_VERSION"),
        Text(attach),
        Text(&report.source.name)
    );
}
