//! What is wrong.

use super::super::{Report, words};
use crate::model::finding::Finding;
use crate::section::text::{Ink, wrapped};
use crate::text::quantity::{count, escaped};
use std::fmt::Write;

const INDENT: &str = "      ";

pub(super) fn write(report: &Report, ink: Ink, out: &mut String) {
    let of = report.shares_of().map_or_else(String::new, |of| format!(", {of}"));
    let _ = writeln!(out, "\n{}{of}", ink.strong("What is wrong"));
    if report.findings.is_empty() {
        let _ = writeln!(out, "  {}", escaped(&words::healthy(report)));
    }
    for (index, finding) in report.findings.iter().enumerate() {
        one(index + 1, finding, report, ink, out);
    }
    if let Some(what) = report.unexplained() {
        let said = format!("not explained: {}", escaped(&what));
        let _ = write!(out, "  {}", wrapped(&said, "  "));
    }
}

fn one(number: usize, finding: &Finding, report: &Report, ink: Ink, out: &mut String) {
    let title = ink.bad(&escaped(&finding.title));
    let _ = writeln!(out, "{number:>3}.  {title}{}", words::at_place(finding));
    let mut line = |text: String| out.push_str(&format!("{INDENT}{}", wrapped(&text, INDENT)));
    line(words::cost(finding, &report.run));
    line(escaped(&finding.what));
    line(format!("do: {}", escaped(&finding.cure)));
    let moments: Vec<String> = finding
        .moments
        .iter()
        .map(|moment| escaped(&words::moment(moment)))
        .collect();
    if !moments.is_empty() {
        line(format!("worst of {}: {}", count(finding.count), moments.join("; ")));
    }
    if !finding.thresholds.is_empty() {
        line(format!("rule: {}", escaped(&finding.thresholds)));
    }
    if let Some(weakened) = &finding.weakened {
        line(format!("but: {}", escaped(weakened)));
    }
}
