//! A loop whose steps are told in each form.

use super::{Collector, Report, Source, html, json, markdown, text};
use crate::catalog::{Class, CopyKind};
use crate::record::{Kind, Record, Taker};
use serde_json::Value;

const MS: i64 = 1_000_000;
const US: i64 = 1_000;
const KERNELS: [&str; 6] = ["embedding", "gemm<float>", "softmax", "gemm<float>", "loss", "adam"];

/// 30 steps of 3 ms, of which two first ones, the 12th and the 20th take longer, and an evaluation behind the 25th.
fn rows() -> Vec<Record<'static>> {
    let (mut rows, mut at) = (Vec::new(), 400 * MS);
    let mut call = |at: i64, name: &'static str, class: Class, ns: i64| {
        rows.push(Record {
            ns: Some(ns as u64),
            tid: 4712,
            comm: "python",
            layer: "driver",
            name,
            class,
            ..Record::new(Kind::Call, at, 4711)
        });
        rows.len() - 1
    };
    let mut places = Vec::new();
    call(0, "cuInit", Class::Context, 100 * MS);
    for step in 1..=30 {
        let copy = call(at, "cuMemcpyHtoDAsync_v2", Class::Copy, 40 * US);
        places.push((copy, None));
        at += 100 * US;
        let evaluations = if step == 25 { 9 } else { 0 };
        for kernel in KERNELS.iter().cycle().take(6 + evaluations * 5) {
            places.push((call(at, "cuLaunchKernel", Class::Launch, 5 * US), Some(*kernel)));
            at += 50 * US + evaluations as i64 * 30 * US;
        }
        if step == 12 {
            call(at, "cuMemAlloc_v2", Class::Alloc, 6 * MS);
            at += 6 * MS;
        }
        let long = if step <= 2 { 80 * MS } else { 0 };
        call(at, "cuStreamSynchronize", Class::Sync, 2 * MS + long);
        at += 2 * MS + long + 600 * US + if step == 20 { 9 * MS } else { step as i64 * US };
    }
    for (row, kernel) in places {
        rows[row].kernel = kernel;
        rows[row].direction = kernel.is_none().then_some(CopyKind::HtoD);
    }
    rows.push(Record {
        ns: Some(9 * MS as u64),
        ..Record::new(Kind::Idle, 626 * MS, 4711)
    });
    rows
}

fn report(rows: &[Record<'_>]) -> Report {
    let mut collector = Collector::new();
    rows.iter().for_each(|row| collector.take(row));
    let source = Source {
        name: "loop.arrows".to_owned(),
        ..Source::default()
    };
    collector.report(source, None)
}

/// From its title to the next chapter's.
fn section<'a>(page: &'a str, from: &str, to: &str) -> &'a str {
    let begin = page.find(from).expect("the section");
    let end = page[begin..].find(to).expect("what follows");
    &page[begin..begin + end]
}

#[test]
fn steps_are_told_in_each_form() {
    let report = report(&rows());
    let text = text::page(&report, false, None);
    insta::assert_snapshot!("steps_as_text", section(&text, "Steps: ", "driver layer:"));
    let page = markdown::page(&report);
    insta::assert_snapshot!(
        "steps_as_markdown",
        section(&page, "<details><summary>Steps", "<details><summary>driver")
    );
    let page = html::page(&report);
    insta::assert_snapshot!(
        "steps_as_html",
        section(&page, "<section id=\"steps\">", "<section id=\"functions\">")
    );
    let json: Value = serde_json::from_str(&json::to_line(&report)).unwrap();
    insta::assert_snapshot!("steps_as_json", serde_json::to_string_pretty(&json["steps"]).unwrap());
    assert!(text.contains("  steps             "), "in short, too: {text}");
}

#[test]
fn it_is_said_why_there_are_none() {
    let rows: Vec<Record<'_>> = rows().into_iter().filter(|row| row.class == Class::Context).collect();
    let report = report(&rows);
    let text = text::page(&report, false, None);
    assert!(text.contains("Steps\n  no steps found: no launch was seen\n"), "{text}");
    let json: Value = serde_json::from_str(&json::to_line(&report)).unwrap();
    assert_eq!(
        (&json["steps"], &json["no_steps"]),
        (&Value::Null, &"no launch was seen".into())
    );
}

#[test]
fn steps_that_the_program_marks_are_told_as_its_own() {
    let waits = |row: &&Record<'_>| row.class == Class::Sync;
    let mut rows = rows();
    let ends: Vec<i64> = rows.iter().filter(waits).map(Record::end).collect();
    let ranges = ends.windows(2).map(|ends| Record {
        ns: Some(ends[0].abs_diff(ends[1])),
        name: "step 7",
        layer: "nvtx",
        ..Record::new(Kind::Range, ends[0], 4711)
    });
    rows.extend(ranges.collect::<Vec<_>>());
    let report = report(&rows);
    let text = text::page(&report, false, None);
    insta::assert_snapshot!("marked_steps_as_text", section(&text, "Steps: ", "driver layer:"));
    let json: Value = serde_json::from_str(&json::to_line(&report)).unwrap();
    let steps = &json["steps"][0];
    assert_eq!(
        (&steps["certainty"], &steps["anchor"]),
        (&"marked".into(), &serde_json::json!({"range": "step *"}))
    );
    assert_eq!((&steps["count"], &steps["of_launches"]), (&29.into(), &225.into()));
}
