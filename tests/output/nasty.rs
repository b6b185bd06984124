//! One list of nasty texts, through every name that a program or a crafted file controls, into every format.

use crate::display::{FILE, scrape};
use flate2::read::GzDecoder;
use gpuscope::catalog::{Catalog, Class, CopyKind};
use gpuscope::clock::Clock;
use gpuscope::export::paths::{ByPath, collapsed::Collapsed, pprof::Pprof, speedscope::Speedscope};
use gpuscope::export::{chrome, csv::Csv, perfetto};
use gpuscope::filter::Filter;
use gpuscope::model::summary::{Copies, Failure, Summary};
use gpuscope::owner::Owner;
use gpuscope::paths::Weight;
use gpuscope::record::{Encoder, Ending, Kind, Meta, Record, Taker};
use gpuscope::report::{Collector, Report, Source, diff, html, json, markdown, text};
use gpuscope::serve::exposition::{Format, render};
use gpuscope::serve::metric::{Sample, Value};
use gpuscope::serve::metrics;
use gpuscope::sink::json::Json;
use gpuscope::sink::summary;
use gpuscope::sink::text::Text;
use gpuscope::timeline::{Bins, Look, Survey, Window, draw};
use gpuscope::trace::{Reader, Recorder};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::io::Read;
use std::sync::Arc;
use std::time::Instant;

/// Terminals, HTML, spreadsheets, JSON, labels, Perfetto, Markdown, bytes that are no UTF-8, writing from right to left.
const NASTY: [&str; 26] = [
    "\u{1b}[2J",
    "\u{1b}]0;x\u{7}",
    "\u{9b}2J",
    "\u{7f}",
    "\r",
    "\n",
    "\t",
    "\0",
    "\u{202e}gnp",
    "\u{2066}",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\"><b>",
    "&lt;",
    "</title></style></script>",
    "=HYPERLINK(\"http://x\")",
    "+1",
    "-1",
    "@SUM(A1)",
    "\",\"injected\":\"x",
    "\"}\n{\"type\":\"summary\"}",
    "\\",
    "a|b|c",
    "[x](javascript:alert(1))`*_~",
    "\u{fffd}\u{fffd}",
    "a=\"b\",c=\"\\\n\"} 1\n# EOF",
];
const PLAIN: &str = "plain";

fn meta(text: &str) -> Meta {
    Meta {
        clock: Clock {
            start_monotonic_ns: 0,
            start_unix_ns: 1_700_000_000_000_000_000,
        },
        command: vec!["app".to_owned(), text.to_owned()],
        tier: text.to_owned(),
        host: text.to_owned(),
        tool: text.to_owned(),
    }
}

/// Rows of each type, with the text wherever a text may stand. `crafted`: also where only JSON should.
fn rows<'a>(text: &'a str, frames: &'a str, args: &'a str) -> Vec<Record<'a>> {
    const MS: i64 = 1_000_000;
    let call = |at: i64, name: &'a str, class| Record {
        ns: Some(2 * MS as u64),
        tid: 8,
        comm: text,
        layer: "driver",
        name,
        class,
        result: Some(2),
        error: Some(text),
        failed: class == Class::Alloc,
        bytes: Some(1 << 20),
        stack: Some(frames),
        args: Some(args),
        ..Record::new(Kind::Call, at, 7)
    };
    let of = |kind, at| Record {
        comm: text,
        name: text,
        args: Some(args),
        ..Record::new(kind, at, 7)
    };
    vec![
        of(Kind::Process, 0),
        call(MS, "cuMemAlloc_v2", Class::Alloc),
        Record {
            address: Some(0x7f00),
            held: Some(1 << 20),
            failed: false,
            ..call(4 * MS, "cuMemAlloc_v2", Class::Alloc)
        },
        Record {
            kernel: Some(text),
            stream: Some(0),
            ..call(8 * MS, "cuLaunchKernel", Class::Launch)
        },
        Record {
            direction: Some(CopyKind::HtoD),
            ..call(12 * MS, "cuMemcpyHtoD_v2", Class::Copy)
        },
        Record {
            layer: text,
            ..call(16 * MS, text, Class::Other)
        },
        Record {
            layer: "kernel",
            kind: Kind::Kernel,
            ..call(17 * MS, text, Class::Ioctl)
        },
        call(20 * MS, "cuStreamSynchronize", Class::Sync),
        Record {
            ns: Some(MS as u64),
            args: Some(r#"{"device":0,"call_tid":8,"call_ts_ns":8000000,"match":"ordered"}"#),
            ..of(Kind::Gpu, 21 * MS)
        },
        of(Kind::Sample, 24 * MS),
        of(Kind::Count, 24 * MS),
        of(Kind::Lost, 25 * MS),
        of(Kind::Xid, 26 * MS),
        Record {
            ns: Some(5 * MS as u64),
            ..of(Kind::Idle, 27 * MS)
        },
    ]
}

/// Frames and arguments as we write them, or as a crafted file may have them.
fn within_json(text: &str, crafted: bool) -> (String, String) {
    if crafted {
        return (text.to_owned(), text.to_owned());
    }
    let frame = serde_json::json!([{"function": text, "file": text, "line": 3, "module": text, "language": "python",
        "offset": null, "inlined": false}]);
    (
        frame.to_string(),
        serde_json::json!({text: text, "path": text}).to_string(),
    )
}

fn totals(text: &str) -> Summary {
    let mut summary = Summary {
        seconds: 1.0,
        unseen: vec![text.to_owned()],
        counted_only: vec![text.to_owned()],
        ..Summary::default()
    };
    summary.failures = vec![Failure {
        function: text.to_owned(),
        error: text.to_owned(),
        code: 2,
        count: 1,
    }];
    summary.copies = vec![Copies {
        layer: text.to_owned(),
        direction: None,
        calls: 1,
        bytes: 1,
    }];
    summary
}

/// What is made of a recording with that text in it.
struct Made {
    rows: Vec<u8>,
    totals: Summary,
    host: String,
}

impl Made {
    fn of(text: &str, crafted: bool) -> Made {
        let (frames, args) = within_json(text, crafted);
        let mut recorder = Recorder::new(&meta(text)).expect("a recorder");
        let mut bytes = Vec::new();
        rows(text, &frames, &args)
            .iter()
            .for_each(|row| recorder.push(row, &mut bytes));
        let totals = totals(text);
        let exact = summary::to_json_line(&totals);
        let last = Record {
            args: Some(&exact),
            ..Record::new(Kind::Summary, 40_000_000, 0)
        };
        recorder.push(&last, &mut bytes);
        recorder.end(&mut bytes);
        Made {
            rows: bytes,
            totals,
            host: text.to_owned(),
        }
    }

    fn read(&self, taker: &mut dyn Taker) -> Option<String> {
        Reader::new(&self.rows[..]).expect("a recording").read(taker).summary
    }

    fn report(&self) -> Report {
        let mut collector = Collector::new();
        let exact = self.read(&mut collector);
        let source = Source {
            name: self.host.clone(),
            cut: Some(self.host.clone()),
            ..Source::default()
        };
        collector.report(source, exact.as_deref())
    }

    fn exported(&self, encoder: Box<dyn Encoder>) -> Vec<u8> {
        struct Written(Box<dyn Encoder>, Vec<u8>);
        impl Taker for Written {
            fn start(&mut self, meta: &Meta) {
                self.0.start(meta, &mut self.1);
            }
            fn take(&mut self, event: &Record<'_>) {
                self.0.take(event, &mut self.1);
            }
        }
        let mut written = Written(encoder, Vec::new());
        let exact = self.read(&mut written);
        let ending = Ending {
            summary: exact.as_deref(),
            cut: None,
        };
        written.0.finish(&ending, &mut written.1);
        written.1
    }

    fn picture(&self) -> String {
        let filter = Filter::parse(&[], &[]).expect("a filter");
        let limits = Window {
            from: i64::MIN,
            to: i64::MAX,
        };
        let mut survey = Survey::new(&filter, limits);
        self.read(&mut survey);
        let lanes = survey.busiest(24);
        let look = Look {
            width: 80,
            colour: false,
        };
        let mut bins = Bins::new(&filter, survey.window().expect("rows"), look.columns(), &lanes);
        self.read(&mut bins);
        draw::draw(&self.host, &survey, &bins, look)
    }
}

fn lines_of(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// Whether a terminal would obey something in it, or show it in another order.
fn drives_a_terminal(text: &str) -> bool {
    let turns = |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().any(|c| c != '\n' && (c.is_control() || turns(c)))
}

/// As RFC 4180 has them.
fn cells(csv: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut rest = csv.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '"' if quoted && rest.peek() == Some(&'"') => cell.extend(rest.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut cell)),
            '\n' if !quoted => {
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            c => cell.push(c),
        }
    }
    rows
}

/// Elements of a page, each with its attributes.
fn elements(page: &str) -> Vec<&str> {
    let tags = page.split('<').skip(1);
    tags.map(|rest| rest.split('>').next().unwrap_or_default()).collect()
}

/// Names of elements, and how many of those that may run something.
fn kinds(page: &str) -> (BTreeSet<String>, usize) {
    let name = |tag: &&str| {
        let end = tag.find(|c: char| !c.is_ascii_alphanumeric() && c != '/' && c != '!');
        tag[..end.unwrap_or(tag.len())].to_ascii_lowercase()
    };
    let names: Vec<String> = elements(page).iter().map(name).collect();
    let scripts = names.iter().filter(|name| *name == "script").count();
    (names.into_iter().collect(), scripts)
}

/// Cells of each row of a table, by bars that are not escaped.
fn bars(page: &str) -> Vec<usize> {
    let rows = page.lines().filter(|line| line.starts_with('|'));
    rows.map(|row| row.replace("\\|", "").matches('|').count()).collect()
}

fn check(text: &str, crafted: bool) -> Result<(), TestCaseError> {
    let (made, plain) = (Made::of(text, crafted), Made::of(PLAIN, crafted));
    let report = made.report();
    for (what, shown) in [
        ("report", text::page(&report, false, None)),
        ("diff", diff::page(&diff::diff(&report, &report), false, None)),
        ("picture", made.picture()),
        ("summary", summary::to_text(&made.totals)),
        (
            "live lines",
            lines_of(&made.exported(Box::new(Text::new(meta(text).clock, 0, false)))),
        ),
        ("page of the exporter", page(text)),
        ("markdown", markdown::page(&report)),
        ("html", html::page(&report)),
        ("diff as markdown", diff::markdown(&diff::diff(&report, &report))),
    ] {
        prop_assert!(!drives_a_terminal(&shown), "{what} of {text:?}: {shown}");
    }
    for (what, line) in [
        ("report", json::to_line(&report)),
        ("diff", diff::to_line(&diff::diff(&report, &report))),
        ("summary", summary::to_json_line(&made.totals)),
    ] {
        prop_assert!(
            serde_json::from_str::<serde_json::Value>(&line).is_ok(),
            "{what}: {line}"
        );
        prop_assert!(!line.trim_end().contains(char::is_control), "{what}: {line:?}");
    }
    check_lines(text, &made)?;
    check_metrics(text)?;
    check_tables(text, &made, &plain)?;
    check_profiles(&made, &plain)?;
    check_traces(&made)
}

/// Each metric, of an owner whose labels have that text, with that text as the value of its own labels.
fn samples(text: &str) -> Vec<Sample> {
    let labels = ["comm", "pod", "unit"].map(|name| (name.to_owned(), text.to_owned()));
    let owner = Arc::new(Owner {
        labels: labels.to_vec(),
    });
    let sample = |metric: &'static gpuscope::serve::metric::Metric| {
        let values = metric.labels.iter().map(|_| text.to_owned().into()).collect();
        let sample = Sample::new(metric, values, Value::Integer(1));
        if metric.by_owner { sample.of(&owner) } else { sample }
    };
    metrics::all().map(sample).collect()
}

fn page(text: &str) -> String {
    let start = Instant::now();
    let scrape = scrape(start, vec![samples(text)]);
    gpuscope::top::page::page(
        &scrape.samples,
        &gpuscope::serve::display::Pace::new(start).rates(&scrape),
        FILE,
    )
}

/// A text neither ends a line of the exposition nor begins one.
fn check_metrics(text: &str) -> Result<(), TestCaseError> {
    for format in [Format::Plain, Format::OpenMetrics] {
        let (lines, plain) = (render(&samples(text), format), render(&samples(PLAIN), format));
        let begins = |text: &str| -> Vec<String> {
            let names = text.lines().map(|line| line.split('{').next().unwrap_or_default());
            names.map(str::to_owned).collect()
        };
        prop_assert_eq!(begins(&lines), begins(&plain), "{}", lines);
    }
    Ok(())
}

fn check_lines(text: &str, made: &Made) -> Result<(), TestCaseError> {
    let lines = lines_of(&made.exported(Box::new(
        Json::default().with_names(&Catalog::builtin().expect("a catalogue")),
    )));
    prop_assert_eq!(lines.lines().count(), rows("", "", "").len() + 2);
    for line in lines.lines() {
        let record: serde_json::Value = serde_json::from_str(line).expect("JSON");
        prop_assert!(!line.contains(char::is_control), "{line:?}");
        if record["type"] == "userspace" {
            prop_assert_eq!(record["comm"].as_str(), Some(text));
        }
    }
    Ok(())
}

fn check_tables(text: &str, made: &Made, plain: &Made) -> Result<(), TestCaseError> {
    let csv = lines_of(&made.exported(Box::new(Csv::default())));
    let rows = cells(&csv);
    prop_assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{csv}");
    for cell in rows.iter().flatten() {
        let is_number = cell.parse::<i64>().is_ok() && !text.contains(cell.as_str());
        prop_assert!(
            is_number || !cell.starts_with(['=', '+', '-', '@', '\t', '\r']),
            "{cell:?}"
        );
        prop_assert!(!drives_a_terminal(cell) && !cell.contains('\n'), "{cell:?}");
    }
    let (page, plain_page) = (html::page(&made.report()), html::page(&plain.report()));
    prop_assert_eq!(kinds(&page), kinds(&plain_page), "{}", text);
    let runs = |tag: &&str| {
        ["onerror", "javascript:", "alert("]
            .iter()
            .any(|word| tag.contains(word))
    };
    // an attribute may show a text; quotes that would end it are escaped
    let loose = elements(&page)
        .into_iter()
        .filter(runs)
        .filter(|tag| tag.matches('"').count() % 2 == 1)
        .count();
    prop_assert_eq!(loose, 0);
    let (page, plain_page) = (markdown::page(&made.report()), markdown::page(&plain.report()));
    prop_assert_eq!(bars(&page), bars(&plain_page), "{}", page);
    // what begins outside of code would be an element
    let element = |line: &str| {
        let text = outside_code(line);
        text.contains("<script") || text.contains("<img")
    };
    prop_assert!(!page.lines().any(element), "{}", page);
    Ok(())
}

/// A line of Markdown without its code. A backslash makes a backtick a sign outside of code, and is one itself within.
fn outside_code(line: &str) -> String {
    let (mut text, mut in_code) = (String::new(), false);
    let mut signs = line.chars();
    while let Some(sign) = signs.next() {
        match sign {
            '`' => in_code = !in_code,
            '\\' if !in_code => text.extend(signs.next()),
            _ if in_code => {}
            _ => text.push(sign),
        }
    }
    text
}

#[test]
fn what_is_code_in_a_line_of_markdown() {
    assert_eq!(outside_code(r"a `<b>` \`<c>\` `d\` e"), r"a  `<c>`  e");
}

/// Call paths keep their frames, whatever these are called.
fn check_profiles(made: &Made, plain: &Made) -> Result<(), TestCaseError> {
    for weight in [Weight::Gpu, Weight::Wait] {
        let collapsed = |made: &Made| lines_of(&made.exported(Box::new(ByPath::new(Collapsed, weight))));
        let (lines, plain) = (collapsed(made), collapsed(plain));
        let frames = |lines: &str| -> Vec<(usize, bool)> {
            let ends = |line: &str| line.rsplit(' ').next().is_some_and(|ns| ns.parse::<u64>().is_ok());
            lines
                .lines()
                .map(|line| (line.matches(';').count(), ends(line)))
                .collect()
        };
        prop_assert!(!drives_a_terminal(&lines), "{lines:?}");
        prop_assert_eq!(frames(&lines), frames(&plain), "{}", lines);
        let file = lines_of(&made.exported(Box::new(ByPath::new(Speedscope, weight))));
        prop_assert!(serde_json::from_str::<serde_json::Value>(&file).is_ok(), "{file}");
        prop_assert!(!drives_a_terminal(&file), "{file:?}");
        let (packed, mut profile) = (made.exported(Box::new(ByPath::new(Pprof, weight))), Vec::new());
        GzDecoder::new(&packed[..]).read_to_end(&mut profile).expect("gzip");
        let texts = String::from_utf8_lossy(&profile);
        for driver in ["\u{1b}[2J", "\u{1b}]0;", "\u{202e}gnp"] {
            prop_assert!(!texts.contains(driver), "pprof has {:?}", driver);
        }
    }
    Ok(())
}

fn check_traces(made: &Made) -> Result<(), TestCaseError> {
    let chrome = lines_of(&made.exported(Box::new(chrome::encoder())));
    prop_assert!(serde_json::from_str::<serde_json::Value>(&chrome).is_ok(), "{chrome}");
    prop_assert!(!chrome.replace('\n', "").contains(char::is_control), "{chrome:?}");
    let perfetto = made.exported(Box::new(perfetto::encoder()));
    let bytes = String::from_utf8_lossy(&perfetto);
    for driver in ["\u{1b}[2J", "\u{1b}]0;", "\u{202e}gnp"] {
        prop_assert!(!bytes.contains(driver), "Perfetto has {:?}", driver);
    }
    Ok(())
}

#[test]
fn each_nasty_text_is_harmless_everywhere() {
    for text in NASTY {
        for crafted in [false, true] {
            check(text, crafted).unwrap_or_else(|why| panic!("{text:?}, crafted: {crafted}: {why}"));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_mixture_of_them_is(parts in proptest::collection::vec(prop_oneof![
        3 => proptest::sample::select(&NASTY[..]).prop_map(str::to_owned),
        // rows without a layer have one without a name: that of no text would be the same
        1 => any::<String>().prop_filter("some text", |text| !text.is_empty()),
    ], 1..5), crafted: bool) {
        check(&parts.concat(), crafted)?;
    }
}
