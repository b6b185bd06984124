//! One process in the text: what it holds and did on each device, and how it all ended.

use super::view::View;
use super::words::{name, place, since};
use super::{Rates, families, map, sites};
use crate::model::memory::{
    Account, Anomalies, DeviceReport, Ending, HOST, Origin, ProcessReport, Report, UNKNOWN_DEVICE,
};
use crate::section::words::per_second;
use crate::text::quantity::{bytes, count, escaped, plural};
use crate::wire::MemoryLoss;
use std::fmt::Write;

/// The driver is asked now and then; a reading this old is still of now.
const FRESH_NS: u64 = 2_000_000_000;

/// Everything about `process`.
pub(crate) fn block(report: &Report, process: &ProcessReport, rates: &Rates, view: View, out: &mut String) {
    let _ = writeln!(out, "{}{}", view.bold(&name(process)), state(report, process));
    for device in process.devices.iter().filter(|device| has_news(device)) {
        let rate = rates.of(process, device.device);
        let _ = writeln!(
            out,
            "  {}: {}",
            titled(device),
            view.bold(&held(&device.account, process))
        );
        account(report, &device.account, rate, view, out);
        driver(report, device, process, out);
    }
    if process.host.is_used() {
        let words = view.bold(&held(&process.host, process));
        let _ = writeln!(out, "  pinned and registered host memory: {words}");
        account(report, &process.host, rates.of(process, HOST), view, out);
    }
    tensors(process, out);
    sites::outstanding(report, process, view, out);
    map::list(report, process, view, out);
    families::table(process, out);
    families::pools(process, out);
    endings(process, out);
    anomalies(process, view, out);
    lost(&process.lost, view, out);
}

fn state(report: &Report, process: &ProcessReport) -> String {
    let mut words = String::new();
    if let Some(at) = process.ended_at {
        let _ = write!(words, ", ended at {:.2} s", since(report, at));
    }
    if process.origin == Origin::Late {
        words.push_str(", attached late: what it allocated before is not known");
    }
    words
}

fn has_news(device: &DeviceReport) -> bool {
    device.account.is_used() || device.driver_bytes.is_some()
}

fn titled(device: &DeviceReport) -> String {
    let names = [device.name.as_deref(), device.uuid.as_deref()];
    let names: Vec<String> = names.into_iter().flatten().map(escaped).collect();
    let guess = match device.inferred {
        true => "probably ",
        false => "",
    };
    match (device.device, names.is_empty()) {
        (UNKNOWN_DEVICE, true) => "on a device that is not known".to_owned(),
        (number, true) => place(number),
        (number, false) => format!("{} ({guess}{})", place(number), names.join(", ")),
    }
}

/// `holds 3.0 GiB in 12 allocations`. Of a process that ran before, only what it did since is known.
pub(super) fn held(account: &Account, process: &ProcessReport) -> String {
    let (verb, when) = match process.ended_at {
        Some(_) => ("held", " at its end"),
        None => ("holds", ""),
    };
    let (nothing, since) = match process.origin {
        Origin::Start => ("nothing", ""),
        Origin::Late => ("nothing that was allocated since", " made since"),
    };
    match account.outstanding {
        0 => format!("{verb} {nothing}{when}"),
        number => {
            let calls = plural(number, "allocation");
            format!("{verb} {} in {calls}{since}{when}", bytes(account.held_bytes))
        }
    }
}

fn account(report: &Report, account: &Account, rate: super::pace::Rate, view: View, out: &mut String) {
    if account.peak_bytes > 0 {
        let at = since(report, account.peak_at);
        let _ = writeln!(out, "    peak {} at {at:.2} s", bytes(account.peak_bytes));
    }
    let mut parts = Vec::new();
    let mut part = |number: u64, one: &str, size: u64, rate: f64| {
        if number > 0 {
            let words = plural(number, one);
            parts.push(format!("{words} ({}, {})", bytes(size), per_second(rate)));
        }
    };
    part(
        account.allocations,
        "allocation",
        account.allocated_bytes,
        rate.allocations,
    );
    part(account.frees, "free", account.freed_bytes, rate.frees);
    if account.failed_allocations > 0 {
        parts.push(view.red(&format!("{} failed", plural(account.failed_allocations, "allocation"))));
    }
    if !parts.is_empty() {
        let _ = writeln!(out, "    {}", parts.join(", "));
    }
}

/// What the driver says, beside what was seen.
fn driver(report: &Report, device: &DeviceReport, process: &ProcessReport, out: &mut String) {
    if let Some(all) = device.driver_bytes {
        let _ = write!(out, "    driver {}", said(report, device, all));
        if let Some(rest) = device.unattributed_bytes.filter(|rest| *rest > 0) {
            let _ = write!(out, "; unattributed {} ({})", bytes(rest), unattributed(process));
        }
        out.push('\n');
    }
    // of a device that is not known the title says so
    let notes = device.notes.iter().filter(|_| device.device != UNKNOWN_DEVICE);
    for note in notes {
        let _ = writeln!(out, "    note: {}", escaped(note));
    }
}

/// `says 1.5 GiB`, or when it said so.
fn said(report: &Report, device: &DeviceReport, all: u64) -> String {
    match device.driver_at.filter(|at| report.at.saturating_sub(*at) > FRESH_NS) {
        Some(at) => format!("said {} at {:.2} s", bytes(all), since(report, at)),
        None => format!("says {}", bytes(all)),
    }
}

/// What a framework's allocator makes of it.
fn tensors(process: &ProcessReport, out: &mut String) {
    let Some(tensors) = &process.tensors else { return };
    let _ = writeln!(
        out,
        "  framework's allocator: {} in {}, peak {}; {} handed out to {}, {} unused (its cache, and gaps)",
        bytes(tensors.segment_bytes),
        plural(tensors.segments, "segment"),
        bytes(tensors.peak_segment_bytes),
        bytes(tensors.tensor_bytes),
        plural(tensors.tensors, "tensor"),
        bytes(tensors.unused_bytes()),
    );
    if tensors.stray_bytes > 0 {
        let words = "handed out in all where no allocation was seen";
        let _ = writeln!(out, "    {} {words}", bytes(tensors.stray_bytes));
    }
}

/// What may hide in the difference; never more than can be known.
fn unattributed(process: &ProcessReport) -> String {
    let mut what = vec!["context", "code", "workspaces"];
    if process.origin == Origin::Late {
        what.push("before attach");
    }
    let nowhere = |device: &DeviceReport| device.device == UNKNOWN_DEVICE && device.account.held_bytes > 0;
    if process.devices.iter().any(nowhere) {
        what.push("what is on a device that is not known");
    }
    if process.lost != MemoryLoss::default() || process.anomalies.unreadable > 0 {
        what.push("calls not seen");
    }
    what.join(", ")
}

fn endings(process: &ProcessReport, out: &mut String) {
    let ended = process.endings.iter().filter(|(_, ended)| ended.count > 0);
    let words: Vec<String> = ended
        .map(|(how, ended)| {
            let by = match how {
                Ending::Freed => by_whom(process),
                _ => String::new(),
            };
            format!("{} {} ({}{by})", how.name(), count(ended.count), bytes(ended.bytes))
        })
        .collect();
    if !words.is_empty() {
        let _ = writeln!(out, "  how allocations ended: {}", words.join(", "));
    }
}

fn by_whom(process: &ProcessReport) -> String {
    let functions = process.freed_by.iter();
    let words = functions.map(|by| format!("; {} {}", escaped(&by.function), count(by.ended.count)));
    words.collect()
}

fn anomalies(process: &ProcessReport, view: View, out: &mut String) {
    let Anomalies {
        double_frees,
        unknown_frees,
        failed_frees,
        reused_pointers,
        unreadable,
        unfollowed,
        unsized_arrays,
    } = process.anomalies;
    let unknown = match process.origin {
        Origin::Start => "of memory that was never seen allocated",
        Origin::Late => "of memory not seen allocated, from before or unknown",
    };
    let all = [
        (double_frees, "free", "of what had been freed before"),
        (unknown_frees, "free", unknown),
        (failed_frees, "free", "that failed"),
        (reused_pointers, "address", "handed out again although no free was seen"),
        (
            unreadable,
            "allocation",
            "whose address or size could not be read: not in the figures",
        ),
        (
            unfollowed,
            "allocation",
            "beyond the 16,777,216 that are followed: not in the figures",
        ),
        (
            unsized_arrays,
            "array",
            "of a format whose size is not known: counted with no bytes",
        ),
    ];
    for (number, one, what) in all.into_iter().filter(|(number, _, _)| *number > 0) {
        let _ = writeln!(out, "  {}: {} {what}", view.red("odd"), plural(number, one));
    }
}

fn lost(lost: &MemoryLoss, view: View, out: &mut String) {
    if lost.allocations > 0 {
        let (calls, size) = (plural(lost.allocations, "allocation"), bytes(lost.bytes));
        let _ = writeln!(
            out,
            "  {}: {calls} ({size}): more was held than is shown",
            view.red("lost")
        );
    }
    if lost.others > 0 {
        let calls = plural(lost.others, "other call");
        let words = "frees and the like: less may be held than is shown";
        let _ = writeln!(out, "  {}: {calls}, {words}", view.red("lost"));
    }
}
