//! What changed, for a pull request.

use super::super::markdown::headline;
use super::super::words;
use super::{Diff, chapter};
use crate::model::finding::{Finding, Run};
use crate::section::markdown::{cell, code, write as write_chapter};
use std::fmt::Write;

/// The whole comparison.
#[must_use]
pub fn markdown(diff: &Diff<'_>) -> String {
    let (before, after) = (&diff.before.source.name, &diff.after.source.name);
    let mut out = format!("### gpuscope: {} → {}\n\n", code(before), code(after));
    for report in [diff.before, diff.after] {
        for note in &report.notes {
            let _ = writeln!(out, "> ⚠ {}: {}\n", code(&report.source.name), cell(note));
        }
    }
    for note in &diff.notes {
        let _ = writeln!(out, "> ⚠ {}\n", cell(note));
    }
    findings(diff, &mut out);
    out.push('\n');
    write_chapter(&chapter(diff), &mut out);
    out
}

fn findings(diff: &Diff<'_>, out: &mut String) {
    let (old, new) = (&diff.before.run, &diff.after.run);
    let line = |word: &str, finding: &Finding, run: &Run| {
        let (headline, cost) = (headline(finding), words::cost(finding, run));
        format!("- {word} {headline}: {cost}. {}\n", cell(&finding.what))
    };
    diff.appeared
        .iter()
        .for_each(|one| out.push_str(&line("🔴 new:", one, new)));
    diff.gone
        .iter()
        .for_each(|one| out.push_str(&line("🟢 gone:", one, old)));
    diff.stayed
        .iter()
        .for_each(|(_, one)| out.push_str(&line("⚪ still:", one, new)));
    if diff.appeared.len() + diff.gone.len() + diff.stayed.len() == 0 {
        let _ = writeln!(out, "- {}", diff.no_findings());
    }
}
