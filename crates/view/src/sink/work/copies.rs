//! Copies by direction, host memory and manner, of all processes together.

use super::words::{bandwidth, direction, host, name, sizes};
use crate::catalog::{CopyKind, HostMemory};
use crate::model::work::{Bandwidth, Certainty, CopyReport, ProcessReport};
use crate::section::text::{Ink, table as write_table};
use crate::section::{Cell, Column, Table};
use crate::text::quantity::{bytes, count, plural};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Processes shown; the rest is one line.
const PROCESSES: usize = 8;

type Key = (Option<CopyKind>, Option<HostMemory>, bool);

/// A line for each; totals by process where there are several.
pub(crate) fn section(processes: &[ProcessReport], out: &mut String) {
    let lines = merged(processes);
    let lossy = processes.iter().filter(|process| process.lost.copies > 0);
    let lossy: Vec<&ProcessReport> = lossy.collect();
    if lines.is_empty() && lossy.is_empty() {
        return;
    }
    heading(&lines, out);
    write_table(&table(&lines), Ink(false), out);
    by_process(processes, out);
    for process in lossy {
        let copies = plural(process.lost.copies, "copy");
        let size = bytes(process.lost.bytes);
        let _ = writeln!(out, "not exact: {copies} ({size}) by {} lost", name(process));
    }
}

fn heading(lines: &[CopyReport], out: &mut String) {
    let copies = lines.iter().fold(0u64, |sum, line| sum.saturating_add(line.count));
    let size = lines.iter().fold(0u64, |sum, line| sum.saturating_add(line.bytes));
    let bound = |line: &CopyReport| line.bandwidth.is_some_and(|speed| speed.certainty == Certainty::Bound);
    let legend = match lines.iter().any(bound) {
        true => "; ≥: at least that fast",
        false => "",
    };
    let _ = writeln!(
        out,
        "\ncopies: {} of {} in all (time: in the calls{legend})",
        count(copies),
        bytes(size)
    );
}

fn table(lines: &[CopyReport]) -> Table {
    let columns = vec![
        Column::text("copies"),
        Column::number("count"),
        Column::number("bytes"),
        Column::number("bandwidth"),
        Column::number("time"),
        Column::number("typical size"),
    ];
    let table = Table::flat(columns, lines.iter().map(row));
    Table {
        few: lines.len(),
        ..table.wide(&[10, 10, 13, 10, 13])
    }
}

fn row(line: &CopyReport) -> Vec<Cell> {
    let speed = line
        .bandwidth
        .map(|speed| bandwidth(speed.bytes_per_second(), speed.certainty));
    vec![
        Cell::Text(what(line)),
        Cell::Count(line.count),
        Cell::Bytes(line.bytes),
        Cell::of(speed, Cell::Text),
        Cell::Duration(line.call_ns),
        Cell::of(most(line).map(sizes), Cell::Text),
    ]
}

/// From where to where, and how.
fn what(line: &CopyReport) -> String {
    let mut out = direction(line.direction).to_owned();
    if let Some(kind) = line.host {
        let _ = write!(out, ", {}", host(kind));
    }
    out.push_str(match line.blocking {
        true => ", blocking",
        false => ", asynchronous",
    });
    if line.unsized_count > 0 {
        let _ = write!(out, " ({} of unknown size)", count(line.unsized_count));
    }
    out
}

/// The bucket that most copies are in.
fn most(line: &CopyReport) -> Option<usize> {
    let used = line.sizes.iter().enumerate().filter(|(_, number)| **number > 0);
    used.max_by_key(|(_, number)| **number).map(|(bucket, _)| bucket)
}

fn by_process(processes: &[ProcessReport], out: &mut String) {
    let sums = processes.iter().filter(|process| !process.copies.is_empty());
    let mut sums: Vec<(u64, u64, &ProcessReport)> = sums
        .map(|process| {
            let add = |sum: (u64, u64), line: &CopyReport| {
                (sum.0.saturating_add(line.bytes), sum.1.saturating_add(line.count))
            };
            let (size, number) = process.copies.iter().fold((0, 0), add);
            (size, number, process)
        })
        .collect();
    if sums.len() < 2 {
        return;
    }
    sums.sort_by_key(|(size, number, _)| std::cmp::Reverse((*size, *number)));
    for (size, number, process) in sums.iter().take(PROCESSES) {
        let _ = writeln!(out, "{:>12} {:>10}  by {}", count(*number), bytes(*size), name(process));
    }
    if sums.len() > PROCESSES {
        let more = plural((sums.len() - PROCESSES) as u64, "more process");
        let _ = writeln!(out, "{:>12} (--summary json has all)", more);
    }
}

/// Most bytes first.
fn merged(processes: &[ProcessReport]) -> Vec<CopyReport> {
    let mut sums: BTreeMap<Key, CopyReport> = BTreeMap::new();
    for report in processes.iter().flat_map(|process| &process.copies) {
        let key = (report.direction, report.host, report.blocking);
        match sums.get_mut(&key) {
            Some(sum) => add(sum, report),
            None => drop(sums.insert(key, report.clone())),
        }
    }
    let mut lines: Vec<CopyReport> = sums.into_values().collect();
    lines.sort_by_key(|line| std::cmp::Reverse((line.bytes, line.count)));
    lines
}

fn add(sum: &mut CopyReport, more: &CopyReport) {
    sum.count = sum.count.saturating_add(more.count);
    sum.bytes = sum.bytes.saturating_add(more.bytes);
    sum.unsized_count = sum.unsized_count.saturating_add(more.unsized_count);
    sum.call_ns = sum.call_ns.saturating_add(more.call_ns);
    for (sum, more) in sum.sizes.iter_mut().zip(more.sizes) {
        *sum = sum.saturating_add(more);
    }
    sum.bandwidth = match (sum.bandwidth, more.bandwidth) {
        (Some(one), Some(other)) => Some(Bandwidth {
            bytes: one.bytes.saturating_add(other.bytes),
            ns: one.ns.saturating_add(other.ns),
            certainty: one.certainty.max(other.certainty),
        }),
        (one, other) => one.or(other),
    };
}
