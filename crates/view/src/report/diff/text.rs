//! What changed, for a terminal.

use super::super::{Report, words};
use super::{Diff, chapter};
use crate::model::finding::{Finding, Run};
use crate::section::text::{Ink, wrapped, write as write_chapter};
use crate::text::fit::fit;
use crate::text::quantity::escaped;
use std::fmt::Write;

/// The whole comparison; for a terminal, in lines of at most `columns` characters.
#[must_use]
pub fn page(diff: &Diff<'_>, colour: bool, columns: Option<usize>) -> String {
    fit(&whole_lines(diff, colour), columns)
}

fn whole_lines(diff: &Diff<'_>, colour: bool) -> String {
    let ink = Ink(colour);
    let mut out = String::new();
    for (name, report) in [("before", diff.before), ("after ", diff.after)] {
        side(name, report, ink, &mut out);
    }
    for note in &diff.notes {
        let words = wrapped(&format!("! {}", escaped(note)), "  ");
        out.push_str(&ink.warn(&words));
    }
    findings(diff, ink, &mut out);
    write_chapter(&chapter(diff), ink, &mut out);
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
        let _ = writeln!(out, "  {}", diff.no_findings());
    }
}

fn line(word: &str, finding: &Finding, run: &Run, out: &mut String) {
    let _ = writeln!(out, "  {word}  {}", words::headline(finding));
    let _ = writeln!(out, "        {}", words::cost(finding, run));
}
