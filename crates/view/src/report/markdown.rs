//! The report for a pull request or an issue: Markdown as GitHub and GitLab read it.

use super::{Report, words};
use crate::model::finding::Finding;
use crate::sink::outside;
use crate::text::quantity::{bytes, count, duration, escaped};
use std::fmt::Write;

/// Rows of a table.
const SHOWN: usize = 10;

/// Processes whose idle time is told.
const IDLE: usize = 3;

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
    if let Some(of) = report.run.steady_words().filter(|_| !report.findings.is_empty()) {
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
    totals(report, &mut out);
    functions(report, &mut out);
    failures(report, &mut out);
    out
}

fn one(number: usize, finding: &Finding, report: &Report) -> String {
    let place = words::place(finding).map_or_else(String::new, |place| format!(", at {}", code(&place)));
    let mut out = format!(
        "{number}. **{}**{place}  
   {}  
   {}  
   do: *{}*",
        cell(&finding.title),
        words::cost(finding, &report.run),
        cell(&finding.what),
        cell(&finding.cure)
    );
    if let Some(weakened) = &finding.weakened {
        let _ = write!(out, "  \n   ⚠ {}", cell(weakened));
    }
    out + "\n"
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
    }
    line("failed calls", cell(&words::figure(report.failed())));
    line("launches", cell(&words::figure(report.launches())));
    for graphs in words::graphs(report) {
        line("graphs", cell(&graphs));
    }
    line("copied", bytes(report.copied_bytes()));
    line("waiting", cell(&words::waiting(report)));
    if let Some(more) = words::unasked(report) {
        line("", cell(&more));
    }
    for idle in report.idle.iter().take(IDLE) {
        let word = if idle.inferred { "inferred" } else { "at least" };
        line(&format!("GPU idle, process {}, {word}", idle.pid), cell(&idle.words()));
    }
    for sampled in outside::lines(&report.outside).iter().take(IDLE) {
        line("outside CUDA, sampled", cell(sampled));
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
            html(&layer.layer),
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

/// Text from a trace within a block of HTML, where nothing is Markdown.
fn html(text: &str) -> String {
    escaped(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Text from a trace in a cell or in a line of its own: neither markup nor the end of the cell.
pub(super) fn cell(text: &str) -> String {
    let text = escaped(text);
    let mut out = String::new();
    if begins_a_list(&text) {
        // seen by nobody
        out.push_str("&#8203;");
    }
    for character in text.chars() {
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

/// `- x`, `+ x`, `3. x`, `3) x`, and what underlines a heading.
fn begins_a_list(text: &str) -> bool {
    let numberless = text.trim_start_matches(|sign: char| sign.is_ascii_digit());
    let signs: &[char] = match numberless.len() < text.len() {
        true => &['.', ')'],
        false => &['-', '+'],
    };
    let rest = numberless.strip_prefix(signs);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '-'])) || text.starts_with('=')
}

/// A name as code; what could end it is written otherwise.
pub(super) fn code(text: &str) -> String {
    if text.is_empty() {
        return "–".to_owned();
    }
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
        assert_eq!(html("a_b<c>&"), "a_b&lt;c&gt;&amp;");
        assert_eq!([cell("3. x"), cell("- x")], ["&#8203;3. x", "&#8203;- x"]);
        assert_eq!([cell("3.5 x"), cell("-5 x")], ["3.5 x", "-5 x"]);
    }
}
