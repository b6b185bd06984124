//! The report as one page that needs nothing from any network. Every text of the trace goes through `Text`.

mod findings;
mod flame;
mod plot;
mod plots;

use super::{Report, chapters, short, since_words, words};
use crate::section::Chapter;
use crate::section::html::{Text, sentence, write as write_chapter};
use crate::section::page::{close, notes, open};
use crate::text::quantity::{bytes, count, duration, plural};
use std::fmt::Write;

const SCRIPT: &str = include_str!("html/flame.js");

/// The whole page.
#[must_use]
pub fn page(report: &Report) -> String {
    let title = words::title(report);
    let chapters = chapters::of(report);
    let mut page = String::new();
    open(
        &title,
        &words::circumstances(report).join(" · "),
        links(report, &chapters),
        &mut page,
    );
    notes(report.notes.iter(), &mut page);
    tiles(report, &mut page);
    why_idle(report, &mut page);
    findings::write(report, &mut page);
    plots::write(report, &mut page);
    flame::write(report, &mut page);
    chapters.iter().for_each(|chapter| write_chapter(chapter, &mut page));
    footer(report, &mut page);
    close(SCRIPT, &mut page);
    page
}

/// What is above the chapters, and these.
fn links<'a>(report: &Report, chapters: &'a [Chapter]) -> impl Iterator<Item = (&'a str, &'a str)> {
    let plots = (!report.rates.steps.is_empty()).then_some(("time", "Over time"));
    let paths = flame::says(report).then_some(("paths", "Call paths"));
    let above = [("findings", "Findings")].into_iter().chain(plots).chain(paths);
    above.chain(chapters.iter().map(|chapter| (chapter.id, chapter.name)))
}

fn tiles(report: &Report, page: &mut String) {
    let of_totals = report.totals_ns().max(1) as f64;
    let head = duration(report.wall_ns());
    let mut all: Vec<(String, &str, String, bool)> = vec![(head, "from first to last call", String::new(), false)];
    if let Some(layer) = report.cuda() {
        let rate = words::per_second(layer.calls as f64 / of_totals * 1e9);
        all.push((
            count(layer.calls),
            "CUDA calls",
            format!("{rate}, {} layer", layer.layer),
            false,
        ));
    }
    let launches = report.launches();
    let rate = words::per_second(launches.number as f64 / of_totals * 1e9);
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
    let rate = words::bandwidth(report.copied_bytes() as f64 / of_totals * 1e9);
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
        let part = idle.steady_ns.map(|_| " between start-up and end").unwrap_or_default();
        let (ns, of_ns) = idle.steady_ns.unwrap_or((idle.total_ns, idle.window_ns));
        let share = super::at_least(ns, of_ns);
        let more = format!("{share} of {}{part}, {}", duration(of_ns), idle.whose);
        all.push((format!("{sign}{}", duration(ns)), "GPU idle", more, false));
    }
    if let Some(held) = report.memory.holders().next() {
        let (sign, since) = (if held.late { "≥ " } else { "" }, since_words(held.late));
        let more = format!("process {}, at {}{since}", held.pid, words::at(held.peak_at_ns));
        all.push((format!("{sign}{}", bytes(held.peak_bytes)), "memory peak", more, false));
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

/// Why the device that was idle for longest was, for the largest part of that.
fn why_idle(report: &Report, page: &mut String) {
    if let Some(idle) = short::idle(report).into_iter().next()
        && let Some(because) = idle.because
    {
        sentence(&format!("GPU idle, {}: {because}", idle.whose), page);
    }
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
