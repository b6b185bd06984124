//! One report with something in every section, in each form that people read.

use super::diff::diff;
use super::{Collector, Report, Source, diff as pages, html, markdown, short, text};
use crate::catalog::{Class, CopyKind, HostMemory};
use crate::record::{Kind, Record, Taker};
use serde_json::{Value, json};

const MS: i64 = 1_000_000;
const LOSS: &str = r#"[{"function":"loss_item","file":"/home/me/train.py","line":50,"language":"python"}]"#;
const BATCH: &str = r#"[{"function":"make_batch","file":"/home/me/train.py","line":23,"language":"python"},
    {"function":"main","file":"/home/me/train.py","line":80,"language":"python"}]"#;

fn call(name: &'static str, class: Class, at_ms: i64, ns: u64) -> Record<'static> {
    Record {
        ns: Some(ns),
        tid: 4712,
        comm: "python",
        layer: "driver",
        name,
        class,
        result: Some(0),
        error: Some("CUDA_SUCCESS"),
        args: Some(r#"{"stream":"0x10"}"#),
        ..Record::new(Kind::Call, at_ms * MS, 4711)
    }
}

fn steps(factor: u64) -> Vec<Record<'static>> {
    let mut rows = Vec::new();
    for step in 0..6 {
        let at = step * 40;
        rows.push(Record {
            bytes: Some(256 << 20),
            address: Some(0x7f00_0000_0000),
            held: Some((256 << 20) + (2 << 30)),
            stack: Some(BATCH),
            ..call("cuMemAlloc_v2", Class::Alloc, at, 900_000 * factor)
        });
        rows.push(Record {
            bytes: Some(16 << 20),
            direction: Some(CopyKind::HtoD),
            host: Some(HostMemory::Pageable),
            stream: Some(0x10),
            ..call("cuMemcpyHtoDAsync_v2", Class::Copy, at + 2, 400_000)
        });
        rows.push(Record {
            kernel: Some("gemm<float,128>"),
            stream: Some(0x10),
            ..call("cuLaunchKernel", Class::Launch, at + 4, 5_000)
        });
        rows.push(Record {
            stream: Some(0x10),
            blocking: true,
            stack: Some(LOSS),
            ..call("cuStreamSynchronize", Class::Sync, at + 5, 3_000_000 * factor)
        });
        rows.push(Record {
            ns: Some(20_000_000),
            ..Record::new(Kind::Idle, (at + 10) * MS, 4711)
        });
        rows.push(Record {
            address: Some(0x7f00_0000_0000),
            held: Some(2 << 30),
            ..call("cuMemFree_v2", Class::Free, at + 12, 1_100_000)
        });
    }
    rows
}

fn odd() -> Vec<Record<'static>> {
    let xid = r#"{"name":"Xid 79","pci":"0000:17:00","comm":"python","meaning":"GPU has fallen off the bus","action_words":"restart the machine"}"#;
    vec![
        Record {
            failed: true,
            result: Some(2),
            error: Some("CUDA_ERROR_OUT_OF_MEMORY"),
            stack: Some(BATCH),
            ..call("cuMemAlloc_v2", Class::Alloc, 250, 70_000)
        },
        Record {
            name: "cuLaunchKernel",
            count: 3,
            ns: Some(1),
            ..Record::new(Kind::Lost, 251 * MS, 0)
        },
        Record {
            ns: Some(3_000_000),
            name: "host.outside",
            stack: Some(BATCH),
            ..Record::new(Kind::Sample, 251 * MS, 4711)
        },
        Record {
            args: Some(xid),
            ..Record::new(Kind::Xid, 252 * MS, 0)
        },
    ]
}

fn summary() -> Value {
    let function = |name: &str, category: &str, calls: u64| {
        json!({"layer": "driver", "name": name, "category": category,
        "calls": calls, "errors": 0, "bytes": 0, "total_us": 9.5, "max_us": 7.25, "p50_us": 2.56, "p99_us": 4.096})
    };
    let mut functions = vec![
        function("cuGraphLaunch", "launch", 100),
        function("cuLaunchKernel", "launch", 12),
        function("a|b`<i>\u{1b}", "other", 1),
    ];
    functions.extend((0..14).map(|number| function(&format!("cuGet{number}"), "other", 2)));
    functions.push(json!({"layer": "runtime", "name": "cudaGetDevice", "category": "other", "calls": 7, "bytes": 0}));
    let frame = |name: &str, line: u32| json!({"function": name, "file": "/home/me/train.py", "line": line, "language": "python"});
    json!({
        "type": "summary", "seconds": 1.0, "unseen": ["/opt/libx.so: not usable: 32-bit"], "functions": functions,
        "failures": [{"name": "cuMemAlloc_v2", "error": "CUDA_ERROR_OUT_OF_MEMORY", "code": 2, "count": 2}],
        "kernels": [
            {"kernel": "gemm", "launches": 10, "failed": 1, "captured": 0, "in_graphs": 100, "p50_us": 3.0, "p99_us": 4.0, "max_us": 9.0, "shapes": []},
            {"kernel": null, "reason": "the handle could not be read", "launches": 2, "failed": 0, "captured": 2, "in_graphs": 200,
             "shapes": [{"grid": [128, 2, 1], "block": [256, 1, 1], "shared_bytes": 49152, "launches": 2}]},
        ],
        "work": [{
            "pid": 4711, "comm": "python", "watched": "start",
            "copies": [{"direction": "HtoD", "host": "pinned", "blocking": false, "count": 6, "bytes": 100_663_296, "call_us": 2400.0,
                "bytes_per_second": 12.3e9, "bound": "at_least"}],
            "waits": [
                {"function": "cuStreamSynchronize", "stream": "0x10", "count": 3, "total_us": 988.0, "max_us": 400.0, "stack": [frame("loss_item", 50)]},
                {"function": "cuStreamSynchronize", "stream": "0x10", "count": 2, "total_us": 12.0, "max_us": 7.0},
            ],
            "hidden": [{"kind": "free", "count": 100, "total_us": 937_000.0, "certainty": "inferred", "stack": [frame("drop_batch", 31)]}],
            "gpu": {"window_us": 500_000.0, "busy_at_most_us": 320_000.0, "idle_at_least_us": 180_000.0, "idle_likely_us": 250_000.0,
                "certainty": "bound", "idle_gaps": 7, "longest_idle_us": 90_000.0, "notes": []},
            "graphs": {"launches": 100, "known_launches": 100, "kernels": 300, "copies": 0, "memsets": 0, "captured": 3},
        }],
        "memory": [],
        "cost": {"program_seconds": 0.25, "tracer_cpu_seconds": 0.5, "tracer_rss_bytes": 1_048_576},
    })
}

fn report(rows: Vec<Record<'static>>, summary: Option<Value>, name: &str) -> Report {
    let mut collector = Collector::new();
    rows.iter().for_each(|row| collector.take(row));
    let source = Source {
        name: name.to_owned(),
        rows: rows.len() as u64,
        ..Source::default()
    };
    let summary = summary.map(|summary| summary.to_string());
    collector.report(source, summary.as_deref())
}

fn whole() -> Report {
    report(steps(1).into_iter().chain(odd()).collect(), Some(summary()), "b.arrows")
}

fn of_rows() -> Report {
    report(steps(2), None, "a.arrows")
}

/// What is below the plots, without style and script.
fn tables(page: &str) -> &str {
    let from = page.find("<section id=\"functions\">").expect("functions");
    &page[from..page.find("</main>").expect("an end")]
}

#[test]
fn a_report_reads_well_in_a_terminal() {
    insta::assert_snapshot!("report_as_text", text::page(&whole(), false, None));
    insta::assert_snapshot!("report_in_60_columns_and_colours", text::page(&whole(), true, Some(60)));
    insta::assert_snapshot!("report_of_rows_alone_as_text", text::page(&of_rows(), false, None));
}

/// What calls prove of process 4711, and what CUPTI has measured.
fn idle_said(certainty: &str) -> Vec<String> {
    let mut known = summary();
    known["gpu"] = json!({"devices": [{"pid": 4711, "device": 1, "busy_us": 100_000.0, "idle_us": 300_000.0, "certainty": certainty}]});
    let report = report(steps(1), Some(known), "b.arrows");
    let facts = short::facts(&report).into_iter();
    facts
        .filter(|(name, _)| *name == "GPU idle")
        .map(|(_, said)| said)
        .collect()
}

#[test]
fn idle_time_is_said_as_measured_where_it_was() {
    assert_eq!(
        idle_said("measured"),
        ["300.0 ms of 400.0 ms (75.0 %) of process 4711, device 1 (measured)"]
    );
    assert_eq!(
        idle_said("bound"),
        ["at least 180.0 ms of 500.0 ms (36.0 %) of process 4711"]
    );
}

/// A device that CUPTI has told of, and a gap of it.
fn measured() -> Report {
    measured_with(&Value::Null)
}

/// The same; `steady`: what is known of it between start-up and end.
fn measured_with(steady: &Value) -> Report {
    let mut known = summary();
    let cause = |cause: &str, idle_us: f64, place: Option<&str>| json!({"cause": cause, "idle_us": idle_us, "gaps": 3, "longest_us": idle_us / 2.0, "where": place});
    known["gpu"] = json!({"devices": [{
        "pid": 4711, "device": 0, "busy_us": 100_000.0, "idle_us": 300_000.0, "idle_gaps": 5, "longest_idle_us": 200_000.0, "certainty": "measured", "steady": steady,
        "idle_causes": [cause("blocked", 200_000.0, Some("train.py:10 load|<b>")), cause("sync-return", 97_000.0, None), cause("other", 3_000.0, None)],
    }]});
    let gap = Record {
        ns: Some(25_000_000),
        name: "blocked",
        ..Record::new(Kind::Idle, 210 * MS, 4711)
    };
    report(steps(1).into_iter().chain([gap]).collect(), Some(known), "b.arrows")
}

#[test]
fn why_a_device_waited_is_said_with_its_places_and_how_much_is_known() {
    let page = text::page(&measured(), false, None);
    let chapter = |title: &str| {
        let from = page.find(title).expect("a chapter");
        let rest = &page[from..];
        rest.split("\n\n").next().unwrap_or_default().to_owned()
    };
    insta::assert_snapshot!([chapter("Why the GPU waited"), chapter("GPU idle, process")].join("\n\n"));
    let json: Value = serde_json::from_str(&super::json::to_line(&measured())).expect("JSON");
    assert_eq!(json["executed"]["devices"][0]["idle_causes"][0]["cause"], "blocked");
    assert_eq!(
        (&json["idle"][0]["measured"], &json["idle"][0]["total_ns"]),
        (&json!(true), &json!(300_000_000))
    );
}

/// What is said first of why a device waited.
fn because(report: &Report) -> Option<String> {
    short::idle(report).into_iter().next()?.because
}

#[test]
fn why_for_most_of_it_is_said_first() {
    let said = because(&measured());
    let place =
        "66.7 % of its idle time because the host slept or waited outside CUDA (blocked) at train.py:10 load|<b>";
    assert_eq!(said.as_deref(), Some(place));
    let cause = |cause: &str, idle_us: f64| json!({"cause": cause, "idle_us": idle_us, "gaps": 2, "longest_us": 50.0, "where": "a.py:1 f", "where_percent": 53});
    let part =
        |causes: Value| json!({"from_ns": 7, "until_ns": 150_000_007, "idle_us": 100_000.0, "idle_causes": causes});
    let steady = part(json!([cause("other", 60_000.0), cause("launch", 40_000.0)]));
    let said = because(&measured_with(&steady)).expect("a cause that is known");
    assert!(
        said.starts_with("40.0 % of its idle time between start-up and end because ")
            && said.ends_with(" at a.py:1 f (≥ 53 %)"),
        "{said}"
    );
    for causes in [json!([cause("other", 60_000.0)]), json!([cause("launch", 19_000.0)])] {
        assert_eq!(because(&measured_with(&part(causes))), None);
    }
}

#[test]
fn where_start_up_is_told_apart_what_follows_it_comes_first() {
    let cause = json!({"cause": "sync-return", "idle_us": 90_000.0, "gaps": 2, "longest_us": 50_000.0, "where": null});
    let steady = json!({"from_ns": 7, "until_ns": 150_000_007, "idle_us": 90_000.0, "idle_causes": [cause]});
    let report = measured_with(&steady);
    let page = text::page(&report, false, None);
    let from = page.find("Why the GPU waited").expect("a chapter");
    let sections: Vec<&str> = page[from..].split("\n\n").take(2).collect();
    insta::assert_snapshot!(sections.join("\n\n"));
    let said = short::facts(&report).into_iter().find(|(name, _)| *name == "GPU idle");
    assert_eq!(
        said.expect("idle time").1,
        "90.0 ms of 150.0 ms (60.0 %) between start-up and end, 300.0 ms of 400.0 ms (75.0 %) in all, of process 4711, device 0 (measured)"
    );
    let json: Value = serde_json::from_str(&super::json::to_line(&report)).expect("JSON");
    assert_eq!(json["executed"]["devices"][0]["steady"]["idle_ns"], 90_000_000);
}

#[test]
fn a_report_reads_well_as_markdown() {
    insta::assert_snapshot!("report_as_markdown", markdown::page(&whole()));
}

#[test]
fn a_report_has_tables_on_its_page() {
    insta::assert_snapshot!("report_as_html", tables(&html::page(&whole())));
}

#[test]
fn what_changed_reads_well() {
    let (before, after) = (of_rows(), whole());
    let diff = diff(&before, &after);
    insta::assert_snapshot!("diff_as_text", pages::page(&diff, false, None));
    insta::assert_snapshot!("diff_as_markdown", pages::markdown(&diff));
}

#[test]
fn recordings_of_different_engines_are_not_compared_in_silence() {
    let of = |engine: &str, function: &str| {
        let asked = json!({"layer": "driver", "name": function, "category": "query", "calls": 700});
        report(
            steps(1),
            Some(json!({"engine": {"name": engine}, "functions": [asked]})),
            engine,
        )
    };
    let (inside, kernel) = (of("inside", "cuCtxGetCurrent"), of("kernel", "cuDeviceGet"));
    assert!(diff(&inside, &inside).notes.is_empty());
    let diff = diff(&inside, &kernel);
    assert_eq!(
        diff.notes,
        [
            "recorded by different engines (inside, then kernel), whose calls cost differently; 1,400 calls of 2 functions \
          that only ask are counted in one of them alone (the kernel's engine takes these with --getters)"
        ]
    );
    for page in [
        pages::page(&diff, false, None),
        pages::markdown(&diff),
        pages::to_line(&diff),
    ] {
        let flat = page.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains("recorded by different engines"), "{page}");
    }
}
