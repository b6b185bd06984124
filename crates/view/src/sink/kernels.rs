//! Launches by kernel, in the summary: as text and as JSON.

use super::ALL_IN;
use crate::model::launches::{Kernel, Shape, Streams};
use crate::section::text::Ink;
use crate::section::{self, Cell, Column, Table};
use crate::text::quantity::{bytes, count};
use serde_json::{Value, json};
use std::fmt::Write;

/// Kernels shown; the rest is one line.
const SHOWN: usize = 15;

/// The array of all kernels.
pub(crate) fn to_json(kernels: &[Kernel], full: bool) -> Vec<Value> {
    kernels.iter().map(|kernel| kernel_json(kernel, full)).collect()
}

fn kernel_json(kernel: &Kernel, full: bool) -> Value {
    let mut value = json!({
        "kernel": (kernel.name.is_some() || kernel.place.is_some()).then(|| kernel.shown(full)),
        "full_name": kernel.name.as_ref().map(|name| &name.full),
        "symbol": kernel.name.as_ref().map(|name| &name.symbol),
        "launches": kernel.launches,
        "failed": kernel.failed,
        "threads": kernel.threads,
        "shapes": kernel.shapes.iter().map(shape_json).collect::<Vec<_>>(),
        "shape_count": kernel.shape_count,
        "stream": match kernel.stream {
            Streams::One(_, stream) => json!(format!("{stream:#x}")),
            Streams::Unknown | Streams::Several => Value::Null,
        },
        "several_streams": kernel.stream == Streams::Several,
        "processes": kernel.processes,
        "captured": kernel.captured,
        "in_graphs": kernel.in_graphs,
    });
    if let Some(reason) = kernel.reason {
        value["reason"] = json!(reason);
    }
    if kernel.timed {
        value["total_us"] = json!(kernel.total_ns as f64 / 1e3);
        value["max_us"] = json!(kernel.max_ns as f64 / 1e3);
        value["p50_us"] = json!(kernel.p50_ns as f64 / 1e3);
        value["p99_us"] = json!(kernel.p99_ns as f64 / 1e3);
    }
    value
}

fn shape_json((shape, launches): &(Shape, u64)) -> Value {
    json!({"grid": shape.grid, "block": shape.block, "shared_bytes": shape.shared_bytes, "launches": launches})
}

/// The section of the summary, empty without launches.
pub(crate) fn to_text(kernels: &[Kernel], full: bool) -> String {
    let mut out = String::new();
    let launches: u64 = kernels.iter().map(|kernel| kernel.launches).sum();
    if kernels.is_empty() {
        return out;
    }
    let named = kernels.iter().filter(|kernel| kernel.name.is_some()).count();
    let (all, named) = (count(launches), count(named as u64));
    let _ = writeln!(out, "\nkernels: {all} launches of {named}");
    let rows = kernels.iter().map(|kernel| row(kernel, launches, full));
    let table = Table::flat(columns(), rows).counting("kernel", 1, "launch");
    let table = Table {
        few: SHOWN,
        all_in: ALL_IN,
        ..table.wide(&[10, 7, 8, 10, 10, 10])
    };
    section::text::table(&table, Ink(false), &mut out);
    out
}

fn columns() -> Vec<Column> {
    vec![
        Column::text("kernel <<<grid, block, shared memory>>> (time: in the launching call)"),
        Column::number("launches"),
        Column::number("share"),
        Column::number("failed"),
        Column::number("threads"),
        Column::number("~p50"),
        Column::number("~p99"),
    ]
}

fn row(kernel: &Kernel, all: u64, full: bool) -> Vec<Cell> {
    let called = kernel.launches + kernel.failed > 0;
    let time = |ns: u64| Cell::of((kernel.timed && called).then_some(ns), Cell::Duration);
    vec![
        Cell::Text(what(kernel, full)),
        Cell::Count(kernel.launches),
        Cell::Share(kernel.launches as f64 / all.max(1) as f64),
        Cell::of(kernel.timed.then_some(kernel.failed), Cell::Count),
        Cell::Text(scaled(kernel.threads)),
        time(kernel.p50_ns),
        time(kernel.p99_ns),
    ]
}

/// Its name, how it was mostly launched, and what else there is to know.
fn what(kernel: &Kernel, full: bool) -> String {
    let mut out = kernel.shown(full).to_owned();
    if let Some(reason) = kernel.reason {
        let _ = write!(out, " ({reason})");
    }
    if let Some((shape, launches)) = kernel.shapes.first() {
        let _ = write!(out, " {}", shape_text(shape));
        if *launches < kernel.launches {
            let _ = write!(out, " {} times", count(*launches));
        }
    }
    out.push_str(&graphs(kernel));
    if full {
        out.push_str(&stream_text(kernel.stream));
    }
    out
}

/// What graphs have to do with it.
fn graphs(kernel: &Kernel) -> String {
    let mut words = Vec::new();
    if kernel.in_graphs > 0 {
        words.push(format!("+{} in graphs", count(kernel.in_graphs)));
    }
    if kernel.captured > 0 {
        words.push(format!("{} of the calls captured", count(kernel.captured)));
    }
    match words.is_empty() {
        true => String::new(),
        false => format!(" ({})", words.join(", ")),
    }
}

fn stream_text(stream: Streams) -> String {
    match stream {
        Streams::Unknown => String::new(),
        // names of the driver's header
        Streams::One(_, 0 | 1) => " on the legacy default stream".to_owned(),
        Streams::One(_, 2) => " on default streams of threads".to_owned(),
        Streams::One(_, stream) => format!(" on stream {stream:#x}"),
        Streams::Several => " on several streams".to_owned(),
    }
}

fn shape_text(shape: &Shape) -> String {
    let axes = |axes: &[u32; 3]| match axes {
        [x, 1, 1] => x.to_string(),
        [x, y, 1] => format!("({x},{y})"),
        [x, y, z] => format!("({x},{y},{z})"),
    };
    let shared = match shape.shared_bytes {
        0 => String::new(),
        shared => format!(", {}", bytes(u64::from(shared))),
    };
    format!("<<<{}, {}{shared}>>>", axes(&shape.grid), axes(&shape.block))
}

/// `1.2 G` of a large number.
fn scaled(number: u64) -> String {
    let units = [
        (1_000_000_000_000, "T"),
        (1_000_000_000, "G"),
        (1_000_000, "M"),
        (10_000, "k"),
    ];
    match units.iter().find(|(unit, _)| number >= *unit) {
        None => number.to_string(),
        Some((_, "k")) => format!("{:.1} k", number as f64 / 1e3),
        Some((unit, letter)) => format!("{:.1} {letter}", number as f64 / *unit as f64),
    }
}
