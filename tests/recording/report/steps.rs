//! Steps are found in a recording, and chosen by their numbers.

use super::{LAUNCHES, STEPS, gpuscope, json_of, recorded, said};
use serde_json::{Value, json};
use std::path::Path;

fn part(words: &[&str], path: &Path) -> Value {
    let output = gpuscope(&[&["report", "--json", "--step"], words].concat(), &[path]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn a_loop_has_as_many_steps_as_it_made() {
    let (_folder, path) = recorded(true, None, &[]);
    let report = json_of(&path);
    let steps = &report["steps"][0];
    assert_eq!((&steps["count"], &steps["launches"]), (&json!(STEPS), &json!(LAUNCHES)));
    assert_eq!(report["no_steps"], Value::Null);
}

#[test]
fn chosen_steps_have_their_calls_and_no_others() {
    let (_folder, path) = recorded(true, None, &[]);
    let (one, three) = (part(&["7"], &path), part(&["7..9"], &path));
    for (report, steps) in [(&one, 1), (&three, 3)] {
        assert_eq!(report["launches"]["count"], json!(steps * LAUNCHES));
        assert_eq!(report["memory"]["allocations"], json!(steps));
        assert_eq!(report["idle"][0]["total_ns"], json!(steps * 1_200_000));
        assert_eq!(report["exact"], json!(false));
    }
    let said = format!("only steps 7 to 9 of {STEPS}");
    assert!(
        three["notes"].as_array().expect("notes").contains(&json!(said)),
        "{three}"
    );
    let lines = gpuscope(&["export", "--to", "jsonl", "--step", "7..9"], &[&path]);
    let lines = String::from_utf8(lines.stdout).expect("UTF-8");
    let launches = lines.lines().filter(|line| line.contains(r#""name":"cuLaunchKernel""#));
    assert_eq!(launches.count() as u64, 3 * LAUNCHES);
    let diff = gpuscope(&["diff", "--step", "7", "--json"], &[&path, &path]);
    let diff: Value = serde_json::from_slice(&diff.stdout).expect("JSON");
    assert_eq!(diff["before"]["launches"], json!(LAUNCHES));
}

#[test]
fn the_same_steps_are_in_the_timeline_and_in_what_is_exported() {
    let (_folder, path) = recorded(true, None, &[]);
    let picture = gpuscope(&["timeline", "--step", "7..9", "--width", "100"], &[&path]);
    let picture = String::from_utf8(picture.stdout).expect("UTF-8");
    let lane = picture
        .lines()
        .find(|line| line.starts_with("  steps"))
        .expect("a lane");
    assert!(lane.ends_with(" 3"), "{lane}");
    let numbers: Vec<&str> = lane
        .split('|')
        .skip(1)
        .map(|part| part.split(' ').next().unwrap_or_default())
        .collect();
    assert_eq!(numbers, ["7", "8", "9"], "{picture}");
    let chrome = gpuscope(&["export", "--to", "chrome", "--step", "7..9"], &[&path]);
    let trace: Value = serde_json::from_slice(&chrome.stdout).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("events");
    let steps: Vec<&str> = events
        .iter()
        .filter(|event| event["cat"] == "step")
        .filter_map(|event| event["name"].as_str())
        .collect();
    assert_eq!(steps, ["step 7", "step 8", "step 9"]);
}

#[test]
fn steps_that_are_not_there_are_refused_with_how_many_there_are() {
    let (_folder, path) = recorded(true, None, &[]);
    let last = format!("hint: --step 1..{STEPS}");
    for words in [
        &["report", "--step", "41"][..],
        &["timeline", "--step", "40..1000"],
        &["export", "--to", "csv", "--step", "41"],
    ] {
        let output = gpuscope(words, &[&path]);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {}", said(&output));
        assert!(
            said(&output).contains(&last) && output.stdout.is_empty(),
            "{}",
            said(&output)
        );
    }
    for words in [
        &["report", "--step", "0"][..],
        &["timeline", "--step", "9..7"],
        &["timeline", "--step", "7", "--from", "1s"],
        &["report", "--live", "-p", "1", "--step", "7"],
    ] {
        let files: &[&Path] = if words.contains(&"--live") { &[] } else { &[&path] };
        let output = gpuscope(words, files);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", said(&output));
    }
}
