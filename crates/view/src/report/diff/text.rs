//! What changed, for a terminal.

use super::super::text::{Ink, table, wrapped};
use super::super::{Report, words};
use super::{Diff, FunctionChange, Measure};
use crate::model::finding::{Finding, Run};
use crate::text::fit::fit;
use crate::text::quantity::{count, duration, escaped};
use std::fmt::Write;

/// Functions shown.
const SHOWN: usize = 15;

/// The whole comparison.
#[must_use]
pub fn page(diff: &Diff<'_>, colour: bool) -> String {
    page_within(diff, colour, None)
}

/// The same in lines of at most `columns` characters, for a terminal.
#[must_use]
pub fn page_within(diff: &Diff<'_>, colour: bool, columns: Option<usize>) -> String {
    fit(&whole_lines(diff, colour), columns)
}

fn whole_lines(diff: &Diff<'_>, colour: bool) -> String {
    let ink = Ink(colour);
    let mut out = String::new();
    for (name, report) in [("before", diff.before), ("after ", diff.after)] {
        side(name, report, ink, &mut out);
    }
    findings(diff, ink, &mut out);
    measures(diff, ink, &mut out);
    functions(diff, ink, &mut out);
    out
}

fn side(name: &str, report: &Report, ink: Ink, out: &mut String) {
    let file = escaped(&report.source.name);
    let about = [escaped(&words::title(report))]
        .into_iter()
        .chain(words::circumstances(report));
    let about = about.collect::<Vec<_>>().join(", ");
    let _ = write!(
        out,
        "{name}  {}",
        wrapped(&format!("{}: {}", ink.strong(&file), escaped(&about)), "        ")
    );
    for note in &report.notes {
        out.push_str(&ink.warn(&format!(
            "        {}",
            wrapped(&format!("! {}", escaped(note)), "          ")
        )));
    }
}

fn findings(diff: &Diff<'_>, ink: Ink, out: &mut String) {
    let _ = writeln!(out, "\n{}", ink.strong("Findings"));
    let (old, new) = (&diff.before.run, &diff.after.run);
    for finding in &diff.appeared {
        line(&ink.bad("new "), finding, new, out);
    }
    for finding in &diff.gone {
        line("gone", finding, old, out);
    }
    for (before, after) in &diff.stayed {
        line("both", after, new, out);
        let _ = writeln!(out, "        it was {}", words::cost(before, old));
    }
    if diff.appeared.len() + diff.gone.len() + diff.stayed.len() == 0 {
        let _ = writeln!(out, "  none in either");
    }
}

fn line(word: &str, finding: &Finding, run: &Run, out: &mut String) {
    // escaped where frames are named
    let at = words::place(finding).map_or_else(String::new, |place| format!(", at {place}"));
    let _ = writeln!(out, "  {word}  {}{at}", escaped(&finding.title));
    let _ = writeln!(out, "        {}", words::cost(finding, run));
}

fn measures(diff: &Diff<'_>, ink: Ink, out: &mut String) {
    let (changed, same): (Vec<&Measure>, Vec<&Measure>) = diff.measures.iter().partition(|one| one.has_changed());
    let _ = writeln!(out, "\n{}", ink.strong("Totals"));
    let row = |measure: &&Measure| {
        let (before, after) = measure.words();
        let per_launch = measure.change_per_launch();
        vec![
            before,
            after,
            words::change(measure.change()),
            words::change(per_launch),
            measure.name.to_owned(),
        ]
    };
    let rows: Vec<Vec<String>> = changed.iter().map(row).collect();
    if !rows.is_empty() {
        table::write(&["before", "after", "change", "per launch", ""], &rows, out);
    }
    let same: Vec<&str> = same.iter().map(|measure| measure.name).collect();
    if !same.is_empty() {
        let _ = write!(
            out,
            "  {}",
            wrapped(&format!("as before (within 1 %): {}", same.join(", ")), "  ")
        );
    }
}

fn functions(diff: &Diff<'_>, ink: Ink, out: &mut String) {
    if diff.functions.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{}", ink.strong("Functions"));
    let row = |change: &FunctionChange| {
        let more = change.more_ns();
        let sign = if more < 0 { "-" } else { "+" };
        vec![
            format!("{sign}{}", duration(more.unsigned_abs())),
            words::change(change.mean_change()),
            count(change.before_calls),
            count(change.after_calls),
            duration(change.before_ns),
            duration(change.after_ns),
            table::name(&change.name),
        ]
    };
    let rows: Vec<Vec<String>> = diff.functions.iter().take(SHOWN).map(row).collect();
    let heads = [
        "time",
        "by call",
        "calls before",
        "after",
        "total before",
        "after",
        "function",
    ];
    table::write(&heads, &rows, out);
    let rest = diff.functions.len().saturating_sub(SHOWN);
    if rest > 0 {
        let _ = writeln!(out, "  … {rest} more (--json)");
    }
}
