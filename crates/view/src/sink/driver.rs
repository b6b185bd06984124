//! What was asked of the kernel driver: one call in a line, and who held what.

use super::sizes::Sizes;
use crate::driver::Value;
use crate::model::driver::{Held, ProcessReport, Report, Unseen};
use crate::record::Asked;
use crate::text::quantity::{bytes, count, duration, escape_into, escaped};
use serde_json::json;
use std::fmt::Write as _;
use std::io::Write;

/// What stands between a call's brackets: the device, then its arguments.
pub(super) fn args_text(asked: &Asked, sizes: Sizes, out: &mut Vec<u8>) {
    let device = asked.device.map(|device| device.to_string());
    let args = asked.ioctl.args.iter().filter(|(_, value)| !is_named(value));
    let args = args.map(|(name, value)| format!("{name}={}", text_of(value, sizes)));
    let size = asked.ioctl.size.filter(|_| asked.ioctl.args.is_empty());
    let size = size.map(|size| format!("size={}", sizes.text(size)));
    let parts: Vec<String> = device.into_iter().chain(args).chain(size).collect();
    escape_into(&format!("({})", parts.join(", ")), out);
}

/// What it answered.
pub(super) fn result_text(asked: &Asked, nanoseconds: u64, out: &mut Vec<u8>) {
    let _ = write!(out, " = {} <{}>", asked.ioctl.answer(), duration(nanoseconds));
    for note in &asked.ioctl.notes {
        out.extend_from_slice(b"  # ");
        escape_into(note, out);
    }
}

/// The call's name says these.
fn is_named(value: &Value) -> bool {
    matches!(value, Value::Class(_, Some(_)) | Value::Command(_, Some(_)))
}

fn text_of(value: &Value, sizes: Sizes) -> String {
    match value {
        Value::Bytes(size) => sizes.text(*size),
        Value::Text(_) => format!("\"{value}\""),
        _ => value.to_string(),
    }
}

/// Calls of all processes by decoded name are among the functions of the summary; this is who held what.
pub(super) fn to_json(report: &Report) -> serde_json::Value {
    report.processes.iter().map(process_json).collect()
}

fn process_json(process: &ProcessReport) -> serde_json::Value {
    let held = |held: Held| json!({"count": held.count, "bytes": held.bytes});
    json!({
        "pid": process.pid,
        "clients": process.clients,
        "devices": process.devices,
        "channel_groups": process.channel_groups,
        "channels": process.channels,
        "context_shares": process.context_shares,
        "uvm_spaces": process.uvm_spaces,
        "vidmem": held(process.vidmem),
        "vidmem_peak_bytes": process.vidmem_peak_bytes,
        "sysmem": held(process.sysmem),
        "other_memory": held(process.memory),
        "ranges": held(process.ranges),
        "mapped_bytes": process.mapped_bytes,
        "cpu_maps": held(process.cpu_maps),
        "gpu_maps": held(process.gpu_maps),
        "os_events": process.os_events,
        "ended": {
            "freed": process.ends.freed,
            "with_parent": process.ends.with_parent,
            "closed": process.ends.closed,
        },
        "of_unseen_objects": {
            "clients": process.unseen.clients,
            "frees": process.unseen.frees,
            "ends": process.unseen.ends,
        },
    })
}

/// Who held what in the driver.
pub(super) fn to_text(report: &Report) -> String {
    let mut out = String::new();
    let shown = report.processes.iter().filter(|process| !is_empty(process));
    for process in shown {
        process_text(process, &mut out);
    }
    if out.is_empty() {
        return out;
    }
    format!("\nin the kernel driver, at the end of the trace or of the process\n{out}")
}

fn is_empty(process: &ProcessReport) -> bool {
    process.clients == 0 && process.unseen == Unseen::default() && process.vidmem_peak_bytes == 0
}

fn process_text(process: &ProcessReport, out: &mut String) {
    let held = |held: Held| format!("{} ({})", bytes(held.bytes), count(held.count));
    let _ = writeln!(
        out,
        "  process {}: {} clients, {} contexts, {} channels in {} groups, {} OS events",
        process.pid,
        count(process.clients),
        count(process.context_shares),
        count(process.channels),
        count(process.channel_groups),
        count(process.os_events)
    );
    let _ = writeln!(
        out,
        "    taken: video memory {}, at most {}; system memory {}; under UVM {}, mapped {}",
        held(process.vidmem),
        bytes(process.vidmem_peak_bytes),
        held(process.sysmem),
        held(process.ranges),
        bytes(process.mapped_bytes)
    );
    let Unseen { clients, frees, ends } = process.unseen;
    if clients + frees + ends > 0 {
        let _ = writeln!(
            out,
            "    {} references to objects that were made before the trace: what is held is at least this",
            escaped(&count(clients + frees + ends))
        );
    }
}
