//! A recording tells the same as the run that it is of.

use super::program::{Defect, findings};
use super::support::{Gpuscope, sim_cupti};
use gpuscope::findings::Examiner;
use gpuscope::sink::findings::finding_json;
use gpuscope::trace::Reader;
use serde_json::Value;

fn recorded(defect: Defect, cupti: &str) -> (Value, Vec<Value>) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("t.arrows");
    let mut words = vec![
        "run".to_owned(),
        "-o".to_owned(),
        file.display().to_string(),
        "--".to_owned(),
    ];
    words.extend(defect.command());
    let trace = defect.set(Gpuscope::new(&words)).env("GPUSCOPE_CUPTI", cupti).finish();
    assert_eq!(trace.code(), 0, "{}", trace.stderr);
    let mut engine = Examiner::new();
    let end = Reader::open(&file).expect("a recording").read(&mut engine);
    let summary = end.summary.expect("a summary").parse().expect("JSON");
    let run = engine.run();
    let again = engine.findings();
    // as text and back, as the summary
    let again = again.iter().map(|finding| finding_json(finding, &run).to_string());
    let again = again.map(|text| text.parse().expect("JSON"));
    (summary, again.collect())
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_recording_has_the_findings_of_its_run_and_their_call_sites() {
    for defect in [Defect::of("sync-stall"), Defect::of("leak-growth"), Defect::of("none")] {
        let (summary, again) = recorded(defect, "/nowhere");
        assert_eq!(*findings(&summary), again, "{defect:?}");
        for finding in &again {
            let known = finding["stack"].as_array().is_some_and(|stack| !stack.is_empty());
            assert!(known || finding["rule"] == "host-contention", "{finding:#}");
        }
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn idle_time_that_devices_tell_of_costs_the_same_in_a_recording() {
    let cupti = sim_cupti();
    let cupti = cupti.to_str().expect("a path");
    for kind in ["idle-gaps", "host-bound", "sync-stall"] {
        let (summary, again) = recorded(Defect::of(kind), cupti);
        assert_eq!(*findings(&summary), again, "{kind}");
        let planted = again.iter().find(|finding| finding["rule"] == kind);
        let planted = planted.unwrap_or_else(|| panic!("no {kind}: {again:#?}"));
        assert_eq!(planted["certainty"], "measured", "{planted:#}");
    }
}
