//! Calls that do not return the way they came leave nothing behind: neither a call that is thought to be
//! open for ever, nor a wrong depth of later calls.

use crate::support::{Counts, Gpuscope, Trace, assert_same, groups, number, sim_text, text};
use serde_json::Value;
use std::collections::BTreeMap;

/// By themselves functions that call back are seen at entry only.
const RETURNS: &str = r#"
[[function]]
library = "runtime"
symbol = "cudaLaunchHostFunc"
class = "stream"
args = ["stream: handle", "fn: fn", "userData: ptr"]
return = true

[[function]]
library = "driver"
symbol = "cuLaunchHostFunc"
class = "stream"
args = ["hStream: handle", "fn: fn", "userData: ptr"]
return = true
"#;

/// A run of one scenario in each tier with groups of probes, functions that call back with their returns.
fn traced(scenario: &[&str], check: impl Fn(&Trace)) {
    for way in groups() {
        let gpusim = sim_text("gpusim");
        let command: Vec<&str> = std::iter::once(gpusim.as_str())
            .chain(scenario.iter().copied())
            .collect();
        let folder = tempfile::tempdir().expect("a folder");
        let hooks = folder.path().join("returns.toml");
        std::fs::write(&hooks, RETURNS).expect("a file");
        let hooks = hooks.to_str().expect("UTF-8");
        let trace = Gpuscope::run(&["--chatty", "--hooks", hooks], &command)
            .tier(way)
            .finish();
        println!("{way}: {scenario:?}");
        assert_same(
            &format!("entered calls; unseen {:?}", trace.unseen()),
            &trace.ledger.visible(),
            &trace.entered(),
        );
        assert_eq!(trace.summary()["lost_events"], 0);
        check(&trace);
    }
}

fn unfinished(counts: &[(&str, &str, u64)]) -> Counts {
    let entry = |(layer, name, count): &(&str, &str, u64)| (((*layer).to_owned(), (*name).to_owned()), *count);
    counts.iter().map(entry).collect()
}

/// The calls of a function after the last one of another.
fn after<'a>(trace: &'a Trace, last: &str, name: &'a str) -> Vec<&'a Value> {
    let from = trace
        .calls_of(last)
        .map(|call| number(call, "event_id"))
        .max()
        .unwrap_or(0);
    trace
        .calls_of(name)
        .filter(|call| number(call, "event_id") > from)
        .collect()
}

fn assert_outermost(calls: &[&Value], count: usize) {
    assert_eq!(calls.len(), count);
    assert!(
        calls
            .iter()
            .all(|call| call["depth"] == 0 && call["parent_id"].is_null()),
        "{calls:?}"
    );
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn nested_calls_have_their_depths() {
    traced(&["recursion", "5"], |trace| {
        assert_eq!(trace.code(), 0);
        let depths: Vec<u64> = trace
            .calls_of("cudaLaunchHostFunc")
            .map(|call| number(call, "depth"))
            .collect();
        assert_eq!(
            depths,
            [0, 2, 4, 6, 8],
            "the driver's call lies between two of the runtime"
        );
        assert_same("unfinished", &Counts::new(), &trace.totals("unfinished"));
    });
}

/// The kernel follows 64 nested returns of a thread; what is beyond is declared.
#[test]
#[ignore = "needs root and BPF: it follows 64 nested returns of a thread"]
fn calls_nested_too_deeply_are_counted_and_declared() {
    traced(&["recursion", "100"], |trace| {
        assert_eq!(trace.code(), 0, "the program is unharmed");
        let without = trace.totals("without_args").values().sum::<u64>();
        let not_seen = trace.totals("unfinished").values().sum::<u64>();
        assert!(not_seen > 0, "no return was lost: is there no limit any more?");
        let declared = format!("{without} calls were nested too deeply");
        assert!(
            trace.unseen().iter().any(|line| line.contains(&declared)),
            "{:?}",
            trace.unseen()
        );
        assert!(trace.stderr.contains("had not returned"), "{}", trace.stderr);
    });
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn calls_left_by_longjmp_are_unfinished_and_forgotten() {
    traced(&["longjmp", "100"], |trace| {
        assert_eq!(trace.code(), 0);
        let left = [
            ("runtime", "cudaLaunchHostFunc", 100),
            ("driver", "cuLaunchHostFunc", 100),
        ];
        assert_same("unfinished", &unfinished(&left), &trace.totals("unfinished"));
        assert_outermost(&trace.calls_of("cudaGetDevice").collect::<Vec<_>>(), 100);
        assert_outermost(&trace.calls_of("cudaStreamSynchronize").collect::<Vec<_>>(), 1);
    });
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn calls_of_a_thread_that_ends_are_unfinished_and_forgotten() {
    traced(&["thread-exit-midcall", "10"], |trace| {
        assert_eq!(trace.code(), 0);
        let left = [
            ("runtime", "cudaLaunchHostFunc", 10),
            ("driver", "cuLaunchHostFunc", 10),
        ];
        assert_same("unfinished", &unfinished(&left), &trace.totals("unfinished"));
        assert_outermost(&trace.calls_of("cudaGetDevice").collect::<Vec<_>>(), 1);
    });
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_program_replaced_in_mid_call_starts_anew() {
    traced(&["exec-midcall"], |trace| {
        assert_eq!(trace.code(), 0);
        let left = [("runtime", "cudaLaunchHostFunc", 1), ("driver", "cuLaunchHostFunc", 1)];
        assert_same("unfinished", &unfinished(&left), &trace.totals("unfinished"));
        assert_outermost(&after(trace, "cudaLaunchHostFunc", "cudaStreamCreateWithFlags"), 1);
        let runtime = trace
            .calls()
            .filter(|call| call["layer"] == "runtime")
            .collect::<Vec<_>>();
        assert_outermost(&runtime, runtime.len());
    });
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_program_killed_in_mid_call_is_told_as_such() {
    traced(&["kill"], |trace| {
        assert_eq!(trace.code(), 128 + libc::SIGKILL);
        let left = [("runtime", "cudaLaunchHostFunc", 1), ("driver", "cuLaunchHostFunc", 1)];
        assert_same("unfinished", &unfinished(&left), &trace.totals("unfinished"));
        let mut life: BTreeMap<String, usize> = BTreeMap::new();
        for record in trace.of_type("process") {
            *life.entry(text(record, "name")).or_default() += 1;
        }
        assert_eq!(life.get("exit"), Some(&1), "{life:?}");
    });
}
