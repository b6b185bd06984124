use super::json::AT_THE_END;
use super::*;
use crate::model::finding::Diagnosis;
use crate::model::snapshot::Snapshot;
use serde_json::Value;

fn function() -> Function {
    Function {
        layer: Layer::Driver,
        label: "driver".to_owned(),
        name: "cuLaunchKernel".to_owned(),
        class: Class::Launch,
        calls: 7,
        errors: 1,
        total_ns: 700,
        max_ns: 200,
        bytes: 0,
        p50_ns: 100,
        p99_ns: 200,
        unfinished: 1,
        lost: 0,
        without_args: 0,
        timed: true,
        driver: None,
        standstill_ns: 0,
    }
}

#[test]
fn what_was_lost_would_have_room_in_a_larger_ring_of_either_engine() {
    let lost = |engine| Summary {
        lost_events: 3,
        engine: Some(Chosen {
            engine,
            why: "it was asked for".to_owned(),
        }),
        ..Summary::default()
    };
    for engine in ["inside", "kernel"] {
        assert!(to_text(&lost(engine)).contains("hint: a larger --ring-size)"));
    }
}

#[test]
fn a_snapshot_has_the_totals_of_a_summary_and_says_nothing_of_the_end() {
    let summary = Summary {
        functions: vec![function()],
        findings: Diagnosis::NotLookedFor("--errors leaves rows out".to_owned()),
        ..Summary::default()
    };
    let line = to_snapshot_line(&summary);
    let value: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(value["type"], "snapshot");
    for key in AT_THE_END {
        assert_eq!(value[key], Value::Null, "{key}");
    }
    let (told, of_the_end) = (
        Snapshot::read(&value).unwrap(),
        Snapshot::read(&to_json(&summary)).unwrap(),
    );
    assert_eq!(told.functions, of_the_end.functions);
    assert_eq!((told.functions[0].calls, told.findings), (7, None));
    assert_eq!(told.no_findings.as_deref(), Some("--errors leaves rows out"));
}
