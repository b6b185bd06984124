//! A few lines about memory, for a summary of everything.

use super::process::held;
use super::text::by_size;
use super::words::{name, place};
use super::{Apart, sites};
use crate::model::memory::{Account, HOST, ProcessReport, Report};
use crate::text::quantity::{bytes, count, escaped};
use crate::wire::MemoryLoss;
use std::fmt::Write;

const PROCESSES: usize = 8;
const SITES: usize = 3;

/// What each process held at most and at last, and who asked for it. Empty where nobody used memory.
pub(crate) fn brief(report: &Report) -> String {
    let mut out = String::new();
    let processes = by_size(report);
    if processes.is_empty() {
        return out;
    }
    out.push_str("\nmemory (gpuscope leaks says more)\n");
    for process in processes.iter().take(PROCESSES) {
        of_process(report, process, &mut out);
    }
    let rest = processes.get(PROCESSES..).unwrap_or_default();
    if !rest.is_empty() {
        let held = rest
            .iter()
            .map(|process| process.held_bytes())
            .fold(0, u64::saturating_add);
        let _ = writeln!(out, "  {} more processes, {} held", rest.len(), bytes(held));
    }
    for note in &report.notes {
        let _ = writeln!(out, "  note: {}", escaped(note));
    }
    out
}

fn of_process(report: &Report, process: &ProcessReport, out: &mut String) {
    for device in process.devices.iter().filter(|device| device.account.is_used()) {
        line(process, device.device, &device.account, out);
    }
    if process.host.is_used() {
        line(process, HOST, &process.host, out);
    }
    let sites = sites::held(process).filter_map(|site| {
        let frames = report.stacks.get(&site.site)?.as_slice();
        Some((frames, [site.account.held_bytes, site.account.outstanding]))
    });
    let sums = Apart::sums(&sites.collect::<Vec<_>>());
    for ([size, number], at) in sums.into_iter().take(SITES) {
        let _ = writeln!(out, "    {} in {} from {at}", bytes(size), count(number));
    }
    if process.lost != MemoryLoss::default() {
        out.push_str("    not exact: some memory calls were lost\n");
    }
}

fn line(process: &ProcessReport, device: i16, account: &Account, out: &mut String) {
    let _ = writeln!(
        out,
        "  {}, {}: peak {}, {}{}",
        name(process),
        match device {
            HOST => "pinned host memory".to_owned(),
            other => place(other),
        },
        bytes(account.peak_bytes),
        held(account, process),
        match account.failed_allocations {
            0 => String::new(),
            failed => format!(", {failed} failed"),
        }
    );
}
