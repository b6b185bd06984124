//! JSON lines, read back into records.
#![cfg(feature = "record")]

use crate::catalog::{Catalog, Class};
use crate::export::sample;
use crate::record::{Encoder, Ending, Kind, Record, Taker};
use crate::sink::json::Json;
use crate::trace::lines::Lines;
use crate::trace::{End, Latest};

/// Keeps rows as text: they borrow.
#[derive(Default)]
struct Rows(Vec<String>);

impl Taker for Rows {
    fn take(&mut self, event: &Record<'_>) {
        self.0.push(format!("{event:?}"));
    }
}

fn read(text: &str) -> (End, Rows) {
    let mut rows = Rows::default();
    let end = Lines::new(text.as_bytes()).unwrap().read(&mut rows);
    (end, rows)
}

fn written() -> String {
    sample::written(&mut Json::default().with_names(&Catalog::builtin().unwrap()))
}

#[test]
fn rows_come_back_as_they_were() {
    let (end, rows) = read(&written());
    let events = sample::events();
    assert_eq!((end.rows as usize, end.cut), (events.len(), None));
    for (index, (row, event)) in rows.0.iter().zip(&events).enumerate() {
        // a caller whose line comes later is not known yet, and whatever is called so waits
        let known = event.since_caller.filter(|since| {
            let caller = event.at - *since as i64;
            events[..index]
                .iter()
                .any(|before| before.at == caller && before.tid == event.tid)
        });
        let expected = Record {
            since_caller: known,
            blocking: event.blocking || event.class == Class::Sync && matches!(event.kind, Kind::Call | Kind::Open),
            ..*event
        };
        assert_eq!(*row, format!("{expected:?}"));
    }
}

#[test]
fn what_describes_the_trace_comes_back() {
    let text = written();
    assert_eq!(*Lines::new(text.as_bytes()).unwrap().meta(), sample::meta());
}

#[test]
fn lines_that_were_cut_off_are_read_as_far_as_they_go() {
    let text = written();
    let begin = text.find('\n').unwrap() + 1;
    for (length, _) in text.char_indices().filter(|(at, _)| *at >= begin).step_by(7) {
        let (end, rows) = read(&text[..length]);
        assert_eq!(end.rows as usize, rows.0.len());
        assert!(end.cut.is_some() && end.summary.is_none(), "{length}");
    }
}

#[test]
fn what_was_exported_of_a_cut_recording_says_so() {
    let mut out = Vec::new();
    let mut encoder = Json::default();
    encoder.start(&sample::meta(), &mut out);
    encoder.finish(
        &Ending {
            summary: None,
            cut: Some("the disk was full"),
        },
        &mut out,
    );
    let (end, _) = read(std::str::from_utf8(&out).unwrap());
    assert_eq!(end.cut.as_deref(), Some("the disk was full"));
}

#[test]
fn the_last_totals_of_a_cut_recording_come_back() {
    let latest = Latest {
        at: 12_300_000_001,
        totals: "{\"type\":\"snapshot\",\"functions\":[]}".to_owned(),
        rows_after: None,
        whole: true,
    };
    let mut out = Vec::new();
    let mut encoder = Json::default();
    encoder.start(&sample::meta(), &mut out);
    encoder.take(&latest.record(), &mut out);
    let cut = Some("the disk was full");
    encoder.finish(&Ending { summary: None, cut }, &mut out);
    let (end, rows) = read(std::str::from_utf8(&out).unwrap());
    assert_eq!((end.snapshot, end.cut.as_deref(), rows.0.len()), (Some(latest), cut, 0));
}

#[test]
fn other_lines_are_refused_with_a_reason() {
    for (text, why) in [
        ("{\"a\":1}\n", "its first line is no meta line"),
        ("{\"type\":\"meta\",\"tool\":\"gpuscope\"}\n", "has no start"),
        ("{\n", "no JSON object"),
        ("{", "ends within a line"),
        ("", "it is empty"),
    ] {
        let said = gpuscope_core::refusal::message(&Lines::new(text.as_bytes()).err().unwrap());
        assert!(said.contains(why) && said.contains("\nhint: "), "{text}: {said}");
    }
}

#[test]
fn lines_of_earlier_versions_have_their_classes_and_failures() {
    let text = concat!(
        "{\"type\":\"meta\",\"tool\":\"gpuscope\",\"version\":\"0.0.9\",\"start_monotonic_ns\":1,\"start_unix_ns\":2,\"command\":[]}\n",
        "{\"event_id\":1,\"ts\":0.5,\"type\":\"userspace\",\"layer\":\"runtime\",\"name\":\"cudaMalloc\",\"pid\":7,\"tid\":7,",
        "\"comm\":\"x\",\"depth\":0,\"category\":\"memory\",\"args\":{},\"size\":4,\"ret\":2,\"error\":\"cudaErrorMemoryAllocation\"}\n",
    );
    let (end, rows) = read(text);
    assert_eq!(end.rows, 1);
    assert!(
        rows.0[0].contains("class: Alloc") && rows.0[0].contains("failed: true"),
        "{}",
        rows.0[0]
    );
}

/// A call that returns has another line then; one that does not, has one at the end. Where that is missing, the last one counts.
#[test]
fn a_call_that_hangs_is_told_once_however_often_it_has_a_line() {
    let text = written();
    let open = |ts: &str, tid: u32, us: &str| {
        format!(
            r#"{{"ts":{ts},"type":"open","layer":"driver","name":"cuInit","api":"cuInit","open_us":{us},"pid":7,"tid":{tid}}}"#
        )
    };
    let (first, rest) = text.split_once('\n').unwrap();
    let (rest, last) = rest.trim_end().rsplit_once('\n').unwrap();
    let (all, whole) = read(&text);
    let with = |lines: &[String], last: &str| {
        let (end, rows) = read(&format!("{first}\n{}\n{rest}\n{last}", lines.join("\n")));
        assert_eq!(end.cut.is_some(), last.is_empty());
        rows.0
    };
    let last = format!("{last}\n");
    assert!(all.cut.is_none());
    let returned = open("0.000100500", 8, "1000000.000");
    assert_eq!(with(&[returned], &last), whole.0, "it has returned");
    let long = open("0.1", 9, "7.000");
    assert_eq!(
        with(std::slice::from_ref(&long), &last),
        whole.0,
        "nothing says that it has not"
    );
    let at_end = open("0.1", 9, r#"70.000,"at_end":true"#);
    for (lines, last, ns) in [
        (vec![long.clone(), at_end], last.as_str(), "ns: Some(70000)"),
        (vec![long], "", "ns: Some(7000)"),
    ] {
        let rows = with(&lines, last);
        let told: Vec<&String> = rows
            .iter()
            .filter(|row| row.contains("kind: Open") && row.contains("tid: 9"))
            .collect();
        assert!(matches!(told[..], [row] if row.contains(ns)), "{told:?}");
    }
}
