//! A job's figures as text, Markdown and JSON.

use super::Wanted;
use super::cures::{Cure, cures};
use super::figures::{Figures, WaitsAt};
use crate::model::work::{Gain, Reason};
use crate::text::quantity::{bytes, count, escaped};
use serde_json::{Value, json as object};

/// Errors and GPUs that are shown.
const FEW: usize = 5;
/// Seconds of a call: any wait lasts for a while.
const WORTH_A_LINE: f64 = 60.0;

/// One line: what, how much, and what is to be known of it.
type Line = (String, String, String);

/// For a terminal, a mail or a log.
#[must_use]
pub(crate) fn text(figures: &Figures, wanted: &Wanted) -> String {
    let lines = lines(figures);
    let widest = |of: fn(&Line) -> &String| lines.iter().map(|line| of(line).chars().count()).max().unwrap_or(0);
    let (names, values) = (widest(|line| &line.0), widest(|line| &line.1));
    let mut page = format!("gpuscope: {}, {}\n", escaped(&wanted.words()), nodes(figures));
    for (name, value, note) in lines {
        let line = format!("  {name:names$}  {value:>values$}  {note}");
        page.push_str(line.trim_end());
        page.push('\n');
    }
    notes(figures)
        .iter()
        .for_each(|note| page.push_str(&format!("note: {note}\n")));
    page
}

/// For a comment or a page.
#[must_use]
pub(crate) fn markdown(figures: &Figures, wanted: &Wanted) -> String {
    let mut page = format!(
        "### gpuscope: {}, {}\n\n| | | |\n|---|---:|---|\n",
        safe(&wanted.words()),
        nodes(figures)
    );
    for (name, value, note) in lines(figures) {
        page.push_str(&format!("| {} | {value} | {} |\n", safe(&name), safe(&note)));
    }
    page.push('\n');
    notes(figures)
        .iter()
        .for_each(|note| page.push_str(&format!("- {note}\n")));
    page
}

/// One object.
#[must_use]
pub(crate) fn json(figures: &Figures, wanted: &Wanted) -> String {
    let by_gpu = figures.waste_by_gpu.iter().map(|((node, gpu), seconds)| {
        let gpu = (!gpu.is_empty()).then_some(gpu);
        object!({"node": node, "gpu": gpu, "gpu_seconds_at_least": seconds})
    });
    let errors = figures
        .errors
        .iter()
        .map(|((error, function), calls)| object!({"error": error, "function": function, "calls": calls}));
    let waits_at = figures
        .lines_waited_at()
        .into_iter()
        .map(|(line, waits)| object!({"where": line, "waits": waits.what, "seconds_at_least": waits.seconds()}));
    let cures = cures(figures).into_iter().map(|cure| {
        object!({
            "reason": cure.reason.name(), "gpu_seconds_at_least": cure.seconds, "cure": cure.reason.cure(),
            "gain": cure.reason.gain().name(), "share_of_used_seconds": cure.share_of_use,
        })
    });
    let labels: serde_json::Map<String, Value> = wanted
        .labels
        .iter()
        .map(|(name, value)| (name.clone(), value.clone().into()))
        .collect();
    let report = object!({
        "job": wanted.job, "labels": labels,
        "nodes": figures.nodes, "nodes_with_job": figures.nodes_with_job, "silent_nodes": figures.silent_nodes,
        "reserved_gpu_seconds": figures.reserved_seconds, "reserved_bound_gpu_seconds": figures.reserved_bound_seconds,
        "used_seconds": figures.used_seconds(), "idle_at_least_seconds": figures.idle_seconds,
        "wasted_gpu_seconds_at_least": figures.wasted_seconds(), "wasted_inferred_gpu_seconds": figures.inferred_seconds,
        "wasted_unplaced_gpu_seconds": figures.unplaced_seconds(), "wasted_by_reason": figures.waste, "wasted_by_gpu": by_gpu.collect::<Vec<_>>(),
        "cures": cures.collect::<Vec<_>>(),
        "blocked_seconds": figures.blocked_seconds, "hidden_wait_seconds": figures.hidden_waits,
        "waits_at": waits_at.collect::<Vec<_>>(), "open_call_seconds": figures.open_seconds,
        "launches": figures.launches, "copied_bytes": figures.copied_bytes, "pageable_bytes": figures.pageable_bytes,
        "errors": errors.collect::<Vec<_>>(), "unreturned_bytes": figures.unreturned_bytes,
        "unseen_seconds_of_nodes": figures.unseen_seconds,
        "notes": notes(figures),
    });
    format!("{}\n", crate::text::quantity::harmless(&report.to_string()))
}

fn nodes(figures: &Figures) -> String {
    match (figures.nodes_with_job, figures.nodes) {
        (1, 1) => "on one node".to_owned(),
        (with, all) => format!("on {with} of {all} nodes"),
    }
}

fn lines(figures: &Figures) -> Vec<Line> {
    let used = figures.used_seconds();
    let mut lines = Vec::from_iter(reserved(figures));
    lines.extend([
        line(
            "in use",
            hours(used),
            "from each process's first work to its last, added up; one with several GPUs counts once",
        ),
        line("surely idle", hours(figures.wasted_seconds()), &share(figures)),
    ]);
    for (reason, seconds) in &figures.waste {
        let words = Reason::from_name(reason).map_or("", Reason::words);
        lines.push(line(&format!("  {}", escaped(reason)), hours(*seconds), words));
    }
    let unplaced = figures.unplaced_seconds();
    if unplaced > 0.0 {
        let words = "whose GPUs are not known yet, and so not why; one counts for each process";
        lines.push(line("  not known yet", hours(unplaced), words));
    }
    lines.extend(by_gpu(figures));
    let more = [
        (
            "waiting for the GPU",
            hours(figures.blocked_seconds),
            "threads, in calls made for it",
            figures.blocked_seconds,
        ),
        ("copied", bytes(whole(figures.copied_bytes)), "", figures.copied_bytes),
        (
            "  pageable",
            bytes(whole(figures.pageable_bytes)),
            "slower, not beside kernels: pin it",
            figures.pageable_bytes,
        ),
        ("launches", count(whole(figures.launches)), "", figures.launches),
        (
            "not given back",
            bytes(whole(figures.unreturned_bytes)),
            "held by processes at their end",
            figures.unreturned_bytes,
        ),
    ];
    let more = more.into_iter().filter(|(_, _, _, value)| *value > 0.0);
    lines.extend(more.map(|(name, value, note, _)| line(name, value, note)));
    lines.extend(hidden(figures));
    lines.extend(waits_at(figures));
    lines.extend(open(figures));
    lines.extend(errors(figures));
    lines
}

fn line(name: &str, value: String, note: &str) -> Line {
    (name.to_owned(), value, note.to_owned())
}

/// Where an exporter knows it.
fn reserved(figures: &Figures) -> Option<Line> {
    let note = format!(
        "GPUs that its scheduler gave it; a process of its was there for {}",
        hours(figures.reserved_bound_seconds)
    );
    (figures.reserved_seconds > 0.0).then(|| line("reserved", hours(figures.reserved_seconds), &note))
}

fn share(figures: &Figures) -> String {
    let share = figures.idle_seconds / figures.used_seconds();
    match share.is_finite() {
        true => format!(
            "GPUs, at least, of each process by itself; they had nothing for theirs in {:.0} % of the time in use",
            share * 100.0
        ),
        false => "GPUs, at least".to_owned(),
    }
}

/// Where it is not all the same GPU.
fn by_gpu(figures: &Figures) -> Vec<Line> {
    if figures.waste_by_gpu.len() < 2 {
        return Vec::new();
    }
    let mut gpus: Vec<_> = figures.waste_by_gpu.iter().collect();
    gpus.sort_by(|one, other| other.1.total_cmp(one.1));
    let name = |node: usize, gpu: &str| match (gpu, figures.nodes) {
        ("", _) => "  GPU not known".to_owned(),
        (gpu, 1) => format!("  GPU {}", escaped(gpu)),
        (gpu, _) => format!("  GPU {} of node {}", escaped(gpu), node + 1),
    };
    let shown = gpus.iter().take(FEW);
    let mut lines: Vec<Line> = shown
        .map(|((node, gpu), seconds)| line(&name(*node, gpu), hours(**seconds), ""))
        .collect();
    if let Some(rest) = gpus.get(FEW..).filter(|rest| !rest.is_empty()) {
        let seconds = rest.iter().map(|(_, seconds)| **seconds).sum();
        lines.push(line(&format!("  {} more", rest.len()), hours(seconds), ""));
    }
    lines
}

fn hidden(figures: &Figures) -> Vec<Line> {
    let kinds = figures.hidden_waits.iter().filter(|(_, seconds)| **seconds > 0.0);
    kinds
        .map(|(kind, seconds)| line("hidden wait", hours(*seconds), &escaped(kind)))
        .collect()
}

fn waits_at(figures: &Figures) -> Vec<Line> {
    let waits = figures.lines_waited_at().into_iter().take(FEW);
    let words = |(place, waits): (&str, &WaitsAt)| {
        let what: Vec<String> = waits.what.iter().map(|what| escaped(what)).collect();
        let note = format!("{}: {}", escaped(place), what.join(", "));
        line("waiting at", hours(waits.seconds()), &note)
    };
    waits.map(words).collect()
}

/// What hangs, or may.
fn open(figures: &Figures) -> Vec<Line> {
    let long = figures
        .open_seconds
        .iter()
        .filter(|(_, seconds)| **seconds >= WORTH_A_LINE);
    let mut open: Vec<(&String, &f64)> = long.collect();
    open.sort_by(|one, other| other.1.total_cmp(one.1));
    let note = |function: &str| format!("{}: called so long ago, and has not returned", escaped(function));
    let shown = open.into_iter().take(FEW);
    shown
        .map(|(function, seconds)| line("in a call now", format!("{:.1} min", seconds / 60.0), &note(function)))
        .collect()
}

fn errors(figures: &Figures) -> Vec<Line> {
    let mut errors: Vec<_> = figures.errors.iter().collect();
    errors.sort_by(|one, other| other.1.total_cmp(one.1));
    let shown = errors.iter().take(FEW).map(|((error, function), calls)| {
        let what = format!("{} of {}", escaped(error), escaped(function));
        line("failed calls", count(whole(**calls)), &what)
    });
    let mut lines: Vec<Line> = shown.collect();
    if errors.len() > FEW {
        lines.push(line(
            "failed calls",
            String::new(),
            &format!("{} more kinds", errors.len() - FEW),
        ));
    }
    lines
}

/// What to do, the most first.
fn advice(figures: &Figures) -> Vec<String> {
    let words = |(number, cure): (usize, Cure)| {
        let mostly = if number == 0 { "mostly " } else { "" };
        let (reason, time) = (cure.reason.name(), hours(cure.seconds));
        format!("{mostly}{reason} ({time}): {}{}", cure.reason.cure(), gain(&cure))
    };
    cures(figures).into_iter().enumerate().map(words).collect()
}

/// What comes of it, if all of that time goes.
fn gain(cure: &Cure) -> String {
    let time = hours(cure.seconds);
    match (cure.reason.gain(), cure.share_of_use) {
        (Gain::Sooner, Some(share)) => format!(
            "; without it the same work takes {:.0} % less of the time in use",
            share * 100.0
        ),
        (Gain::Sooner, None) => format!("; that saves up to {time}"),
        (Gain::Freed, _) => format!("; that leaves {time} of GPUs to others"),
        (Gain::Known, _) => String::new(),
    }
}

fn notes(figures: &Figures) -> Vec<String> {
    let mut notes = advice(figures);
    if figures.waits_at.is_empty() {
        notes.push(
            "no line is known at which its threads waited: exporters know lines of waits with the collector sites (gpuscope serve --collect +sites), \
             and a recording knows more: gpuscope record -- CMD, then gpuscope report FILE"
                .to_owned(),
        );
    }
    if figures.silent_nodes > 0 {
        notes.push(format!(
            "exporters that did not answer: {} of {}; what they know of it is missing here",
            figures.silent_nodes, figures.nodes
        ));
    }
    if figures.nodes_with_job == 0 {
        notes.push(
            "no exporter knows it: it used no CUDA there, or gpuscope serve lacks the label (--labels job,…), or what would see it \
             (--collect), or has more owners or series than it may tell apart (gpuscope_owners_merged_total, gpuscope_series_dropped)"
                .to_owned(),
        );
    } else if !figures.knows_use {
        notes
            .push("for how long it used its GPUs is not known: exporters know that with the collector sync".to_owned());
    }
    if figures.inferred_seconds > 0.0 {
        let hours = hours(figures.inferred_seconds);
        notes.push(format!(
            "{hours} of the idle time is no bound: these processes ran before gpuscope came"
        ));
    }
    if figures.lost_records > 0.0 {
        let lost = count(whole(figures.lost_records));
        notes.push(format!(
            "records that the exporters lost since they began: {lost}; numbers may be too low"
        ));
    }
    notes.extend(unseen(figures));
    if figures.not_understood > 0 {
        notes.push(format!(
            "lines of the exporters that were not understood: {}",
            figures.not_understood
        ));
    }
    notes
}

/// What a budget left out of view: all above may lack it.
fn unseen(figures: &Figures) -> Option<String> {
    let unseen = figures.unseen_seconds.iter().filter(|(_, seconds)| **seconds > 0.0);
    let each: Vec<String> = unseen
        .map(|(calls, seconds)| format!("{} for {}", escaped(calls), hours(*seconds)))
        .collect();
    (!each.is_empty()).then(|| {
        format!(
            "calls that the exporters' --budget left unseen since they began: {}; numbers may be too low",
            each.join(", ")
        )
    })
}

/// Of GPUs or of threads.
fn hours(seconds: f64) -> String {
    match seconds {
        _ if seconds >= 360.0 => format!("{:.2} h", seconds / 3600.0),
        _ => format!("{seconds:.2} s"),
    }
}

/// Nobody counts below 0, or beyond what there is room for.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn whole(number: f64) -> u64 {
    number.max(0.0) as u64
}

/// No table is broken, no link made, by what others called themselves.
fn safe(text: &str) -> String {
    let marks = ['|', '<', '>', '[', ']', '`', '*', '_', '#', '&'];
    let shown = escaped(text);
    shown.chars().fold(String::new(), |mut safe, character| {
        if marks.contains(&character) {
            safe.push('\\');
        }
        safe.push(character);
        safe
    })
}
