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
fn what_was_lost_from_inside_has_more_room_in_the_kernels_ring_alone() {
    let lost = |engine| Summary {
        lost_events: 3,
        engine: Some(Chosen {
            engine,
            why: "it was asked for".to_owned(),
        }),
        ..Summary::default()
    };
    assert!(to_text(&lost("inside")).contains("hint: --engine kernel --ring-size 64MiB, as root)"));
    assert!(to_text(&lost("kernel")).contains("hint: a larger --ring-size)"));
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
