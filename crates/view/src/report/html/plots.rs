//! What happened over time.

use super::super::idle::Idle;
use super::super::{DIRECTIONS, Point, Report, Step, since_words, words};
use super::plot::{Series, Span, Unit, figure};
use crate::section::html::Text;
use crate::text::quantity::{count, duration};
use std::fmt::Write;

/// Processes drawn.
const PROCESSES: usize = 6;
/// Functions whose times are drawn.
const HISTOGRAMS: usize = 9;
/// Marks of time below the plots.
const MARKS: i64 = 5;

pub(super) fn write(report: &Report, page: &mut String) {
    if !report.rates.steps.is_empty() {
        let _ = writeln!(
            page,
            "<section id=\"time\" data-from=\"{}\" data-to=\"{}\">\n<h2>Over time</h2>",
            report.from_ns, report.to_ns
        );
        let span = Span {
            from_ns: report.from_ns,
            to_ns: report.to_ns,
        };
        memory(report, span, page);
        rates(report, span, page);
        idle(report, span, page);
        marks(span, page);
        page.push_str("</section>\n");
    }
    histograms(report, page);
}

fn memory(report: &Report, span: Span, page: &mut String) {
    let series: Vec<Series> = report
        .memory
        .holders()
        .take(PROCESSES)
        .map(|process| Series {
            name: format!("process {}{}", process.pid, since_words(process.late)),
            points: held(&process.points, process.step_ns),
        })
        .collect();
    if !series.is_empty() {
        figure("plot-memory", "Device memory held", Unit::Bytes, span, &series, page);
    }
}

/// Most in each step, then what was left: peaks stay visible however many steps there are.
fn held(points: &[Point], step_ns: u64) -> Vec<(i64, f64)> {
    let half = (step_ns / 2) as i64;
    let both = points.iter().flat_map(|point| {
        let least = (point.at_ns.saturating_add(half / 2), point.min_bytes as f64);
        let most = (point.at_ns.saturating_sub(half), point.max_bytes as f64);
        [Some(most), Some(least).filter(|_| point.min_bytes < point.max_bytes)]
    });
    both.flatten().collect()
}

fn rates(report: &Report, span: Span, page: &mut String) {
    let rates = &report.rates;
    let half = (rates.step_ns / 2) as i64;
    // the last step ends with the trace; of one that has hardly begun no rate can be told
    let length = |step: &Step| {
        let end = step.at_ns.saturating_add(half).min(span.to_ns);
        end.saturating_sub(step.at_ns.saturating_sub(half))
    };
    let told = rates.steps.iter().filter(|step| length(step) >= half.max(1));
    let series = |name: &str, of: &dyn Fn(&Step) -> f64| Series {
        name: name.to_owned(),
        points: told
            .clone()
            .map(|step| (step.at_ns.saturating_sub(half), of(step) / length(step) as f64))
            .collect(),
    };
    let is_there = |one: &Series| one.points.iter().any(|(_, value)| *value > 0.0);
    let launches = series("", &|step| step.launches as f64 * 1e9);
    if is_there(&launches) {
        figure("plot-launches", "Launches", Unit::PerSecond, span, &[launches], page);
    }
    let copies: Vec<Series> = DIRECTIONS
        .iter()
        .enumerate()
        .map(|(index, name)| series(name, &|step| step.copied_bytes[index] as f64 * 1e9))
        .filter(is_there)
        .collect();
    if !copies.is_empty() {
        figure("plot-copies", "Copied", Unit::BytesPerSecond, span, &copies, page);
    }
    let waits = series("", &|step| step.wait_ns as f64);
    if is_there(&waits) {
        figure(
            "plot-waits",
            "Threads that wait for the GPU",
            Unit::Threads,
            span,
            &[waits],
            page,
        );
    }
}

/// Follows from calls, and is a bound.
fn is_proven(idle: &Idle) -> bool {
    !idle.measured && !idle.inferred
}

fn how_long(idle: &Idle) -> String {
    let time = duration(idle.total_ns);
    match (idle.measured, idle.inferred) {
        (true, _) => format!("{time} (measured)"),
        (false, true) => format!("{time} (inferred)"),
        (false, false) => format!("at least {time}"),
    }
}

/// The darker, the more of that time the GPU was idle.
fn idle(report: &Report, span: Span, page: &mut String) {
    for idle in report.idle.iter().take(PROCESSES) {
        let _ = write!(
            page,
            "<figure class=\"plot strip\" id=\"plot-idle-{}\">\n<figcaption><span>GPU idle, process {} <small>{}</small></span>\
             <span class=\"legend\"><span class=\"idle\">{}</span></span></figcaption>\n\
             <div class=\"area\"><svg viewBox=\"0 0 1000 100\" preserveAspectRatio=\"none\" role=\"img\" \
             aria-label=\"GPU idle\">\n",
            idle.pid,
            idle.pid,
            how_long(idle),
            if is_proven(idle) { "surely idle" } else { "idle" }
        );
        for (index, ns) in idle.idle_ns.iter().enumerate().filter(|(_, ns)| **ns > 0) {
            let at = idle.from_ns.saturating_add_unsigned(idle.step_ns * index as u64);
            let end = at.saturating_add_unsigned(idle.step_ns);
            let (x, to) = (span.x(at), span.x(end));
            let share = *ns as f64 / idle.step_ns.max(1) as f64;
            let _ = writeln!(
                page,
                "<rect x=\"{x:.1}\" y=\"0\" width=\"{:.1}\" height=\"100\" opacity=\"{:.2}\"/>",
                (to - x).max(0.5),
                share.clamp(0.08, 1.0)
            );
        }
        page.push_str("</svg><i class=\"cursor\"></i></div>\n</figure>\n");
    }
}

fn marks(span: Span, page: &mut String) {
    page.push_str("<div class=\"marks\">");
    for mark in 0..=MARKS {
        let length = span.to_ns.saturating_sub(span.from_ns);
        let at = span.from_ns.saturating_add(length / MARKS * mark);
        let _ = write!(page, "<span>{}</span>", words::at(at));
    }
    page.push_str("</div>\n");
}

/// How long calls took, of the functions with most time; all on one scale of powers of two.
fn histograms(report: &Report, page: &mut String) {
    let functions = report
        .cuda()
        .map(|layer| layer.functions.as_slice())
        .unwrap_or_default();
    let shown: Vec<_> = functions
        .iter()
        .filter(|function| !function.histogram.is_empty())
        .take(HISTOGRAMS)
        .collect();
    let all = || shown.iter().flat_map(|function| &function.histogram);
    let (Some(least), Some(most)) = (
        all().map(|bucket| bucket.from_ns.max(1)).min(),
        all().map(|bucket| bucket.to_ns).max(),
    ) else {
        return;
    };
    let (low, high) = ((least as f64).log2().floor(), (most as f64).log2().ceil());
    let x = |ns: u64| ((ns.max(1) as f64).log2() - low) / (high - low).max(1.0) * 1000.0;
    page.push_str("<section id=\"times\">\n<h2>How long calls took</h2>\n<div class=\"histograms\">\n");
    for function in shown {
        let top = function.histogram.iter().map(|bucket| bucket.count).max().unwrap_or(1);
        let _ = write!(
            page,
            "<figure class=\"histogram\"><figcaption><code>{}</code><small>{} calls, median {}</small></figcaption>\
             <svg viewBox=\"0 0 1000 100\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"times\">",
            Text(&function.name),
            count(function.calls),
            function.p50_ns.map_or_else(|| "-".to_owned(), duration)
        );
        for bucket in &function.histogram {
            let (from, to) = (x(bucket.from_ns), x(bucket.to_ns));
            let height = (bucket.count as f64 / top as f64 * 100.0).max(1.5);
            let _ = write!(
                page,
                "<rect x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\"><title>{} to {}: {}</title></rect>",
                100.0 - height,
                (to - from).max(1.0),
                duration(bucket.from_ns),
                duration(bucket.to_ns),
                count(bucket.count)
            );
        }
        let ends = (duration(low.exp2() as u64), duration(high.exp2() as u64));
        let _ = writeln!(
            page,
            "</svg><div class=\"marks\"><span>{}</span><span>{}</span></div></figure>",
            ends.0, ends.1
        );
    }
    page.push_str("</div>\n</section>\n");
}
