//! A traced program, recorded and live: both become the same picture.

use super::processor::look_at;
use super::support::{Gpuscope, sim_text};
use super::{exported, gpuscope};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

/// What the lines of a trace say of its picture: calls by name, arrows.
fn told(lines: &[Value]) -> (BTreeMap<String, (u64, u64)>, u64) {
    let calls: Vec<&Value> = lines.iter().filter(|line| line["event_id"].is_u64()).collect();
    let by_id: HashMap<u64, &Value> = calls
        .iter()
        .map(|call| (call["event_id"].as_u64().unwrap(), *call))
        .collect();
    let caller = |call: &Value| call["parent_id"].as_u64().and_then(|id| by_id.get(&id).copied());
    let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let mut arrows = 0;
    for call in &calls {
        let sum = sums.entry(call["name"].as_str().unwrap().to_owned()).or_default();
        sum.0 += 1;
        sum.1 += call["duration_us"]
            .as_f64()
            .map_or(0, |us| (us * 1000.0).round() as u64);
        let other_layer = caller(call).is_some_and(|caller| caller["layer"] != call["layer"]);
        arrows += u64::from(other_layer && call["type"] == "userspace");
    }
    let gives = |call: &&&Value| {
        let kind = call["category"].as_str().unwrap();
        call["stream"].is_string() && matches!(kind, "launch" | "copy" | "memory")
    };
    let giving: Vec<&Value> = calls.iter().filter(gives).copied().collect();
    let mut within = HashSet::new();
    for call in &giving {
        let mut above = caller(call);
        while let Some(one) = above {
            within.insert(one["event_id"].as_u64());
            above = caller(one);
        }
    }
    arrows += giving
        .iter()
        .filter(|call| !within.contains(&call["event_id"].as_u64()))
        .count() as u64;
    (sums, arrows)
}

fn lines_of(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).expect("lines");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

#[test]
#[ignore = "needs root and BPF"]
fn a_recorded_program_is_drawn_as_its_lines_say() {
    let folder = tempfile::tempdir().expect("a folder");
    let recording = folder.path().join("t.arrows");
    let options = [
        "run",
        "-o",
        recording.to_str().unwrap(),
        "--layer",
        "all",
        "--",
        &sim_text("gpusim"),
        "train",
        "20",
    ];
    Gpuscope::new(options).finish().ok();
    let (lines, _) = exported(&recording, "t.jsonl");
    let lines = lines_of(&lines);
    assert_eq!(
        (&lines[0]["type"], &lines[lines.len() - 1]["type"]),
        (&"meta".into(), &"summary".into())
    );
    let (calls, arrows) = told(&lines);
    assert!(calls.contains_key("cuLaunchKernel") && arrows > 0, "{calls:?}");
    for name in ["t.pftrace", "t.json"] {
        let found = look_at(&exported(&recording, name).0);
        assert_eq!(
            (&found.calls, found.arrows, &found.errors[..]),
            (&calls, arrows, &[][..]),
            "{name}"
        );
        assert!(found.numbers > 0, "{name}");
    }
    let drawn = gpuscope(&["timeline", recording.to_str().unwrap(), "--color", "never"]);
    let drawn = String::from_utf8(drawn.stdout).expect("UTF-8");
    assert!(
        drawn.contains("process ") && drawn.contains("  driver") && drawn.contains("launch"),
        "{drawn}"
    );
}

#[test]
#[ignore = "needs root and BPF"]
fn a_live_picture_has_every_call_of_the_summary() {
    for name in ["t.pftrace", "t.json"] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(name);
        let options = [
            "run",
            "-o",
            path.to_str().unwrap(),
            "--summary",
            "json",
            "--",
            &sim_text("gpusim"),
            "train",
            "20",
        ];
        let ended = Gpuscope::new(options).finish().ok();
        let summary = ended
            .stderr
            .lines()
            .rfind(|line| line.starts_with('{'))
            .expect("a summary");
        let summary: Value = serde_json::from_str(summary).expect("JSON");
        assert_eq!(summary["lost_events"]["total"].as_u64().unwrap_or(0), 0, "{summary}");
        let found = look_at(&path);
        assert_eq!(found.errors, Vec::<String>::new(), "{name}");
        let functions = summary["functions"].as_array().expect("functions");
        let launches = functions.iter().filter(|function| function["name"] == "cuLaunchKernel");
        let launches: u64 = launches.filter_map(|function| function["calls"].as_u64()).sum();
        assert_eq!(found.calls["cuLaunchKernel"].0, launches, "{name}");
    }
}
