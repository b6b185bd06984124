//! The report for a pull request or an issue: Markdown as GitHub and GitLab read it.

use super::{Report, chapters, short, words};
use crate::model::finding::Finding;
use crate::section::markdown::{cell, code, sentence, table, write as write_chapter};
use std::fmt::Write;

/// The whole report.
#[must_use]
pub fn page(report: &Report) -> String {
    let mut out = format!("### gpuscope: {}\n\n", code(&words::title(report)));
    let _ = writeln!(out, "{}\n", cell(&words::circumstances(report).join(", ")));
    for note in &report.notes {
        let _ = writeln!(out, "> ⚠ {}\n", cell(note));
    }
    if report.findings.is_empty() {
        let _ = writeln!(out, "{}\n", cell(&words::healthy(report)));
    }
    if let Some(of) = report.shares_of() {
        let _ = writeln!(out, "{}\n", cell(&format!("Shares are {of}.")));
    }
    for (index, finding) in report.findings.iter().enumerate() {
        out.push_str(&one(index + 1, finding, report));
    }
    // else what follows is part of the last one
    out.push('\n');
    if let Some(what) = report.unexplained() {
        let _ = writeln!(out, "\n> not explained: {}\n", cell(&what));
    }
    table(&short::table(report), &mut out);
    chapters::of(report)
        .iter()
        .for_each(|chapter| write_chapter(chapter, &mut out));
    closing(report, &mut out);
    out
}

/// What happens, and where.
pub(super) fn headline(finding: &Finding) -> String {
    let place = words::place(finding).map_or_else(String::new, |place| format!(", at {}", code(&place)));
    format!("**{}**{place}", cell(&finding.title))
}

fn one(number: usize, finding: &Finding, report: &Report) -> String {
    let mut out = format!(
        "{number}. {}  
   {}  
   {}  
   do: *{}*",
        headline(finding),
        words::cost(finding, &report.run),
        cell(&finding.what),
        cell(&finding.cure)
    );
    if let Some(weakened) = &finding.weakened {
        let _ = write!(out, "  \n   ⚠ {}", cell(weakened));
    }
    out + "\n"
}

fn closing(report: &Report, out: &mut String) {
    let lines = short::missing(report).into_iter().chain(short::cost(report));
    lines.for_each(|line| sentence(&line, out));
}
