//! Which line of the program the GPU's time went to, in the summary: as text and as JSON.

use super::memory::Apart;
use super::work::Stacks;
use crate::frame::Frame;
use crate::model::activity::{Report, SiteTotal};
use crate::section::text::Ink;
use crate::section::{self, Cell, Column, Table};
use crate::text::quantity::duration;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Lines that are shown where there is little room.
const FEW: usize = 10;

/// What devices did for one line of the program.
struct Line {
    place: String,
    name: String,
    runs: u64,
    ns: u64,
}

/// By line and by what was done, most time first; of sites whose stack is known.
fn lines(report: &Report, stacks: &Stacks, full: bool) -> Vec<Line> {
    let known = report.by_site.iter();
    let known: Vec<(&SiteTotal, &[Frame])> = known
        .filter_map(|sum| Some((sum, stacks.get(&sum.site)?.as_slice())))
        .filter(|(_, stack)| !stack.is_empty())
        .collect();
    let apart = Apart::of(known.iter().map(|(_, stack)| *stack));
    let mut sums: BTreeMap<(String, &str), (u64, u64)> = BTreeMap::new();
    for (sum, stack) in &known {
        let (runs, ns) = sums.entry((apart.label(stack), sum.what.name(full))).or_default();
        *runs = runs.saturating_add(sum.total.count);
        *ns = ns.saturating_add(sum.total.ns);
    }
    let sums = sums.into_iter();
    let mut lines: Vec<Line> = sums
        .map(|((place, name), (runs, ns))| Line {
            place,
            name: name.to_owned(),
            runs,
            ns,
        })
        .collect();
    lines.sort_by_key(|line| std::cmp::Reverse(line.ns));
    lines
}

/// Time of what belongs to no line.
fn rest_ns(report: &Report, lines: &[Line]) -> u64 {
    let known = lines.iter().fold(0u64, |sum, line| sum.saturating_add(line.ns));
    report.all_ns().saturating_sub(known)
}

/// Fields of the summary's `gpu`.
pub(super) fn add_json(report: &Report, stacks: &Stacks, full: bool, gpu: &mut Value) {
    let lines = lines(report, stacks, full);
    gpu["unattributed_us"] = json!(rest_ns(report, &lines) as f64 / 1e3);
    gpu["by_site"] = lines
        .into_iter()
        .map(|line| json!({"where": line.place, "kernel": line.name, "runs": line.runs, "total_us": line.ns as f64 / 1e3}))
        .collect();
}

/// A part of the summary's section; empty where no call site is known.
pub(super) fn to_text(report: &Report, stacks: &Stacks, full: bool, out: &mut String) {
    let lines = lines(report, stacks, full);
    if lines.is_empty() {
        return;
    }
    let all = report.all_ns().max(1);
    let rest = rest_ns(report, &lines);
    let _ = writeln!(
        out,
        "  by line of the program; {} ({:.1} %) belongs to none that is known",
        duration(rest),
        rest as f64 * 100.0 / all as f64
    );
    let columns = vec![
        Column::text("kernel"),
        Column::text("from").after(" at "),
        Column::number("time"),
        Column::number("share"),
        Column::number("runs"),
    ];
    let rows = lines.into_iter().map(|line| {
        vec![
            Cell::Text(line.name),
            Cell::site(line.place),
            Cell::Duration(line.ns),
            Cell::Share(line.ns as f64 / all as f64),
            Cell::Count(line.runs),
        ]
    });
    let table = Table {
        few: FEW,
        all_in: super::summary::ALL_IN,
        ..Table::flat(columns, rows).counting("line", 4, "run")
    };
    section::text::table(&table, Ink(false), out);
}
