//! What changed, for a pull request.

use super::super::markdown::{cell, code};
use super::super::words;
use super::{Diff, FunctionChange, Measure};
use crate::model::finding::{Finding, Run};
use crate::text::quantity::{count, duration};
use std::fmt::Write;

/// Functions shown.
const SHOWN: usize = 10;

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
    findings(diff, &mut out);
    measures(diff, &mut out);
    functions(diff, &mut out);
    out
}

fn findings(diff: &Diff<'_>, out: &mut String) {
    let (old, new) = (&diff.before.run, &diff.after.run);
    let line = |word: &str, finding: &Finding, run: &Run| {
        let place = words::place(finding).map_or_else(String::new, |place| format!(", at {}", code(&place)));
        let cost = words::cost(finding, run);
        format!(
            "- {word} **{}**{place}: {cost}. {}\n",
            cell(&finding.title),
            cell(&finding.what)
        )
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
        out.push_str("- no findings in either\n");
    }
}

fn measures(diff: &Diff<'_>, out: &mut String) {
    out.push_str("\n| | before | after | change | per launch |\n|---|--:|--:|--:|--:|\n");
    let line = |measure: &Measure| {
        let (before, after) = measure.words();
        let per_launch = words::change(measure.change_per_launch());
        format!(
            "| {} | {before} | {after} | {} | {per_launch} |\n",
            measure.name,
            words::change(measure.change())
        )
    };
    diff.measures.iter().for_each(|measure| out.push_str(&line(measure)));
}

fn functions(diff: &Diff<'_>, out: &mut String) {
    if diff.functions.is_empty() {
        return;
    }
    out.push_str("\n| function | calls before | after | total before | after | by call |\n|---|--:|--:|--:|--:|--:|\n");
    let line = |change: &FunctionChange| {
        format!(
            "| {} | {} | {} | {} | {} | {} |\n",
            code(&change.name),
            count(change.before_calls),
            count(change.after_calls),
            duration(change.before_ns),
            duration(change.after_ns),
            words::change(change.mean_change())
        )
    };
    diff.functions
        .iter()
        .take(SHOWN)
        .for_each(|change| out.push_str(&line(change)));
}
