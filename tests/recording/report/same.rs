//! What a report says is what the summary of the run said: one model, one gate.

use super::{gpuscope, json_of, recorded, recorded_with, said};
use gpuscope::record::{Kind, Record};
use serde_json::{Value, json};
use std::path::Path;

fn function(layer: &str, name: &str, category: &str, calls: u64, errors: u64) -> Value {
    json!({"layer": layer, "name": name, "category": category, "calls": calls, "errors": errors, "bytes": 0,
        "total_us": 90.5, "max_us": 70.25, "p50_us": 2.56, "p99_us": 4.096})
}

/// A summary with `functions`, and with `more` in the place of what it would have beside them.
fn summary(functions: &[Value], more: Value) -> Value {
    let mut summary = json!({"type": "summary", "seconds": 1.0, "unseen": [], "functions": functions,
        "failures": [], "kernels": [], "work": [], "memory": [], "findings": [], "no_findings": null, "xids": []});
    let Value::Object(more) = more else { panic!("an object") };
    for (key, value) in more {
        summary[key] = value;
    }
    summary
}

fn text_of(path: &Path) -> String {
    let output = gpuscope(&["report"], &[path]);
    assert!(output.status.success(), "{}", said(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn status(rule: &str, path: &Path) -> (Option<i32>, String) {
    let output = gpuscope(&["report", "--fail-on", rule], &[path]);
    (output.status.code(), said(&output))
}

#[test]
fn a_failure_that_only_the_runtime_saw_is_a_failure() {
    let functions = [
        function("runtime", "cudaMalloc", "memory", 9, 5),
        function("driver", "cuMemAlloc_v2", "memory", 4, 0),
        function("driver", "cuLaunchKernel", "launch", 7, 0),
    ];
    let failures = json!([{"name": "cudaMalloc", "error": "cudaErrorMemoryAllocation", "code": 2, "count": 5}]);
    let (_folder, path) = recorded(true, Some(&summary(&functions, json!({"failures": failures}))), &[]);
    let (code, words) = status("error", &path);
    let expected = "--fail-on error: 5 calls of cudaMalloc failed (cudaErrorMemoryAllocation ×5)";
    assert!(code == Some(3) && words.contains(expected), "{code:?} {words}");
    let text = text_of(&path);
    assert!(
        text.contains("failed            5 (runtime layer; none in the driver's)"),
        "{text}"
    );
    assert_eq!(json_of(&path)["failed"], json!({"count": 5, "layer": "runtime"}));
    let md = gpuscope(&["report", "--md"], &[&path]).stdout;
    let md = String::from_utf8_lossy(&md);
    assert!(
        md.contains("| failed | 5 (runtime layer; none in the driver's) |"),
        "{md}"
    );
}

#[test]
fn launches_without_a_driver_are_those_of_the_runtime() {
    let launches = [function("runtime", "cudaLaunchKernel", "launch", 6, 0)];
    let alone = summary(&launches, json!({}));
    let (_folder, path) = recorded(true, Some(&alone), &[]);
    // rows of the loop have a driver; the summary, which has none, goes before them
    let (code, words) = status("launches>5", &path);
    let expected = "--fail-on launches>5: there were 6 (runtime layer; none in the driver's)";
    assert!(code == Some(3) && words.contains(expected), "{code:?} {words}");
    assert_eq!(status("launches>6", &path).0, Some(0));
    assert_eq!(json_of(&path)["launches"], json!({"count": 6, "layer": "runtime"}));
}

#[test]
fn faults_and_holders_are_judged_as_the_summary_has_them() {
    let more = json!({
        "xids": [{"name": "Xid 79", "pci": "0000:17:00", "pid": 7, "count": 2}], "more_xids": 1,
        "memory": [{"pid": 4711, "comm": "python", "ended": true, "held_bytes": 3 << 20}],
    });
    let (_folder, path) = recorded(true, Some(&summary(&[], more)), &[]);
    let (code, words) = status("xid", &path);
    assert!(
        code == Some(3)
            && words.contains("--fail-on xid: Xid 79 of 0000:17:00, process 7 ×2")
            && words.contains("--fail-on xid: 1 more of other kinds"),
        "{words}"
    );
    let (code, words) = status("leak", &path);
    assert!(
        code == Some(3) && words.contains("--fail-on leak: python 4711 held 3.0 MiB at its end"),
        "{words}"
    );
}

#[test]
fn where_memory_was_not_followed_no_leak_can_be_told() {
    let why = "--filter and --comm leave calls out";
    let left_out = json!({"memory": [], "totals": {"device_memory": null}, "findings": null, "no_findings": why});
    let launches = [function("runtime", "cudaLaunchKernel", "launch", 6, 0)];
    let (_folder, path) = recorded(false, Some(&summary(&launches, left_out)), &[]);
    let (code, words) = status("leak", &path);
    assert!(
        code == Some(1) && words.contains("--fail-on leak cannot be told"),
        "{code:?} {words}"
    );
    let followed = json!({"memory": [], "totals": {"device_memory": {"allocations": 0}}});
    let (_other, judged) = recorded(true, Some(&summary(&launches, followed)), &[]);
    let differ = gpuscope(&["diff", "--md"], &[&judged, &path]);
    let words = String::from_utf8_lossy(&differ.stdout).into_owned();
    assert!(
        words.contains(
            "findings do not compare, as none were looked for in the second (--filter and --comm leave calls out)"
        ),
        "{words}"
    );
    assert!(
        !words.contains("gone") && words.contains("looked for in one of them alone"),
        "{words}"
    );
}

#[test]
fn a_summary_that_is_none_is_said_to_be_and_rows_speak() {
    let (_folder, path) = recorded(true, Some(&json!({"functions": "many"})), &[]);
    let report = json_of(&path);
    assert_eq!(report["exact"], json!(false));
    let notes = report["notes"].to_string();
    assert!(notes.contains("its exact totals cannot be read: "), "{notes}");
    assert_eq!(status("launches>999", &path).0, Some(3));
}

/// One process that replayed a graph of two kernels a hundred times, and waited in a free.
fn of_graphs() -> Value {
    let functions = [
        function("driver", "cuGraphLaunch", "launch", 100, 0),
        function("driver", "cuLaunchKernel", "launch", 12, 0),
        function("driver", "cuStreamSynchronize", "sync", 3, 0),
    ];
    let frame = |name: &str, line: u32| json!({"function": name, "file": "/home/me/train.py", "line": line, "language": "python"});
    let kernels = json!([
        {"kernel": "gemm", "launches": 10, "failed": 0, "captured": 1, "in_graphs": 100, "total_us": 30.0, "shapes": []},
        {"kernel": null, "reason": "the handle could not be read", "launches": 2, "failed": 0, "captured": 2,
         "in_graphs": 200, "shapes": [{"grid": [128, 2, 1], "block": [256, 1, 1], "shared_bytes": 49152, "launches": 2}]},
    ]);
    let work = json!([{
        "pid": 4711, "comm": "python", "watched": "start", "copies": [],
        "waits": [{"function": "cuStreamSynchronize", "stream": "0x10", "count": 3, "total_us": 988.0, "max_us": 400.0,
            "stack": [frame("loss_item", 50), frame("main", 80)]}],
        "hidden": [{"kind": "free", "count": 100, "total_us": 937_000.0, "certainty": "inferred",
            "stack": [frame("drop_batch", 31)]}],
        "gpu": {"window_us": 500_000.0, "busy_at_most_us": 320_000.0, "idle_at_least_us": 180_000.0,
            "idle_likely_us": 180_000.0, "certainty": "bound", "idle_gaps": 7, "longest_idle_us": 90_000.0, "notes": []},
        "graphs": {"launches": 100, "known_launches": 100, "kernels": 300, "copies": 0, "memsets": 0, "captured": 3},
    }]);
    summary(&functions, json!({"kernels": kernels, "work": work}))
}

#[test]
fn kernels_of_graphs_are_in_every_form_of_a_report() {
    let (_folder, path) = recorded(true, Some(&of_graphs()), &[]);
    let text = text_of(&path);
    for words in [
        "launches          112, ",
        "100 graph launches ran 300 kernels",
        "3 launches recorded into graphs instead of run",
        "Kernels: 12 launches of 2, graphs ran 300 more",
        "? (the handle could not be read) <<<(128,2), 256, 48.0 KiB>>>",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let report = json_of(&path);
    assert_eq!(report["graphs"]["kernels"], json!(300));
    assert_eq!(report["kernels"][0]["in_graphs"], json!(200));
    let page = path.with_extension("html");
    let output = gpuscope(&["report", "--html", &page.to_string_lossy()], &[&path]);
    assert!(output.status.success(), "{}", said(&output));
    let page = std::fs::read_to_string(page).expect("a page");
    assert!(page.contains("<b>300</b><span>kernels of graphs</span>"), "no tile");
    let md = String::from_utf8_lossy(&gpuscope(&["report", "--md"], &[&path]).stdout).into_owned();
    assert!(md.contains("|  | 100 graph launches ran 300 kernels |"), "{md}");
    assert!(md.contains("48.0 KiB&gt;&gt;&gt; | 2 | 200 | 2 |"), "{md}");
}

#[test]
fn what_changed_has_kernels_of_graphs() {
    let (_one, graphs) = recorded(true, Some(&of_graphs()), &[]);
    let (_other, none) = recorded(true, Some(&summary(&[], json!({}))), &[]);
    let measures = |before: &Path, after: &Path| {
        let output = gpuscope(&["diff", "--json"], &[before, after]);
        let diff: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        diff["measures"].as_array().expect("measures").clone()
    };
    let all = measures(&none, &graphs);
    let after = |name: &str| {
        all.iter()
            .find(|one| one["name"] == name)
            .map(|one| one["after"].clone())
    };
    assert_eq!(after("graph launches"), Some(json!(100)));
    assert_eq!(after("kernels run"), Some(json!(12 - 3 + 300)));
    let all = measures(&none, &none);
    assert!(!all.iter().any(|one| one["name"] == "kernels run"), "{all:?}");
}

#[test]
fn idle_time_is_a_part_of_the_time_with_work() {
    let (_folder, path) = recorded(true, Some(&of_graphs()), &[]);
    let idle = &json_of(&path)["idle"][0];
    assert_eq!(
        (&idle["total_ns"], &idle["window_ns"]),
        (&json!(180_000_000), &json!(500_000_000))
    );
    assert_eq!((&idle["gaps"], &idle["longest_ns"]), (&json!(7), &json!(90_000_000)));
    let text = text_of(&path);
    let words = "at least 180.0 ms of 500.0 ms (36.0 %)";
    assert_eq!(text.matches(words).count(), 2, "{text}");
    let diff = String::from_utf8_lossy(&gpuscope(&["diff", "--json"], &[&path, &path]).stdout).into_owned();
    let diff: Value = serde_json::from_str(&diff).expect("JSON");
    let measures = diff["measures"].as_array().expect("measures");
    let idle = measures
        .iter()
        .find(|one| one["name"] == "GPU idle at least")
        .expect("idle");
    assert_eq!(idle["before_share"], json!(0.36));
}

#[test]
fn waits_that_nobody_asked_for_are_said_as_in_the_summary() {
    let (_folder, path) = recorded(true, Some(&of_graphs()), &[]);
    let text = text_of(&path);
    for words in [
        "waiting           988.0 µs in calls, all threads together",
        "≤ 937.0 ms in calls that nobody asked to wait",
        "≤ 937.0 ms   100  giving back memory, which waits for the device",
        "at train.py:31 drop_batch",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let report = json_of(&path);
    assert_eq!(report["waits"][0]["total_ns"], json!(988_000));
    assert_eq!(report["waits"][0]["sites"][0]["site"], json!("train.py:50 loss_item"));
    assert_eq!(
        (&report["hidden"][0]["kind"], &report["hidden"][0]["at_most"]),
        (&json!("free"), &json!(true))
    );
}

#[test]
fn memory_that_a_helper_asks_for_is_told_apart_by_its_callers() {
    let frame = |name: &str, line: u32| {
        format!(r#"{{"function":"{name}","file":"/home/me/pool.py","line":{line},"language":"python"}}"#)
    };
    let stacks = [40, 50].map(|line| {
        format!(
            "[{},{},{}]",
            frame("alloc", 12),
            frame("cached", 30),
            frame("use", line)
        )
    });
    let alloc = |stack| Record {
        layer: "driver",
        name: "cuMemAlloc_v2",
        class: gpuscope::catalog::Class::Alloc,
        ns: Some(1000),
        bytes: Some(1 << 40),
        stack: Some(stack),
        ..Record::new(Kind::Call, 5_000, 4711)
    };
    let (_folder, path) = recorded(true, None, &[alloc(&stacks[0]), alloc(&stacks[1])]);
    let sites = json_of(&path)["memory"]["sites"].clone();
    let named: Vec<&str> = sites
        .as_array()
        .expect("sites")
        .iter()
        .filter_map(|one| one["site"].as_str())
        .collect();
    assert_eq!(
        named[..2],
        ["pool.py:12 alloc ← pool.py:40 use", "pool.py:12 alloc ← pool.py:50 use"]
    );
}

#[test]
fn a_finding_of_which_one_recording_has_no_call_site_is_in_both() {
    let (_one, with) = recorded_with(true, true, None, &[]);
    let (_other, without) = recorded_with(false, true, None, &[]);
    for (before, after) in [(&with, &without), (&without, &with), (&without, &without)] {
        let diff: Value =
            serde_json::from_slice(&gpuscope(&["diff", "--json"], &[before, after]).stdout).expect("JSON");
        let stayed = diff["findings_stayed"].as_array().expect("findings");
        assert!(stayed.iter().any(|pair| pair[0]["rule"] == "alloc-churn"), "{diff}");
        assert_eq!(
            (&diff["findings_appeared"], &diff["findings_gone"]),
            (&json!([]), &json!([]))
        );
    }
}

#[test]
fn what_is_grave_and_costs_no_time_has_no_share_of_it() {
    let sticky = Record {
        failed: true,
        error: Some("CUDA_ERROR_ILLEGAL_ADDRESS"),
        result: Some(700),
        layer: "driver",
        name: "cuStreamSynchronize",
        class: gpuscope::catalog::Class::Sync,
        ns: Some(1000),
        ..Record::new(Kind::Call, 5_000, 4711)
    };
    let (_bad, bad) = recorded(true, None, &[sticky]);
    let (_good, good) = recorded(true, None, &[]);
    for form in [&["diff"][..], &["diff", "--md"]] {
        for files in [[&good, &bad], [&bad, &good], [&bad, &bad]] {
            let output = gpuscope(form, &files.map(std::path::PathBuf::as_path));
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let line = text
                .lines()
                .find(|line| line.contains("sticky-error"))
                .unwrap_or_else(|| panic!("{text}"));
            assert!(
                line.contains("measured") && !line.contains("0 ns") && !line.contains("0.0 %"),
                "{line}"
            );
        }
    }
}

#[test]
fn numbers_that_nobody_can_add_up_are_survived() {
    let mut summary = of_graphs();
    let most = json!(u64::MAX);
    for function in summary["functions"].as_array_mut().expect("functions") {
        (function["calls"], function["total_us"]) = (most.clone(), json!(1e300));
    }
    for kernel in summary["kernels"].as_array_mut().expect("kernels") {
        (kernel["launches"], kernel["in_graphs"]) = (most.clone(), most.clone());
    }
    let work = summary["work"][0].clone();
    summary["work"] = json!([work, work]);
    for work in summary["work"].as_array_mut().expect("work") {
        work["graphs"]["kernels"] = most.clone();
        for key in ["waits", "hidden"] {
            (work[key][0]["count"], work[key][0]["total_us"]) = (most.clone(), json!(1e300));
        }
        for key in ["window_us", "idle_at_least_us", "busy_at_most_us"] {
            work["gpu"][key] = json!(1e300);
        }
    }
    let (_folder, path) = recorded(true, Some(&summary), &[]);
    for form in [
        &["report"][..],
        &["report", "--md"],
        &["report", "--json"],
        &["report", "--html", "-"],
    ] {
        let output = gpuscope(form, &[&path]);
        assert_eq!(output.status.code(), Some(0), "{form:?}: {}", said(&output));
    }
    for form in [&["diff"][..], &["diff", "--md"], &["diff", "--json"]] {
        let output = gpuscope(form, &[&path, &path]);
        assert_eq!(output.status.code(), Some(0), "{form:?}: {}", said(&output));
    }
}
