//! The report as text: each process, the one that holds most first, then what limits the figures.

use super::Rates;
use super::process;
use crate::model::memory::{ProcessReport, Report};
use crate::sink::quantity::{bytes, escaped, plural};
use std::fmt::Write;

/// Processes shown; the rest is one line.
const SHOWN: usize = 20;

/// How a report is to look.
#[derive(Debug, Clone, Copy)]
pub struct View {
    /// Call sites shown for each process.
    pub top: usize,
    pub colour: bool,
}

impl View {
    pub(super) fn bold(&self, text: &str) -> String {
        self.painted("\x1b[1m", text)
    }

    pub(super) fn red(&self, text: &str) -> String {
        self.painted("\x1b[1;31m", text)
    }

    pub(super) fn dim(&self, text: &str) -> String {
        self.painted("\x1b[2m", text)
    }

    fn painted(&self, code: &str, text: &str) -> String {
        match self.colour {
            true => format!("{code}{text}\x1b[0m"),
            false => text.to_owned(),
        }
    }
}

/// The whole report.
pub fn page(report: &Report, rates: &Rates, view: View) -> String {
    let mut out = heading(report, view);
    let processes = by_size(report);
    for process in processes.iter().take(SHOWN) {
        out.push('\n');
        process::block(report, process, rates, view, &mut out);
    }
    rest(processes.get(SHOWN..).unwrap_or_default(), &mut out);
    if processes.is_empty() {
        out.push_str("\nno call that takes or gives back memory was seen\n");
    }
    notes(report, &mut out);
    out
}

fn heading(report: &Report, view: View) -> String {
    let seconds = report.seconds();
    let words = match report.last {
        true => format!("── gpuscope: memory, {seconds:.2} s watched ──"),
        false => format!("── gpuscope: memory at {seconds:.2} s ──"),
    };
    view.bold(&words) + "\n"
}

/// Those that hold most first; processes that had nothing to do with memory are left out.
pub(super) fn by_size(report: &Report) -> Vec<&ProcessReport> {
    let mut processes: Vec<&ProcessReport> = report
        .processes
        .iter()
        .filter(|process| did_anything(process))
        .collect();
    processes.sort_by_key(|process| std::cmp::Reverse(process.held_bytes()));
    processes
}

fn did_anything(process: &ProcessReport) -> bool {
    let families = process.families.iter().map(|family| &family.account);
    let tried = |account: &crate::model::memory::Account| account.allocations + account.failed_allocations > 0;
    families.into_iter().any(tried)
        || process.devices.iter().any(|device| device.driver_bytes.is_some())
        || process.anomalies != crate::model::memory::Anomalies::default()
        || process.lost != crate::wire::MemoryLoss::default()
}

fn rest(processes: &[&ProcessReport], out: &mut String) {
    if processes.is_empty() {
        return;
    }
    let held: u64 = processes.iter().map(|process| process.held_bytes()).sum();
    let more = plural(processes.len() as u64, "more process");
    let _ = writeln!(out, "\n{more}, {} held (--json has all)", bytes(held));
}

fn notes(report: &Report, out: &mut String) {
    if report.forgotten == 0 && report.notes.is_empty() {
        return;
    }
    out.push('\n');
    if report.forgotten > 0 {
        let processes = plural(report.forgotten, "ended process");
        let _ = writeln!(out, "note: {processes} left out: too many have ended");
    }
    for note in &report.notes {
        let _ = writeln!(out, "note: {}", escaped(note));
    }
}
