//! The report for a pull request or an issue: Markdown as GitHub and GitLab read it.

use super::{Report, words};
use crate::findings::Finding;
use crate::sink::quantity::{bytes, count, duration, escaped};
use std::fmt::Write;

/// Rows of a table.
const SHOWN: usize = 10;

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
    for (index, finding) in report.findings.iter().enumerate() {
        out.push_str(&one(index + 1, finding, report));
    }
    totals(report, &mut out);
    functions(report, &mut out);
    failures(report, &mut out);
    out
}

fn one(number: usize, finding: &Finding, report: &Report) -> String {
    let place = words::place(finding).map_or_else(String::new, |place| format!(" at {}", code(&place)));
    let mut out = format!(
        "{number}. **{}**: {}{place}  \n   {}  \n   *{}*\n",
        finding.rule,
        words::cost(finding, &report.run),
        cell(&finding.what),
        cell(&finding.cure)
    );
    if let Some(weakened) = &finding.weakened {
        let _ = writeln!(out, "   ⚠ {}", cell(weakened));
    }
    out
}

fn totals(report: &Report, out: &mut String) {
    let mut line = |name: &str, value: String| {
        let _ = writeln!(out, "| {name} | {value} |");
    };
    line("", String::new());
    line("---", "--:".to_owned());
    line("from first to last call", duration(report.wall_ns()));
    if let Some(layer) = report.cuda() {
        line(&format!("calls ({} layer)", cell(&layer.layer)), count(layer.calls));
        line("of these failed", count(layer.errors));
    }
    line("launches", count(report.launches()));
    line("copied", bytes(report.copied_bytes()));
    line("waiting in calls, all threads", duration(report.wait_ns()));
    let idle: u64 = report.idle.iter().map(|idle| idle.total_ns).sum();
    if !report.idle.is_empty() {
        line("GPU idle at least", duration(idle));
    }
    if let Some(peak) = report.memory.peak_bytes() {
        line("memory peak of one process", bytes(peak));
    }
    out.push('\n');
}

fn functions(report: &Report, out: &mut String) {
    for layer in &report.layers {
        let _ = write!(
            out,
            "<details><summary>{} layer: {} calls, {}</summary>\n\n\
             | function | calls | errors | total | p99 | bytes |\n|---|--:|--:|--:|--:|--:|\n",
            cell(&layer.layer),
            count(layer.calls),
            duration(layer.total_ns)
        );
        let optional = |ns: Option<u64>| ns.map_or_else(|| "–".to_owned(), duration);
        for function in layer.functions.iter().take(SHOWN) {
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} | {} | {} |",
                code(&function.name),
                count(function.calls),
                function.errors.map_or_else(|| "–".to_owned(), count),
                optional(function.total_ns),
                optional(function.p99_ns),
                bytes(function.bytes)
            );
        }
        out.push_str("\n</details>\n\n");
    }
}

fn failures(report: &Report, out: &mut String) {
    if report.failures.is_empty() {
        return;
    }
    out.push_str("| failed calls | error | function |\n|--:|---|---|\n");
    for failure in report.failures.iter().take(SHOWN) {
        let _ = writeln!(
            out,
            "| {} | {} | {} |",
            count(failure.count),
            code(&failure.error),
            code(&failure.name)
        );
    }
}

/// Text from a trace in a cell: neither markup nor the end of the cell.
pub(super) fn cell(text: &str) -> String {
    let mut out = String::new();
    for character in escaped(text).chars() {
        match character {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' | '#' | '!' | '~' => {
                out.push('\\');
                out.push(character);
            }
            // no mention, no reference
            '@' => out.push_str("&#64;"),
            other => out.push(other),
        }
    }
    out
}

/// A name as code; what could end it is written otherwise.
pub(super) fn code(text: &str) -> String {
    let text = escaped(text).replace('`', "'").replace('|', "¦");
    format!("`{text}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_stays_in_its_cell() {
        assert_eq!(cell("a|b\n<img> @me"), "a\\|b\\\\n&lt;img&gt; &#64;me");
        assert_eq!(code("a`b|c"), "`a'b¦c`");
    }
}
