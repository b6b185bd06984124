//! The end of a run has the iterations of its program, as a report of its recording has them.

use crate::support::{Gpuscope, Trace, sim_text};
use serde_json::json;

const STEPS: u64 = 60;

fn trained() -> Trace {
    let gpusim = sim_text("gpusim");
    Gpuscope::run(&[], &[gpusim.as_str(), "train", &STEPS.to_string()])
        .finish()
        .ok()
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_run_says_how_many_steps_its_program_made() {
    let trace = trained();
    let steps = &trace.summary()["steps"][0];
    assert_eq!(
        (&steps["count"], &steps["launches"]),
        (&json!(STEPS), &json!(20)),
        "{steps}"
    );
    assert_eq!(
        (&steps["certainty"], &steps["since_ns"]),
        (&json!("inferred"), &json!(null))
    );
    let line = trace.stderr.lines().find(|line| line.starts_with("steps: "));
    let line = line.unwrap_or_else(|| panic!("no line of steps: {}", trace.stderr));
    assert!(
        line.contains(" in the median") && line.ends_with("(inferred: each ends with cuStreamSynchronize)"),
        "{line}"
    );
}
