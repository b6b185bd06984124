//! A report says what happened, to the last call, in every form; a damaged file says so; a page needs nobody.

pub mod fixture;
mod pages;
mod rendered;
mod same;
mod steps;
mod traced;

use crate::support;
use fixture::{BATCH, Loop};
use gpuscope::record::{Kind, Record};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

const STEPS: u64 = 40;
const LAUNCHES: u64 = 25;

/// A recording of a training loop in a folder of its own.
fn recorded(churn: bool, summary: Option<&Value>, extra: &[Record<'_>]) -> (TempDir, PathBuf) {
    recorded_with(true, churn, summary, extra)
}

/// The same; `stacks`: with call stacks.
fn recorded_with(stacks: bool, churn: bool, summary: Option<&Value>, extra: &[Record<'_>]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.arrows");
    let mut file = std::fs::File::create(&path).expect("a file");
    let mut bytes = Vec::new();
    let mut made = Loop::new(&mut bytes);
    made.stacks = stacks;
    (0..STEPS).for_each(|step| made.step(step, LAUNCHES, churn));
    extra.iter().for_each(|event| made.push(event));
    made.pour(&mut file).expect("room");
    let summary = summary.map(Value::to_string);
    made.end(summary.as_deref());
    std::io::Write::write_all(&mut file, &bytes).expect("room");
    (folder, path)
}

fn gpuscope(words: &[&str], files: &[&Path]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpuscope"));
    command.args(words).args(files).output().expect("gpuscope runs")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json_of(path: &Path) -> Value {
    let output = gpuscope(&["report", "--json"], &[path]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn function<'a>(report: &'a Value, layer: &str, name: &str) -> &'a Value {
    let layers = report["layers"].as_array().expect("layers");
    let layer = layers.iter().find(|one| one["layer"] == layer).expect("a layer");
    let functions = layer["functions"].as_array().expect("functions");
    functions.iter().find(|one| one["name"] == name).expect(name)
}

/// JSON lines are a recording as well: nothing of a report changes but where it comes from.
#[test]
fn a_report_of_json_lines_is_that_of_the_recording() {
    let summary = json!({"type": "summary", "seconds": 4.5, "functions": []});
    let (folder, path) = recorded(true, Some(&summary), &[]);
    let lines = folder.path().join("trace.jsonl");
    let exported = gpuscope(&["export", "-o", lines.to_str().expect("UTF-8")], &[&path]);
    assert_eq!(exported.status.code(), Some(0), "{}", said(&exported));
    let (mut of_lines, mut of_rows) = (json_of(&lines), json_of(&path));
    for report in [&mut of_lines, &mut of_rows] {
        assert!(!report["findings"].as_array().expect("findings").is_empty());
        report["file"] = json!("");
    }
    for (part, rows) in of_rows.as_object().expect("an object") {
        assert_eq!(of_lines[part], *rows, "{part}");
    }
    let unchanged = gpuscope(&["diff", "--fail-on", "regression>0.1%"], &[&path, &lines]);
    assert_eq!(unchanged.status.code(), Some(0), "{}", said(&unchanged));
    let pictures = [&path, &lines].map(|file| gpuscope(&["timeline"], &[file]).stdout);
    let without_name = |picture: &[u8]| String::from_utf8_lossy(picture).replace("trace.jsonl", "trace.arrows");
    assert_eq!(without_name(&pictures[0]), without_name(&pictures[1]));
}

#[test]
fn every_number_is_that_of_what_was_done() {
    let (_folder, path) = recorded(true, None, &[]);
    let report = json_of(&path);
    let launch = function(&report, "driver", "cuLaunchKernel");
    assert_eq!(launch["calls"], json!(STEPS * LAUNCHES));
    let kernels = report["kernels"].as_array().expect("kernels");
    let launches: u64 = kernels.iter().filter_map(|kernel| kernel["launches"].as_u64()).sum();
    assert_eq!((kernels.len(), launches), (8, STEPS * LAUNCHES));
    assert_eq!(report["copies"][0]["bytes"], json!(STEPS * (BATCH / 16)));
    assert_eq!(report["copies"][0]["host"], json!("pageable"));
    let memory = &report["memory"];
    assert_eq!(memory["allocations"], json!(STEPS));
    assert_eq!(memory["allocated_bytes"], json!(STEPS * BATCH));
    assert_eq!(memory["processes"][0]["peak_bytes"], json!(BATCH + (2 << 30)));
    assert_eq!(memory["processes"][0]["last_bytes"], json!(2u64 << 30));
    assert_eq!(memory["sites"][0]["site"], json!("train.py:23 make_batch"));
    assert_eq!(report["waits"][0]["name"], json!("cuStreamSynchronize"));
    assert_eq!(report["waits"][0]["sites"][0]["site"], json!("train.py:50 loss_item"));
    assert_eq!(report["idle"][0]["total_ns"], json!(STEPS * 1_200_000));
    assert_eq!(report["idle"][0]["longest"][0]["mostly_in"], json!("cudaFree"));
    let over_time = |of: &dyn Fn(&Value) -> u64| -> u64 {
        let steps = report["rates"]["steps"].as_array().expect("steps");
        steps.iter().map(of).sum()
    };
    assert_eq!(
        over_time(&|step| step["launches"].as_u64().unwrap_or(0)),
        STEPS * LAUNCHES
    );
    let copied = over_time(&|step| step["copied_bytes"][0].as_u64().unwrap_or(0));
    assert_eq!(copied, STEPS * (BATCH / 16));
    let times = launch["histogram"].as_array().expect("a histogram");
    let counted: u64 = times.iter().filter_map(|bucket| bucket["count"].as_u64()).sum();
    assert_eq!(counted, STEPS * LAUNCHES);
}

/// What a summary would say of it, but for one function, whose rows were lost in part.
fn summary() -> Value {
    json!({
        "type": "summary", "seconds": 1.0, "unseen": ["/opt/libx.so: not usable: 32-bit"],
        "functions": [{"layer": "driver", "name": "cuLaunchKernel", "category": "launch", "calls": 5000, "errors": 2,
            "bytes": 0, "total_us": 9000.5, "max_us": 70.25, "p50_us": 2.56, "p99_us": 4.096}],
        "failures": [{"name": "cuLaunchKernel", "error": "CUDA_ERROR_INVALID_VALUE", "code": 1, "count": 2}],
        "kernels": [], "work": [], "memory": [],
        "cost": {"program_seconds": 0.25, "tracer_cpu_seconds": 0.5, "tracer_rss_bytes": 1048576},
    })
}

#[test]
fn exact_totals_take_the_place_of_those_of_rows() {
    let lost = Record {
        name: "cuLaunchKernel",
        count: 4000,
        ns: Some(1_000_000),
        ..Record::new(Kind::Lost, 1_000, 0)
    };
    let (_folder, path) = recorded(true, Some(&summary()), &[lost]);
    let report = json_of(&path);
    let launch = function(&report, "driver", "cuLaunchKernel");
    assert_eq!(
        (
            &launch["calls"],
            &launch["errors"],
            &launch["total_ns"],
            &launch["rows"]
        ),
        (&json!(5000), &json!(2), &json!(9_000_500), &json!(STEPS * LAUNCHES))
    );
    assert_eq!(report["failures"][0]["count"], json!(2));
    assert_eq!((&report["exact"], &report["cut"]), (&json!(true), &Value::Null));
    assert_eq!(report["lost"]["calls"], json!(4000));
    let notes = report["notes"].to_string();
    assert!(
        notes.contains("4,000 calls without rows (lost): totals by function are exact all the same"),
        "{notes}"
    );
    assert_eq!(report["unseen"][0], json!("/opt/libx.so: not usable: 32-bit"));
    assert_eq!(report["cost"]["tracer_rss_bytes"], json!(1_048_576));
}

#[test]
fn the_totals_are_a_row_of_the_recording() {
    let (_folder, cut) = recorded(true, None, &[]);
    let (_other, whole) = recorded(true, Some(&summary()), &[]);
    let rows = |path: &Path| json_of(path)["rows"].as_u64();
    assert_eq!(rows(&whole), rows(&cut).map(|rows| rows + 1));
}

#[test]
fn a_recording_that_was_cut_off_is_reported_as_far_as_it_goes() {
    let (_folder, path) = recorded(true, None, &[]);
    let bytes = std::fs::read(&path).expect("bytes");
    let whole = json_of(&path)["rows"].as_u64();
    std::fs::write(&path, &bytes[..bytes.len() - 100]).expect("a file");
    let output = gpuscope(&["report"], &[&path]);
    assert!(
        output.status.code() == Some(1) || said(&output).contains("was cut off"),
        "{output:?}"
    );
    std::fs::write(&path, &bytes).expect("a file");
    let output = gpuscope(&["report"], &[&path]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!((output.status.code(), whole.is_some()), (Some(0), true));
    assert!(
        text.lines()
            .nth(2)
            .is_some_and(|line| line.starts_with("! the recording was cut off")),
        "{text}"
    );
    assert!(said(&output).contains("was cut off"), "{}", said(&output));
}

#[test]
fn what_is_no_recording_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.arrows");
    for (bytes, words) in [
        (&b""[..], "is empty"),
        (b"{}\n", "it is no recording"),
        (b"PAR1 and so on, longer than a head", "it is no recording"),
    ] {
        std::fs::write(&path, bytes).expect("a file");
        for words_of in [&["report"][..], &["report", "--json"], &["report", "--md"]] {
            let output = gpuscope(words_of, &[&path]);
            assert_eq!(output.status.code(), Some(1), "{}", said(&output));
            assert!(
                output.stdout.is_empty() && said(&output).contains(words),
                "{}",
                said(&output)
            );
        }
        let output = gpuscope(&["diff"], &[&path, &path]);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    }
    let output = gpuscope(&["report", "/nonexistent/x.arrows"], &[]);
    assert!(output.status.code() == Some(1) && said(&output).contains("/nonexistent/x.arrows"));
}

#[test]
fn text_fits_a_terminal() {
    let (_folder, path) = recorded(true, Some(&summary()), &[]);
    let output = gpuscope(&["report"], &[&path]);
    let text = String::from_utf8_lossy(&output.stdout);
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    assert!(!text.contains('\u{1b}'), "no colours but on a terminal");
}

#[test]
fn what_changed_is_said_and_judged() {
    let (_one, churning) = recorded(true, None, &[]);
    let (_other, kept) = recorded(false, None, &[]);
    let output = gpuscope(&["diff", "--json"], &[&kept, &churning]);
    let diff: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let measure = |name: &str| {
        let all = diff["measures"].as_array().expect("measures");
        all.iter().find(|one| one["name"] == name).expect("a measure").clone()
    };
    assert_eq!(measure("allocations")["after"], json!(STEPS));
    assert_eq!(measure("launches")["change"], json!(0.0));
    assert!(
        measure("wall time")["change"]
            .as_f64()
            .is_some_and(|change| change > 0.1)
    );
    assert_eq!(diff["functions"][0]["name"], json!("cudaFree"));

    let status = |rule: &str, before: &Path, after: &Path| {
        let output = gpuscope(&["diff", "--fail-on", rule], &[before, after]);
        (output.status.code(), said(&output))
    };
    let (code, words) = status("regression>10%", &kept, &churning);
    assert!(
        code == Some(3) && words.contains("wall time grew by"),
        "{code:?} {words}"
    );
    assert_eq!(status("regression>10%", &churning, &kept).0, Some(0));
    assert_eq!(status("regression>10%", &churning, &churning).0, Some(0));
    assert_eq!(status("regression>500%", &kept, &churning).0, Some(0));
    assert_eq!(status("launches>999", &kept, &churning).0, Some(3));
    assert_eq!(status("launches>1000", &kept, &churning).0, Some(0));
    for form in ["--md", "--json"] {
        let output = gpuscope(&["diff", form], &[&kept, &churning]);
        assert!(output.status.success() && !output.stdout.is_empty());
    }
}

#[test]
fn demands_end_with_3_and_say_why() {
    let failed = Record {
        failed: true,
        error: Some("CUDA_ERROR_OUT_OF_MEMORY"),
        result: Some(2),
        layer: "driver",
        name: "cuMemAlloc_v2",
        ns: Some(10),
        ..Record::new(Kind::Call, 5_000, 4711)
    };
    let (_bad, bad) = recorded(true, None, &[failed]);
    let (_good, good) = recorded(true, None, &[]);
    let status = |rule: &str, path: &Path| {
        let output = gpuscope(&["report", "--fail-on", rule], &[path]);
        (output.status.code(), said(&output))
    };
    let (code, words) = status("error", &bad);
    assert!(
        code == Some(3)
            && words.contains("--fail-on error: 1 call of cuMemAlloc_v2 failed (CUDA_ERROR_OUT_OF_MEMORY ×1)"),
        "{words}"
    );
    assert_eq!(status("error", &good).0, Some(0));
    let (code, words) = status("leak", &good);
    assert!(code == Some(3) && words.contains("held 2.0 GiB at its end"), "{words}");
    assert_eq!(status("leak=2GiB", &good).0, Some(0));
    let (code, words) = status("regression>10%", &good);
    assert!(code == Some(2) && words.contains("hint: gpuscope diff"), "{words}");
    assert_eq!(status("nonsense", &good).0, Some(2));
}

#[test]
fn what_cannot_be_asked_for_together_is_refused() {
    for words in [
        &["report"][..],
        &["report", "x.arrows", "--live"],
        &["report", "x.arrows", "-p", "1"],
        &["report", "x.arrows", "--json", "--md"],
        &["report", "--live"],
        &["diff", "x.arrows"],
    ] {
        let output = gpuscope(words, &[]);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", said(&output));
    }
}
