//! One made-up trace in each format of profilers.

use super::ByPath;
use super::collapsed::Collapsed;
use super::pprof::Pprof;
use super::speedscope::Speedscope;
use crate::catalog::Class;
use crate::export::sample;
use crate::model::outside::SAMPLE;
use crate::paths::Weight;
use crate::record::{Encoder, Ending, Kind, Record};
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::Read;

const FORWARD: &str = r#"[{"function":"cuLaunchKernel","module":"libcuda.so.1","language":"native"},
    {"function":"0x77","module":"libcublas.so.13","offset":119,"language":"native"},
    {"function":"0x55","module":"libcublas.so.13","offset":85,"language":"native"},
    {"function":"forward;step","file":"/home/me/train.py","line":42,"language":"python"},
    {"function":"<module>","file":"/home/me/train.py","line":99,"language":"python"}]"#;
const LOSS: &str = r#"[{"function":"loss\u001b[2J\n","file":"/home/me/train.py","line":50,"language":"python"}]"#;

fn call(at: i64, class: Class, name: &'static str, stack: &'static str) -> Record<'static> {
    Record {
        ns: Some(250_000),
        tid: 8,
        comm: "python",
        layer: "driver",
        name,
        class,
        stack: Some(stack),
        ..Record::new(Kind::Call, at, 7)
    }
}

fn ran(pid: u32, name: &'static str, ns: u64, args: &'static str) -> Record<'static> {
    Record {
        ns: Some(ns),
        tid: 0,
        comm: "python",
        layer: "gpu",
        name,
        args: Some(args),
        ..Record::new(Kind::Gpu, 1_000, pid)
    }
}

fn rows() -> Vec<Record<'static>> {
    vec![
        call(100, Class::Launch, "cuLaunchKernel", FORWARD),
        ran(
            7,
            "gemm<float,128>",
            30_000,
            r#"{"device":1,"call_tid":8,"call_ts_ns":100}"#,
        ),
        ran(
            7,
            "gemm<float,128>",
            20_000,
            r#"{"device":1,"call_tid":8,"call_ts_ns":100}"#,
        ),
        ran(7, "memset", 7_000, r#"{"device":1,"call_tid":8,"call_ts_ns":100}"#),
        ran(9, "HtoD", 500, r#"{"device":0,"match":"none"}"#),
        call(5_000, Class::Sync, "cuStreamSynchronize", LOSS),
        Record {
            ns: Some(2_000_000),
            tid: 8,
            name: SAMPLE,
            stack: Some(LOSS),
            ..Record::new(Kind::Sample, 6_000, 7)
        },
    ]
}

fn encoder(name: &str, weight: Weight) -> Box<dyn Encoder> {
    match name {
        "collapsed" => Box::new(ByPath::new(Collapsed, weight)),
        "pprof" => Box::new(ByPath::new(Pprof, weight)),
        _ => Box::new(ByPath::new(Speedscope, weight)),
    }
}

/// The bytes, and what is said of them.
fn written(rows: &[Record<'_>], mut encoder: Box<dyn Encoder>) -> (Vec<u8>, Box<dyn Encoder>) {
    let mut out = Vec::new();
    encoder.start(&sample::meta(), &mut out);
    rows.iter().for_each(|row| encoder.take(row, &mut out));
    encoder.finish(&Ending::default(), &mut out);
    (out, encoder)
}

fn text(name: &str, weight: Weight) -> String {
    String::from_utf8(written(&rows(), encoder(name, weight)).0).expect("UTF-8")
}

#[test]
fn collapsed_stacks() {
    let all = Weight::ALL.map(|weight| text("collapsed", weight));
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn a_file_for_speedscope() {
    let file: Value = serde_json::from_str(&text("speedscope", Weight::Gpu)).expect("JSON");
    insta::assert_snapshot!(serde_json::to_string_pretty(&file).expect("JSON"));
}

/// As <https://www.speedscope.app/file-format-schema.json> has a file of sampled profiles.
#[test]
fn a_file_for_speedscope_is_what_its_schema_demands() {
    for weight in Weight::ALL {
        let file: Value = serde_json::from_str(&text("speedscope", weight)).expect("JSON");
        assert_eq!(file["$schema"], "https://www.speedscope.app/file-format-schema.json");
        let frames = file["shared"]["frames"].as_array().expect("frames");
        for frame in frames {
            let kinds = ["name", "file", "line"].map(|key| frame.get(key).map(Value::is_string));
            assert!(
                matches!(kinds, [Some(true), None | Some(true), None | Some(false)]),
                "{frame}"
            );
        }
        for profile in file["profiles"].as_array().expect("profiles") {
            assert_eq!(
                (&profile["type"], &profile["unit"]),
                (&json!("sampled"), &json!("nanoseconds"))
            );
            assert!(profile["name"].is_string() && profile["startValue"] == 0, "{profile}");
            let (samples, weights) = (profile["samples"].as_array(), profile["weights"].as_array());
            let (samples, weights) = (samples.expect("samples"), weights.expect("weights"));
            assert_eq!(samples.len(), weights.len());
            let sum: u64 = weights.iter().map(|weight| weight.as_u64().expect("ns")).sum();
            assert_eq!(profile["endValue"], sum);
            let numbers = samples.iter().flat_map(|stack| stack.as_array().expect("a stack"));
            assert!(numbers.clone().count() > 0);
            assert!(
                numbers
                    .map(|number| number.as_u64().expect("a frame"))
                    .all(|number| (number as usize) < frames.len())
            );
        }
    }
}

/// A field of a protobuf message, read by nothing that has written it.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    for place in 0.. {
        let (first, rest) = bytes.split_first().expect("a whole number");
        *bytes = rest;
        number |= u64::from(first & 0x7f) << (7 * place);
        if first & 0x80 == 0 {
            break;
        }
    }
    number
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let field = match key & 7 {
            0 => Field::Number(varint(&mut bytes)),
            2 => {
                let length = varint(&mut bytes) as usize;
                let (field, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(field)
            }
            other => panic!("wire type {other}"),
        };
        fields.push((key >> 3, field));
    }
    fields
}

fn numbers(message: &[u8], tag: u64) -> Vec<u64> {
    let mut all = Vec::new();
    for (known, field) in fields(message) {
        match field {
            Field::Number(number) if known == tag => all.push(number),
            Field::Bytes(mut packed) if known == tag => {
                while !packed.is_empty() {
                    all.push(varint(&mut packed));
                }
            }
            _ => {}
        }
    }
    all
}

fn messages(message: &[u8], tag: u64) -> Vec<&[u8]> {
    let all = fields(message).into_iter().filter(|(known, _)| *known == tag);
    let bytes = |(_, field)| match field {
        Field::Bytes(bytes) => bytes,
        Field::Number(_) => panic!("field {tag} is no message"),
    };
    all.map(bytes).collect()
}

/// A profile as a person would write it down, by the field numbers of pprof's profile.proto.
fn decoded(packed: &[u8]) -> String {
    let mut bytes = Vec::new();
    GzDecoder::new(packed).read_to_end(&mut bytes).expect("gzip");
    let texts: Vec<&str> = messages(&bytes, 6)
        .into_iter()
        .map(|text| std::str::from_utf8(text).expect("UTF-8"))
        .collect();
    assert_eq!(texts[0], "");
    let text = |message: &[u8], tag| texts[numbers(message, tag).first().map_or(0, |at| *at as usize)];
    let by_id = |tag: u64, id: u64| {
        let all = messages(&bytes, tag).into_iter();
        all.into_iter()
            .find(|one| numbers(one, 1) == [id])
            .unwrap_or_else(|| panic!("{tag}: {id} is missing"))
    };
    let mut out = String::new();
    for kind in messages(&bytes, 1) {
        let _ = writeln!(out, "type {} in {}", text(kind, 1), text(kind, 2));
    }
    let _ = writeln!(
        out,
        "default {}, time {:?}, duration {:?}",
        text(&bytes, 14),
        numbers(&bytes, 9),
        numbers(&bytes, 10)
    );
    for comment in numbers(&bytes, 13) {
        let _ = writeln!(out, "comment {}", texts[comment as usize]);
    }
    for sample in messages(&bytes, 2) {
        let labels = messages(sample, 3).into_iter();
        let labels: Vec<String> = labels
            .map(|label| format!("{}={}", text(label, 1), text(label, 2)))
            .collect();
        let _ = writeln!(out, "sample {:?} {}", numbers(sample, 2), labels.join(" "));
        for id in numbers(sample, 1) {
            let location = by_id(4, id);
            assert_eq!(text(by_id(3, numbers(location, 2)[0]), 5), "python");
            let line = messages(location, 4)[0];
            let function = by_id(5, numbers(line, 1)[0]);
            let number = numbers(line, 2).first().copied().unwrap_or(0);
            let _ = writeln!(out, "  {} at {}:{number}", text(function, 2), text(function, 4));
        }
    }
    out
}

#[test]
fn a_profile_for_pprof() {
    let both = [Weight::Gpu, Weight::Wait].map(|weight| decoded(&written(&rows(), encoder("pprof", weight)).0));
    insta::assert_snapshot!(both.join("\n"));
}

#[test]
fn a_trace_without_any_such_time_is_refused_with_the_cure() {
    let (waits, activities) = (&rows()[5..], &rows()[1..2]);
    for name in ["collapsed", "pprof", "speedscope"] {
        for (rows, weight, words) in [
            (waits, Weight::Gpu, "--weight wait"),
            (activities, Weight::Host, "--stacks none"),
            (activities, Weight::Wait, "--weight gpu"),
        ] {
            let (out, encoder) = written(rows, encoder(name, weight));
            let why = encoder.failure().expect("a refusal");
            assert!(out.is_empty() && why.contains(words), "{name}: {why}");
        }
    }
}

#[test]
fn what_has_no_call_path_is_worth_a_word() {
    let of = |rows: &[Record<'_>]| written(rows, encoder("collapsed", Weight::Gpu)).1.note();
    assert_eq!(
        of(&rows()).as_deref(),
        Some("500 ns of 57.5 µs of GPU time has no call path, or one beyond what is kept apart")
    );
    assert_eq!(of(&rows()[..4]), None);
    let few: Vec<Record<'_>> = rows()[..2]
        .iter()
        .cloned()
        .chain(vec![ran(9, "HtoD", 500_000, r#"{"device":0,"match":"none"}"#)])
        .collect();
    let said = of(&few).expect("a word");
    assert!(
        said.contains("has no call path, or") && said.contains("hint: record with --stacks all"),
        "{said}"
    );
    let none = of(&rows()[1..5]).expect("a word");
    assert!(none.contains("hint: record with --stacks all"), "{none}");
}

#[test]
fn totals_of_a_recording_that_was_cut_off_count() {
    let totals =
        json!({"gpu": {"devices": [{"pid": 9, "device": 0, "copies": [{"count": 2, "total_us": 1.5}]}]}}).to_string();
    let snapshot = Record {
        args: Some(&totals),
        ..Record::new(Kind::Snapshot, 9_000, 0)
    };
    let rows: Vec<Record<'_>> = rows().into_iter().chain([snapshot]).collect();
    let (out, _) = written(&rows, encoder("collapsed", Weight::Gpu));
    let lines = String::from_utf8(out).expect("UTF-8");
    assert!(
        lines.contains("python 9, device 0;(no call path);(without rows) 1000\n"),
        "{lines}"
    );
}
