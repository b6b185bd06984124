//! The report for a terminal: what is wrong first, then totals. At most 100 columns.

mod findings;

use super::{Report, chapters, short, words};
use crate::section::text::{Ink, wrapped, write as write_chapter};
use crate::text::fit::fit;
use crate::text::quantity::escaped;
use std::fmt::Write;

/// The whole report; for a terminal, in lines of at most `columns` characters.
#[must_use]
pub fn page(report: &Report, colour: bool, columns: Option<usize>) -> String {
    fit(&whole_lines(report, colour), columns)
}

fn whole_lines(report: &Report, colour: bool) -> String {
    let ink = Ink(colour);
    let mut out = String::new();
    let _ = writeln!(out, "{}", ink.strong(&escaped(&words::title(report))));
    let _ = writeln!(out, "{}", escaped(&words::circumstances(report).join(", ")));
    for note in &report.notes {
        out.push_str(&ink.warn(&wrapped(&format!("! {}", escaped(note)), "  ")));
    }
    findings::write(report, ink, &mut out);
    in_short(report, ink, &mut out);
    chapters::of(report)
        .iter()
        .for_each(|chapter| write_chapter(chapter, ink, &mut out));
    closing(report, ink, &mut out);
    out
}

fn in_short(report: &Report, ink: Ink, out: &mut String) {
    let _ = writeln!(out, "\n{}", ink.strong("In short"));
    for (name, value) in short::facts(report) {
        let _ = writeln!(out, "  {name:<18}{}", escaped(&value));
    }
}

fn closing(report: &Report, ink: Ink, out: &mut String) {
    out.push('\n');
    for line in short::missing(report) {
        let shown = wrapped(&escaped(&line), "  ");
        out.push_str(&match line == short::NOTHING_LOST {
            true => ink.weak(shown.trim_end()) + "\n",
            false => shown,
        });
    }
    if let Some(cost) = short::cost(report) {
        let _ = writeln!(out, "{}", ink.weak(&cost));
    }
}
