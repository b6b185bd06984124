//! Rows and totals that a recording may hold, whatever they say: a report of them in each form, and what changed since
//! the first half.

use crate::{is_harmless, rows};
use gpuscope::record::Taker;
use gpuscope::report::diff::{self, diff};
use gpuscope::report::{Collector, Report, Source, html, json, markdown, text};
use gpuscope::trace::Covers;

fn report(first: u8, summary: &str, bytes: &[u8]) -> Report {
    let mut collector = Collector::new();
    collector.covers(match first & 12 {
        4 => Covers::Unsaid,
        8 => Covers::From(1 << 20),
        _ => Covers::All,
    });
    let meta = rows::meta(first);
    collector.start(&meta);
    let source = Source {
        name: "x".to_owned(),
        rows: rows::give(bytes, &mut collector),
        cut: (first & 16 != 0).then(|| "why".to_owned()),
        ..Source::default()
    };
    collector.report(source, (!summary.is_empty()).then_some(summary))
}

fn is_json(line: &str) {
    let line = line.strip_suffix('\n').expect("a line");
    is_harmless(line);
    assert!(!line.contains('\n'));
    serde_json::from_str::<serde_json::Value>(line).expect("JSON");
}

pub fn run(input: &[u8]) {
    let Some((first, summary, bytes)) = rows::split(input) else {
        return;
    };
    let after = report(first, summary, bytes);
    let columns = Some(usize::from(first)).filter(|columns| *columns > 64);
    match first % 7 {
        0 => is_harmless(&text::page(&after, false, columns)),
        1 => is_json(&json::to_line(&after)),
        2 => is_harmless(&markdown::page(&after)),
        3 => is_page(&html::page(&after)),
        form => {
            let before = report(first, summary, &bytes[..bytes.len() / 2]);
            let diff = diff(&before, &after);
            match form {
                4 => is_harmless(&diff::page(&diff, false, columns)),
                5 => is_json(&diff::to_line(&diff)),
                _ => is_harmless(&diff::markdown(&diff)),
            }
        }
    }
}

/// No text ends the page's own script, or begins one.
fn is_page(page: &str) {
    is_harmless(page);
    let (begun, ended) = (page.matches("<script").count(), page.matches("</script").count());
    assert_eq!(begun, ended, "{page}");
    assert!(!page.contains("</script><script>"), "{page}");
}
