//! Single allocations: where each lies, how large and how old it is, and who asked for it.

use super::view::View;
use super::words::{age, place};
use crate::frame::Frame;
use crate::frame::lines::frame_place;
use crate::model::memory::{Allocation, AllocationMap, HOST, ProcessReport, Report};
use crate::text::quantity::{bytes, escaped, plural};
use serde_json::{Value, json};
use std::fmt::Write;

/// Of a process, where they were asked for.
pub(super) fn list(report: &Report, process: &ProcessReport, view: View, out: &mut String) {
    let Some(map) = &process.map else { return };
    let Some(first) = map.shown.first() else {
        out.push_str("  single allocations: none is that old\n");
        return;
    };
    let _ = writeln!(out, "  single allocations, the largest first:");
    let widest = bytes(first.bytes).len().max(10);
    for allocation in &map.shown {
        let size = format!("{:>widest$}", bytes(allocation.bytes));
        let _ = writeln!(
            out,
            "    {:<18} {} {:>9}  {} ({}, {}){}",
            address(allocation),
            view.bold(&size),
            age(allocation.age_ns),
            escaped(&allocation.function),
            allocation.family.name(),
            place(allocation.device),
            line(report, allocation)
        );
    }
    if map.left_out > 0 {
        let more = plural(map.left_out, "smaller allocation");
        let _ = writeln!(out, "    {} in {more} (--json has more)", bytes(map.left_out_bytes));
    }
}

/// The same as objects.
pub(super) fn to_json(report: &Report, map: &AllocationMap) -> Value {
    let all = map.shown.iter();
    let all = all.map(|allocation| {
        let frames = report.stacks.get(&allocation.site);
        json!({
            "address": allocation.address.map(|address| format!("{address:#x}")),
            "bytes": allocation.bytes,
            "age_seconds": allocation.age_ns as f64 / 1e9,
            "family": allocation.family.name(),
            "device": (allocation.device != HOST).then_some(allocation.device),
            "function": allocation.function,
            "where": frames.and_then(|frames: &Vec<Frame>| frame_place(frames)),
        })
    });
    all.collect()
}

fn address(allocation: &Allocation) -> String {
    allocation
        .address
        .map_or("not mapped".to_owned(), |address| format!("{address:#x}"))
}

fn line(report: &Report, allocation: &Allocation) -> String {
    let place = report
        .stacks
        .get(&allocation.site)
        .and_then(|frames| frame_place(frames));
    place.map_or_else(String::new, |place| format!(", at {}", escaped(&place)))
}
