//! Which line of the program the GPU's time went to, in the summary: as text and as JSON.

use super::memory::Apart;
use super::work::Stacks;
use crate::frame::Frame;
use crate::model::activity::{Report, SiteTotal, What};
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

/// Behind the time that belongs to no line: what tells the lines of launches, where there were some (`launched`) and what
/// has lines (`names`) are copies and fills alone.
pub(crate) fn without_launches<'a>(launched: bool, mut names: impl Iterator<Item = &'a str>) -> &'static str {
    match launched && names.all(What::is_transfer) {
        true => "; --stacks launch tells those of launches",
        false => "",
    }
}

/// A part of the summary's section; empty where no call site is known.
pub(super) fn to_text(report: &Report, stacks: &Stacks, full: bool, out: &mut String) {
    let lines = lines(report, stacks, full);
    if lines.is_empty() {
        return;
    }
    let all = report.all_ns().max(1);
    let rest = rest_ns(report, &lines);
    let launched = report
        .devices
        .iter()
        .any(|device| device.kernels.count > 0 || device.graphs.count > 0);
    let _ = writeln!(
        out,
        "  by line of the program; {} ({:.1} %) belongs to none that is known{}",
        duration(rest),
        rest as f64 * 100.0 / all as f64,
        without_launches(launched, lines.iter().map(|line| line.name.as_str()))
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
        all_in: super::ALL_IN,
        ..Table::flat(columns, rows).counting("line", 4, "run")
    };
    section::text::table(&table, Ink(false), out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Language;
    use crate::model::activity::{DeviceReport, Span, Total};

    fn total(count: u64, ns: u64) -> Total {
        Total { count, ns, max_ns: ns }
    }

    fn frame(line: u32, function: &str) -> Frame {
        Frame {
            language: Language::Python,
            function: function.to_owned(),
            file: Some("train.py".to_owned()),
            line: Some(line),
            module: None,
            offset: None,
            inlined: false,
        }
    }

    /// Fills of 100 ns from two lines, of which one has two call sites, and some of a site without a stack.
    fn report() -> (Report, Stacks) {
        let site = |site, count, ns| SiteTotal {
            site,
            what: What::Memset { bytes: 4 },
            total: total(count, ns),
        };
        let device = DeviceReport {
            pid: 7,
            device: 0,
            kernels: Total::default(),
            in_graphs: 0,
            graphs: Total::default(),
            memsets: total(9, 100),
            copies: Vec::new(),
            by_kernel: Vec::new(),
            other_kernels: Total::default(),
            span: Span::default(),
            causes: Vec::new(),
            steady: None,
        };
        let report = Report {
            devices: vec![device],
            by_site: vec![site(31, 2, 40), site(32, 1, 20), site(33, 1, 15), site(34, 2, 5)],
            ..Report::default()
        };
        let stacks = [
            (31, vec![frame(3, "zero_grad")]),
            (32, vec![frame(9, "reset\u{1b}")]),
            (33, vec![frame(3, "zero_grad")]),
        ];
        (report, stacks.into_iter().collect())
    }

    #[test]
    fn sites_of_one_line_are_one_and_the_rest_is_said() {
        let (report, stacks) = report();
        let mut out = String::new();
        to_text(&report, &stacks, false, &mut out);
        insta::assert_snapshot!(out);
    }

    #[test]
    fn lines_and_the_rest_add_up_to_all() {
        let (report, stacks) = report();
        let mut gpu = json!({});
        add_json(&report, &stacks, false, &mut gpu);
        let sites = gpu["by_site"].as_array().unwrap().iter();
        let us: f64 = sites.map(|site| site["total_us"].as_f64().unwrap()).sum();
        assert_eq!((us, gpu["unattributed_us"].as_f64()), (0.075, Some(0.025)));
    }

    #[test]
    fn where_kernels_ran_and_no_launch_is_known_it_is_said_what_tells_them() {
        let (mut report, stacks) = report();
        report.devices[0].kernels = total(1, 50);
        let written = |report: &Report| {
            let mut out = String::new();
            to_text(report, &stacks, false, &mut out);
            out
        };
        assert!(written(&report).contains("known; --stacks launch tells those of launches\n"));
        report.by_site[0].what = What::Graph;
        assert!(!written(&report).contains("--stacks"));
    }

    #[test]
    fn without_a_call_site_nothing_is_written() {
        let (report, _) = report();
        let mut out = String::new();
        to_text(&report, &Stacks::default(), false, &mut out);
        assert_eq!(out, "");
    }
}
