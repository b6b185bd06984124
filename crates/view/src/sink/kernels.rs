//! Launches by kernel, in the summary: as text and as JSON.

use crate::model::launches::{Kernel, Shape, Streams};
use crate::text::fit::GAP;
use crate::text::quantity::{bytes, count, duration, escaped};
use serde_json::{Value, json};
use std::fmt::Write;

/// Kernels shown; the rest is one line.
const SHOWN: usize = 15;

/// The array of all kernels.
pub fn to_json(kernels: &[Kernel], full: bool) -> Vec<Value> {
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
pub fn to_text(kernels: &[Kernel], full: bool) -> String {
    let mut out = String::new();
    let launches: u64 = kernels.iter().map(|kernel| kernel.launches).sum();
    if kernels.is_empty() {
        return out;
    }
    let named = kernels.iter().filter(|kernel| kernel.name.is_some()).count();
    let _ = writeln!(
        out,
        "\nkernels: {} launches of {}",
        count(launches),
        count(named as u64)
    );
    let _ = writeln!(
        out,
        "{:>12}{GAP} {:>7}{GAP} {:>8}{GAP} {:>10}{GAP} {:>10}{GAP} {:>10}{GAP}  kernel <<<grid, block, shared memory>>> (time: in the launching call)",
        "launches", "share", "failed", "threads", "~p50", "~p99"
    );
    for kernel in kernels.iter().take(SHOWN) {
        kernel_text(kernel, launches, full, &mut out);
    }
    if kernels.len() > SHOWN {
        let rest: u64 = kernels[SHOWN..].iter().map(|kernel| kernel.launches).sum();
        let _ = writeln!(
            out,
            "{:>12} of {} more kernels (--summary json has all)",
            count(rest),
            kernels.len() - SHOWN
        );
    }
    out
}

fn kernel_text(kernel: &Kernel, all: u64, full: bool, out: &mut String) {
    let called = kernel.launches + kernel.failed > 0;
    let time = |ns: u64| match kernel.timed && called {
        true => duration(ns),
        false => "-".to_owned(),
    };
    let share = 100.0 * kernel.launches as f64 / all.max(1) as f64;
    let _ = write!(
        out,
        "{:>12}{GAP} {share:>6.1}%{GAP} {:>8}{GAP} {:>10}{GAP} {:>10}{GAP} {:>10}{GAP}  {}",
        count(kernel.launches),
        if kernel.timed {
            count(kernel.failed)
        } else {
            "-".to_owned()
        },
        scaled(kernel.threads),
        time(kernel.p50_ns),
        time(kernel.p99_ns),
        escaped(kernel.shown(full))
    );
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
    out.push('\n');
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
