//! The report as one page that needs nothing from any network.
//!
//! Every text of the trace goes through `Text`; the page forbids scripts but its own, and all connections.

mod findings;
mod flame;
mod plot;
mod plots;

use super::{Report, chapters, short, words};
use crate::section::Chapter;
use crate::section::html::{Text, sentence, write as write_chapter};
use crate::text::quantity::{bytes, count, duration, plural};
use std::fmt::Write;

const STYLE: &str = include_str!("html/page.css");
const SCRIPT: &str = concat!(include_str!("html/page.js"), include_str!("html/flame.js"));
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
    let chapters = chapters::of(report);
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
    header(report, &title, &chapters, &mut page);
    page.push_str("<main>\n");
    notes(report, &mut page);
    tiles(report, &mut page);
    findings::write(report, &mut page);
    plots::write(report, &mut page);
    flame::write(report, &mut page);
    chapters.iter().for_each(|chapter| write_chapter(chapter, &mut page));
    footer(report, &mut page);
    let _ = write!(
        page,
        "</main>\n<script nonce=\"{NONCE}\">\n{SCRIPT}</script>\n</body>\n</html>\n"
    );
    page
}

fn header(report: &Report, title: &str, chapters: &[Chapter], page: &mut String) {
    let about = words::circumstances(report).join(" · ");
    let _ = write!(
        page,
        "<header>\n<div class=\"bar\">\n<span class=\"brand\">gpuscope</span>\n<nav>\n"
    );
    let plots = (!report.rates.steps.is_empty()).then_some(("time", "Over time"));
    let paths = flame::says(report).then_some(("paths", "Call paths"));
    let above = [("findings", "Findings")].into_iter().chain(plots).chain(paths);
    for (id, name) in above.chain(chapters.iter().map(|chapter| (chapter.id, chapter.name))) {
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
        let others = words::graphs(report).into_iter().skip(1);
        let launches = format!("in {}", plural(graphs.launches, "graph launch"));
        let more = [launches].into_iter().chain(others).collect::<Vec<_>>().join("; ");
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
    if let Some(idle) = short::idle(report).into_iter().next() {
        let sign = idle.bound.map_or("", |_| "≥ ");
        let share = super::at_least(idle.total_ns, idle.window_ns);
        let more = format!("{share} of {}, {}", duration(idle.window_ns), idle.whose);
        all.push((format!("{sign}{}", duration(idle.total_ns)), "GPU idle", more, false));
    }
    if let Some(held) = report.memory.processes.first() {
        let more = format!("process {}, at {}", held.pid, words::at(held.peak_at_ns));
        all.push((bytes(held.peak_bytes), "memory peak", more, false));
    }
    if let Some((share, calls)) = short::driver(report) {
        all.push((share, "of CUDA calls in the kernel driver", calls, false));
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
    let lines = short::missing(report).into_iter().chain(short::cost(report));
    lines.for_each(|line| sentence(&line, page));
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
