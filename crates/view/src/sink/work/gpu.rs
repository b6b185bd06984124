//! When the devices of a process were surely idle, and what goes with it.

use super::streams;
use super::words::name;
use crate::model::memory::Origin;
use crate::model::work::{Created, GpuReport, GraphReport, ProcessReport};
use crate::text::quantity::{count, duration, escaped, plural};
use std::fmt::Write;

/// Processes shown where there are no more; the rest is one line.
const FEW: usize = 8;
/// Processes shown of many: the others are mostly like them.
const OF_MANY: usize = 3;

/// A paragraph for each process that gave a device something to do, most of it first.
pub(crate) fn section(processes: &[ProcessReport], out: &mut String) {
    let mut paragraphs: Vec<(u64, String)> = processes
        .iter()
        .map(|process| (process.gpu.window_ns, paragraph(process)))
        .filter(|(_, words)| !words.is_empty())
        .collect();
    if paragraphs.is_empty() {
        return;
    }
    paragraphs.sort_by_key(|(window_ns, _)| std::cmp::Reverse(*window_ns));
    out.push_str("\nGPU, from the first work given to it until the last that is known of it\n");
    let shown = if paragraphs.len() > FEW { OF_MANY } else { FEW };
    for (_, words) in paragraphs.iter().take(shown) {
        out.push_str(words);
    }
    if paragraphs.len() > shown {
        let more = plural((paragraphs.len() - shown) as u64, "more process");
        let _ = writeln!(out, "  {more} (--summary json has all)");
    }
}

fn paragraph(process: &ProcessReport) -> String {
    let mut out = String::new();
    idle(&process.gpu, &mut out);
    measured(&process.gpu, &mut out);
    streams::table(&process.streams, &mut out);
    balance(&process.created, &mut out);
    graphs(&process.graphs, &mut out);
    if process.lost.others > 0 {
        let calls = plural(process.lost.others, "call");
        let _ = writeln!(out, "    not exact: {calls} lost");
    }
    if out.is_empty() {
        return out;
    }
    let late = match process.origin {
        Origin::Start => "",
        Origin::Late => " (attached late: what it did before is not known)",
    };
    format!("  {}{late}\n{out}", name(process))
}

/// Said where it makes a difference.
fn likely(gpu: &GpuReport, out: &mut String) {
    let more = gpu.idle_likely_ns.saturating_sub(gpu.idle_at_least_ns);
    if more > gpu.window_ns / 100 {
        let share = gpu.idle_likely_ns as f64 * 100.0 / gpu.window_ns as f64;
        let _ = writeln!(
            out,
            "    idle for {} ({share:.1} %) if streams that were given nothing for a second are done (inferred)",
            duration(gpu.idle_likely_ns)
        );
    }
}

fn idle(gpu: &GpuReport, out: &mut String) {
    if gpu.window_ns == 0 {
        return;
    }
    let label = match gpu.inferred {
        true => "inferred, see the notes",
        false => "bound",
    };
    let window = duration(gpu.window_ns);
    if gpu.idle_gaps == 0 && gpu.idle_at_least_ns == 0 {
        let _ = writeln!(out, "    busy at most all of {window}: never surely idle ({label})");
    } else {
        // rounded down: a share of at least so much
        let thousandths = u128::from(gpu.idle_at_least_ns) * 1000 / u128::from(gpu.window_ns);
        let share = format!("{}.{}", thousandths / 10, thousandths % 10);
        let _ = writeln!(
            out,
            "    idle at least {} of {window} ({share} %), busy at most {}; {}, the longest {} ({label})",
            duration(gpu.idle_at_least_ns),
            duration(gpu.busy_at_most_ns),
            plural(gpu.idle_gaps, "idle gap"),
            duration(gpu.longest_idle_ns)
        );
    }
    likely(gpu, out);
    for note in &gpu.notes {
        let _ = writeln!(out, "    note: {}", escaped(note));
    }
}

fn measured(gpu: &GpuReport, out: &mut String) {
    if gpu.elapsed_count > 0 {
        let times = plural(gpu.elapsed_count, "time");
        let _ = writeln!(
            out,
            "    the program itself measured {times} between events: {} in all (measured; they may overlap)",
            duration(gpu.elapsed_ns)
        );
    }
    if gpu.slow_submissions > 0 {
        let _ = writeln!(
            out,
            "    {}: {} in all, at most {} queued: the queue may have been full (inferred)",
            plural(gpu.slow_submissions, "slow submission"),
            duration(gpu.slow_submission_ns),
            plural(gpu.slow_depth_at_most, "call")
        );
    }
}

fn balance(created: &Created, out: &mut String) {
    let both = [
        ("stream", created.streams, created.streams_destroyed),
        ("event", created.events, created.events_destroyed),
    ];
    let words = both.iter().filter(|(_, made, ended)| *made > 0 || *ended > 0);
    let words: Vec<String> = words
        .map(|(what, made, ended)| {
            let rest = match made.checked_sub(*ended) {
                Some(0) | None => String::new(),
                Some(rest) => format!(", {} left", count(rest)),
            };
            format!("{} created, {} destroyed{rest}", plural(*made, what), count(*ended))
        })
        .collect();
    if !words.is_empty() {
        let _ = writeln!(out, "    {}", words.join("; "));
    }
}

fn graphs(graphs: &GraphReport, out: &mut String) {
    for line in graph_words(graphs) {
        let _ = writeln!(out, "    {line}");
    }
}

/// What graphs did, a line each; none where there are none.
pub(crate) fn graph_words(graphs: &GraphReport) -> Vec<String> {
    let launched = format!("{}{}", plural(graphs.launches, "graph launch"), ran(graphs));
    let captured = plural(graphs.captured, "launch") + " recorded into graphs instead of run";
    let lines = [(graphs.launches, launched), (graphs.captured, captured)];
    let lines = lines.into_iter().filter(|(number, _)| *number > 0);
    lines.map(|(_, line)| line).collect()
}

/// What they ran, as far as that is known.
fn ran(graphs: &GraphReport) -> String {
    let kinds = [
        (graphs.kernels, "kernel"),
        (graphs.copies, "copy"),
        (graphs.memsets, "memset"),
    ];
    let kinds = kinds.iter().filter(|(number, _)| *number > 0);
    let kinds: Vec<String> = kinds.map(|(number, one)| plural(*number, one)).collect();
    let what = match kinds.is_empty() {
        true => "nothing of these kinds".to_owned(),
        false => kinds.join(", "),
    };
    match graphs.launches.saturating_sub(graphs.known_launches) {
        0 => format!(" ran {what}"),
        _ if graphs.known_launches == 0 => ": what they ran is not known, their making was not seen".to_owned(),
        rest => format!(
            "; {} of these ran {what}, what the other {} ran is not known",
            count(graphs.known_launches),
            count(rest)
        ),
    }
}
