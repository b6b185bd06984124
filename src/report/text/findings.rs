//! What is wrong.

use super::super::{Report, words};
use super::{Ink, wrapped};
use crate::findings::Finding;
use crate::sink::quantity::{count, escaped};
use std::fmt::Write;

const INDENT: &str = "      ";

pub(super) fn write(report: &Report, ink: Ink, out: &mut String) {
    let _ = writeln!(out, "\n{}", ink.strong("What is wrong"));
    if report.findings.is_empty() {
        let _ = writeln!(out, "  {}", escaped(&words::healthy(report)));
    }
    for (index, finding) in report.findings.iter().enumerate() {
        one(index + 1, finding, report, ink, out);
    }
}

fn one(number: usize, finding: &Finding, report: &Report, ink: Ink, out: &mut String) {
    let rule = ink.bad(finding.rule);
    let _ = writeln!(out, "{number:>3}.  {rule}: {}", words::cost(finding, &report.run));
    let mut line = |text: String| out.push_str(&format!("{INDENT}{}", wrapped(&text, INDENT)));
    line(escaped(&finding.what));
    if let Some(place) = words::place(finding) {
        // escaped where frames are named
        line(format!("where: {place}"));
    }
    line(format!("do: {}", escaped(&finding.cure)));
    let moments: Vec<String> = finding
        .moments
        .iter()
        .map(|moment| escaped(&words::moment(moment)))
        .collect();
    if !moments.is_empty() {
        line(format!(
            "seen {} times, worst {}",
            count(finding.count),
            moments.join("; ")
        ));
    }
    if !finding.thresholds.is_empty() {
        line(format!("rule: {}", escaped(&finding.thresholds)));
    }
    if let Some(weakened) = &finding.weakened {
        line(format!("but: {}", escaped(weakened)));
    }
}
