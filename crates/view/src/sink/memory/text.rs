//! The report as text: each process, the one that holds most first, then what limits the figures.

use super::view::View;
use super::words::name;
use super::{Rates, process};
use crate::model::memory::{Account, ProcessReport, Report};
use crate::text::fit::fit;
use crate::text::quantity::{bytes, escaped, plural};
use std::fmt::Write;

/// Processes shown with all that there is to say where there are no more.
const FEW: usize = 8;
/// Of many those that hold most; of the next ones how much they hold; the rest is one line.
const OF_MANY: usize = 3;
const IN_SHORT: usize = 16;

/// The whole report; for a terminal, in lines of at most `columns` characters.
pub fn page(report: &Report, rates: &Rates, view: View, columns: Option<usize>) -> String {
    fit(&whole_lines(report, rates, view), columns)
}

fn whole_lines(report: &Report, rates: &Rates, view: View) -> String {
    let mut out = heading(report, view);
    let processes = by_size(report);
    let whole = if processes.len() > FEW { OF_MANY } else { FEW };
    let (whole, others) = processes.split_at(whole.min(processes.len()));
    for process in whole {
        out.push('\n');
        process::block(report, process, rates, view, &mut out);
    }
    let (in_short, others) = others.split_at(IN_SHORT.min(others.len()));
    if !in_short.is_empty() {
        out.push_str("\nothers hold\n");
    }
    for process in in_short {
        let _ = writeln!(out, "{:>12}  {}", bytes(process.held_bytes()), name(process));
    }
    rest(others, &mut out);
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
    families.into_iter().any(Account::is_used)
        || process.devices.iter().any(|device| device.driver_bytes.is_some())
        || process.anomalies != crate::model::memory::Anomalies::default()
        || process.lost != crate::wire::MemoryLoss::default()
}

fn rest(processes: &[&ProcessReport], out: &mut String) {
    if processes.is_empty() {
        return;
    }
    let held = processes
        .iter()
        .map(|process| process.held_bytes())
        .fold(0, u64::saturating_add);
    let more = plural(processes.len() as u64, "more process");
    let _ = writeln!(out, "{:>12}  {more} (--json has all)", bytes(held));
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
