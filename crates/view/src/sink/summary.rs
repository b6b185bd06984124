//! The summary at the end of a run, as text and as JSON.

use super::functions::{CALLS, FunctionRow, columns};
use super::kernels;
use super::memory::{self, Rates};
use super::{activity, aggregate, cost, driver, findings};
use super::{outside, steps, totals, work, xid};
use crate::catalog::{Class, Layer};
use crate::model::summary::{Chosen, Copies, Function, Summary, UnderWay};
use crate::section::text::Ink;
use crate::section::{self, Cell, Table};
use crate::text::fit::fit;
use crate::text::quantity::{bytes, count, duration, escaped, harmless};
use serde_json::{Value, json};
use std::fmt::Write;

/// Rows shown for one layer; the rest is one line.
const SHOWN: usize = 25;
/// The form that has the rest.
pub(crate) const ALL_IN: &str = "--summary json has all";
/// Characters of the columns of each layer's table, which stand below each other.
const WIDTHS: [usize; 8] = [10, 8, 10, 10, 10, 10, 10, 10];
/// Lines of the stack of a call that has not returned.
const OPEN_FRAMES: usize = 6;

/// The summary as one JSON object of type `summary`.
pub fn to_json(summary: &Summary) -> Value {
    let functions: Vec<Value> = summary.functions.iter().map(function_json).collect();
    let failures = summary.failures.iter().map(|failure| {
        json!({"name": failure.function, "error": failure.error, "code": failure.code, "count": failure.count})
    });
    let copies = summary.copies.iter().map(|copies| {
        let direction = copies.direction.map_or("by address", |direction| direction.name());
        json!({"layer": copies.layer, "direction": direction, "calls": copies.calls, "bytes": copies.bytes})
    });
    let open = summary.open.iter().map(|call| {
        json!({
            "layer": call.layer, "name": call.function, "pid": call.pid, "tid": call.tid, "comm": call.comm,
            "open_us": call.ns as f64 / 1e3, "ended": call.ended,
            "stack": call.stack.as_ref().map(|stack| stack.iter().map(crate::frame::json::frame_json).collect::<Vec<_>>()),
        })
    });
    let under_way = summary
        .under_way
        .iter()
        .map(|layer| json!({"layer": layer.layer, "at_begin": layer.at_begin, "at_end": layer.at_end}));
    let (findings, no_findings) = findings::to_json(&summary.findings);
    let (steps, no_steps) = steps::to_json(&summary.steps);
    let mut all = json!({
        "type": "summary",
        "seconds": summary.seconds,
        "functions": functions,
        "failures": failures.collect::<Vec<_>>(),
        "kernels": kernels::to_json(&summary.kernels, summary.full_names),
        "aggregates": aggregate::to_json(&summary.aggregates, &summary.memory.stacks),
        "copies": copies.collect::<Vec<_>>(),
        "totals": totals::to_json(&summary.totals),
        "under_way": under_way.collect::<Vec<_>>(),
        "open_calls": open.collect::<Vec<_>>(),
        "outside_cuda": summary.outside.as_ref().map(outside::to_json),
        "lost_events": summary.lost_events,
        "malformed_events": summary.malformed,
        "processes": summary.processes,
        "unseen": summary.unseen,
        "counted_only": summary.counted_only,
        "attached": summary.attached,
        "attach": summary.tier,
        "engine": summary.engine.as_ref().map(|chosen| json!({"name": chosen.engine, "because": chosen.why})),
        "memory": memory::processes(&summary.memory, &Rates::of_all(&summary.memory)),
        "driver_objects": summary.driver.as_ref().map(driver::to_json),
        "work": work::to_json(&summary.work, &summary.memory.stacks),
        "xids": xid::to_json(&summary.xids),
        "more_xids": summary.more_xids,
        "findings": findings,
        "no_findings": no_findings,
        "not_explained": findings::unexplained_json(&summary.findings),
        "steps": steps,
        "no_steps": no_steps,
        "cost": cost::to_json(&summary.cost, summary.seconds),
    });
    if let Some(gpu) = &summary.gpu {
        all["gpu"] = activity::to_json(gpu, &summary.memory.stacks, summary.full_names);
    }
    all
}

/// The same as one line that no terminal obeys.
pub fn to_json_line(summary: &Summary) -> String {
    harmless(&to_json(summary).to_string())
}

/// Of a snapshot, what its run tells at its end alone is null.
const AT_THE_END: [&str; 5] = ["cost", "findings", "not_explained", "steps", "no_steps"];

/// Of what devices did, what call stacks are needed for.
const OF_SITES: [&str; 2] = ["by_site", "unattributed_us"];

/// The totals of a run that goes on, as the summary has them: one JSON object of type `snapshot`, as one line. Call stacks are
/// not named for it, and what needs them, or the end, is null or missing: docs/trace-format.md says which.
pub fn to_snapshot_line(so_far: &Summary) -> String {
    let mut totals = to_json(so_far);
    totals["type"] = json!("snapshot");
    for key in AT_THE_END {
        totals[key] = Value::Null;
    }
    if so_far.aggregates.iter().any(aggregate::is_by_stack) {
        totals["aggregates"] = Value::Null;
    }
    if let Some(gpu) = totals["gpu"].as_object_mut() {
        gpu.extend(OF_SITES.map(|key| (key.to_owned(), Value::Null)));
    }
    leave_out(&mut totals["memory"], "sites");
    leave_out(&mut totals["work"], "streams");
    harmless(&totals.to_string())
}

fn leave_out(processes: &mut Value, key: &str) {
    let processes = processes.as_array_mut().into_iter().flatten();
    processes.for_each(|process| process[key] = Value::Null);
}

fn function_json(function: &Function) -> Value {
    let mut value = json!({
        "layer": function.label,
        "name": function.name,
        "category": function.class.category(),
        "calls": function.calls,
        "errors": function.timed.then_some(function.errors),
        "bytes": function.bytes,
        "unfinished": function.unfinished,
        "lost": function.lost,
        "without_args": function.without_args,
    });
    if function.timed {
        value["total_us"] = json!(function.total_ns as f64 / 1e3);
        value["max_us"] = json!(function.max_ns as f64 / 1e3);
        value["p50_us"] = json!(function.p50_ns as f64 / 1e3);
        value["p99_us"] = json!(function.p99_ns as f64 / 1e3);
    }
    if function.standstill_ns > 0 {
        value["standstill_us"] = json!(function.standstill_ns as f64 / 1e3);
    }
    if let Some(share) = function.driver {
        value["driver_calls"] = json!(share.calls);
        value["driver_us"] = json!(share.ns as f64 / 1e3);
    }
    value
}

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
#[must_use]
pub fn room_hint(summary: &Summary) -> &'static str {
    let is_inside = summary.engine.as_ref().is_some_and(|chosen| chosen.engine == "inside");
    match is_inside {
        true => "--engine kernel --ring-size 64MiB, as root",
        false => "a larger --ring-size",
    }
}

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
            room_hint(summary)
        );
    } else {
        out.push_str("\nlost: nothing\n");
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::finding::Diagnosis;
    use crate::model::snapshot::Snapshot;

    fn function() -> Function {
        Function {
            layer: Layer::Driver,
            label: "driver".to_owned(),
            name: "cuLaunchKernel".to_owned(),
            class: Class::Launch,
            calls: 7,
            errors: 1,
            total_ns: 700,
            max_ns: 200,
            bytes: 0,
            p50_ns: 100,
            p99_ns: 200,
            unfinished: 1,
            lost: 0,
            without_args: 0,
            timed: true,
            driver: None,
            standstill_ns: 0,
        }
    }

    #[test]
    fn what_was_lost_from_inside_has_more_room_in_the_kernels_ring_alone() {
        let lost = |engine| Summary {
            lost_events: 3,
            engine: Some(Chosen {
                engine,
                why: "it was asked for".to_owned(),
            }),
            ..Summary::default()
        };
        assert!(to_text(&lost("inside")).contains("hint: --engine kernel --ring-size 64MiB, as root)"));
        assert!(to_text(&lost("kernel")).contains("hint: a larger --ring-size)"));
    }

    #[test]
    fn a_snapshot_has_the_totals_of_a_summary_and_says_nothing_of_the_end() {
        let summary = Summary {
            functions: vec![function()],
            findings: Diagnosis::NotLookedFor("--errors leaves rows out".to_owned()),
            ..Summary::default()
        };
        let line = to_snapshot_line(&summary);
        let value: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["type"], "snapshot");
        for key in AT_THE_END {
            assert_eq!(value[key], Value::Null, "{key}");
        }
        let (told, of_the_end) = (
            Snapshot::read(&value).unwrap(),
            Snapshot::read(&to_json(&summary)).unwrap(),
        );
        assert_eq!(told.functions, of_the_end.functions);
        assert_eq!((told.functions[0].calls, told.findings), (7, None));
        assert_eq!(told.no_findings.as_deref(), Some("--errors leaves rows out"));
    }
}
