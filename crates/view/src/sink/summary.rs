//! The summary at the end of a run: as text, and [`json`] as JSON.

mod json;
#[cfg(test)]
mod tests;

pub use json::{to_json, to_json_line, to_snapshot_line};

use super::coverage::missing_in_all;
use super::functions::{CALLS, FunctionRow, columns};
use super::kernels;
use super::memory;
use super::{ALL_IN, activity, aggregate, cost, driver, findings};
use super::{outside, steps, totals, work, xid};
use crate::catalog::{Class, Layer};
use crate::model::summary::{Chosen, Copies, Function, Summary, UnderWay};
use crate::section::text::Ink;
use crate::section::{self, Cell, Table};
use crate::text::fit::fit;
use crate::text::quantity::{bytes, count, duration, escaped};
use std::fmt::Write;

/// Rows shown for one layer; the rest is one line.
const SHOWN: usize = 25;
/// Characters of the columns of each layer's table, which stand below each other.
const WIDTHS: [usize; 8] = [10, 8, 10, 10, 10, 10, 10, 10];
/// Lines of the stack of a call that has not returned.
const OPEN_FRAMES: usize = 6;

/// The summary as text, for stderr.
pub fn to_text(summary: &Summary) -> String {
    to_text_within(summary, None)
}

/// The same in lines of at most `columns` characters, for a terminal.
pub fn to_text_within(summary: &Summary, columns: Option<usize>) -> String {
    fit(&whole_lines(summary), columns)
}

fn whole_lines(summary: &Summary) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "── gpuscope: {:.2} s, {} ──",
        summary.seconds,
        processes(summary.processes)
    );
    for layer in layers(summary) {
        layer_text(summary, layer, &mut out);
    }
    out.push_str(&totals::to_text(&summary.totals));
    out.push_str(&aggregate::to_text(&summary.aggregates, &summary.memory.stacks));
    out.push_str(&kernels::to_text(&summary.kernels, summary.full_names));
    if let Some(gpu) = &summary.gpu {
        out.push_str(&activity::to_text(gpu, &summary.memory.stacks, summary.full_names));
    }
    out.push_str(&work::to_text(&summary.work, &summary.memory.stacks));
    out.push_str(&summary.outside.as_ref().map(outside::to_text).unwrap_or_default());
    copies_text(summary, &mut out);
    out.push_str(&summary.driver.as_ref().map(driver::to_text).unwrap_or_default());
    failures_text(summary, &mut out);
    open_text(summary, &mut out);
    out.push_str(&xid::to_text(&summary.xids, summary.more_xids));
    out.push_str(&memory::brief(&summary.memory));
    honesty_text(summary, &mut out);
    out.push_str(&cost::to_text(summary));
    out.push_str(&steps::to_text(&summary.steps));
    out.push_str(&findings::to_text(&summary.findings));
    out
}

fn processes(number: usize) -> String {
    match number {
        0 => "no CUDA call seen".to_owned(),
        1 => "1 process made CUDA calls".to_owned(),
        _ => format!("{number} processes made CUDA calls"),
    }
}

fn layers(summary: &Summary) -> Vec<&str> {
    let mut layers: Vec<&str> = summary
        .functions
        .iter()
        .map(|function| function.label.as_str())
        .collect();
    layers.dedup();
    layers
}

fn layer_text(summary: &Summary, layer: &str, out: &mut String) {
    let functions: Vec<&Function> = summary
        .functions
        .iter()
        .filter(|function| function.label == layer)
        .collect();
    let calls: u64 = functions.iter().map(|function| function.calls).sum();
    let errors: u64 = functions.iter().map(|function| function.errors).sum();
    let launches: u64 = functions
        .iter()
        .filter(|function| function.class == Class::Launch)
        .map(|function| function.calls.saturating_sub(function.errors))
        .sum();
    let of_kernel = functions.iter().any(|function| function.layer == Layer::Kernel);
    let launches = if of_kernel {
        String::new()
    } else {
        format!(", {} launches", count(launches))
    };
    let _ = writeln!(
        out,
        "\n{} layer: {} calls, {} failed{launches}",
        escaped(layer),
        count(calls),
        count(errors)
    );
    let rows = functions.iter().map(|function| function_row(function));
    let table = Table::flat(columns(), rows).counting("function", CALLS, "call");
    let table = Table {
        few: SHOWN,
        all_in: ALL_IN,
        ..table.wide(&WIDTHS)
    };
    section::text::table(&table, Ink(false), out);
}

fn function_row(function: &Function) -> Vec<Cell> {
    let time = |ns: u64| function.timed.then_some(ns);
    let row = FunctionRow {
        name: Cell::Text(format!("{}{}", function.name, notes(function))),
        class: function.class.category(),
        calls: function.calls,
        errors: function.timed.then_some(function.errors),
        total_ns: time(function.total_ns),
        p50_ns: time(function.p50_ns),
        p99_ns: time(function.p99_ns),
        max_ns: time(function.max_ns),
        bytes: function.bytes,
    };
    row.cells()
}

/// What stands behind its name.
fn notes(function: &Function) -> String {
    let mut out = String::new();
    if let Some(share) = function.driver {
        let percent = (share.ns as f64 / function.total_ns.max(1) as f64 * 100.0).min(100.0);
        let calls = count(share.calls);
        let _ = write!(out, "  ({percent:.0} % in {calls} calls of the kernel driver)");
    }
    if function.standstill_ns > 0 {
        let _ = write!(out, "  ({} of it waiting for probes)", duration(function.standstill_ns));
    }
    if function.unfinished > 0 {
        let _ = write!(out, "  ({} had not returned)", count(function.unfinished));
    }
    out
}

fn copies_text(summary: &Summary, out: &mut String) {
    let shown: Vec<&Copies> = summary
        .copies
        .iter()
        .filter(|copies| !is_reported_with_work(summary, copies))
        .collect();
    if shown.is_empty() {
        return;
    }
    out.push_str("\ncopies by direction\n");
    for copies in shown {
        let direction = copies.direction.map_or("by address", |direction| direction.name());
        let _ = writeln!(
            out,
            "{:>12} calls {:>12}  {direction} ({})",
            count(copies.calls),
            bytes(copies.bytes),
            escaped(&copies.layer)
        );
    }
}

/// What is copied by the driver is told with more about it, and the runtime does nothing without the driver.
fn is_reported_with_work(summary: &Summary, copies: &Copies) -> bool {
    let custom = |function: &Function| function.layer == Layer::Custom && function.label == copies.layer;
    !summary.work.is_empty() && !summary.functions.iter().any(custom)
}

fn failures_text(summary: &Summary, out: &mut String) {
    if summary.failures.is_empty() {
        return;
    }
    out.push_str("\nfailed calls by error\n");
    for failure in &summary.failures {
        let _ = writeln!(
            out,
            "{:>12}  {} from {}",
            count(failure.count),
            escaped(&failure.error),
            escaped(&failure.function)
        );
    }
}

fn open_text(summary: &Summary, out: &mut String) {
    if summary.open.is_empty() {
        return;
    }
    out.push_str("\ncalls that have not returned\n");
    for call in summary.open.iter().take(SHOWN) {
        let until = if call.ended { "  until its thread ended" } else { "" };
        let _ = writeln!(
            out,
            "{:>12}  {} in {} {}/{}{until}",
            duration(call.ns),
            escaped(&call.function),
            escaped(&call.comm),
            call.pid,
            call.tid
        );
        let lines = call.stack.as_deref().map(crate::frame::lines::frame_lines);
        for line in lines.unwrap_or_default().iter().take(OPEN_FRAMES) {
            let _ = writeln!(out, "{:>12}    {line}", "");
        }
    }
    if summary.open.len() > SHOWN {
        let _ = writeln!(
            out,
            "{:>12}  more (--summary json has all)",
            count((summary.open.len() - SHOWN) as u64)
        );
    }
}

/// What is not among the calls of each layer, because it lies across an end of the trace.
pub fn under_way_text(layers: &[UnderWay]) -> String {
    let listed = |number: fn(&UnderWay) -> u64| -> Option<String> {
        let layers = layers.iter().filter(|layer| number(layer) > 0);
        let words: Vec<String> = layers
            .map(|layer| format!("{} {}", escaped(&layer.layer), count(number(layer))))
            .collect();
        (!words.is_empty()).then(|| words.join(", "))
    };
    let ends = [
        ("entered before counting began", listed(|layer| layer.at_begin)),
        ("not returned when it ended", listed(|layer| layer.at_end)),
    ];
    let ends = ends
        .into_iter()
        .filter_map(|(what, listed)| Some(format!("{what} ({})", listed?)));
    let ends: Vec<String> = ends.collect();
    match ends.is_empty() {
        true => String::new(),
        false => format!("calls under way, not among those above: {}\n", ends.join("; ")),
    }
}

/// Where more lines would have had room.
pub const MORE_ROOM: &str = "a larger --ring-size";

/// Which engine a run has had, and why.
pub fn engine_text(chosen: &Chosen) -> String {
    format!("engine: {}, because {}", chosen.engine, chosen.why)
}

fn honesty_text(summary: &Summary, out: &mut String) {
    if summary.lost_events > 0 {
        let _ = writeln!(
            out,
            "\nlost: {} events did not fit into the ring (the totals above are exact all the same; hint: {})",
            count(summary.lost_events),
            MORE_ROOM
        );
    } else {
        let of_gpu = summary.gpu.iter().flat_map(|gpu| &gpu.coverage);
        let _ = match missing_in_all(of_gpu.map(|one| (one.missing(), one.broken_off))) {
            None => writeln!(out, "\nlost: nothing"),
            Some(missing) => writeln!(out, "\nlost: no event of a call, but {missing}: see there"),
        };
    }
    out.push_str(&under_way_text(&summary.under_way));
    if !summary.counted_only.is_empty() {
        let _ = writeln!(
            out,
            "counted but not listed as lines: {} (ask with --filter NAME, or --chatty)",
            escaped(&summary.counted_only.join(", "))
        );
    }
    if summary.functions.iter().any(|function| !function.timed) {
        out.push_str("-: seen at entry only, without time and result (--chatty, or --filter NAME, hooks the return of getters, too)\n");
    }
    if let Some(chosen) = &summary.engine {
        let _ = writeln!(out, "{}", escaped(&engine_text(chosen)));
    }
    for unseen in &summary.unseen {
        let _ = writeln!(out, "unseen: {}", escaped(unseen));
    }
}
