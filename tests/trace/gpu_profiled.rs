//! Programs that profile themselves: CUPTI is theirs as soon as they ask, and gpuscope says until when it knows what the GPU executed.

use crate::gpu::{ENGINES, coverage, device, watched};
use crate::support::{Gpuscope, Trace, number, sim_cupti, sim_text, text};
use crate::work_truth::log::{Log, Operation};
use serde_json::Value;

/// Steps, of four kernels of half a millisecond, before the program profiles itself, and as many after that.
const STEPS: u64 = 20;

/// A program that begins to profile itself while `running` of its kernels run, or wait to.
fn profiled(engine: &str, options: &[&str], running: &str) -> (Trace, Log) {
    let cupti = sim_cupti();
    let cupti = cupti.to_str().expect("a path");
    watched(
        engine,
        options,
        &["profiled", "--cupti", cupti, "--running", running],
        &[],
    )
}

#[test]
#[ignore = "needs root and BPF: activities are told by both engines"]
fn a_program_that_profiles_itself_gets_cupti_and_all_that_it_tells() {
    for engine in ENGINES {
        for running in ["0", "30"] {
            let (trace, log) = profiled(engine, &[], running);
            let what = format!("{engine}, {running}: {}", trace.stderr);
            let own = "profiled: 80 kernels profiled, 80 of them at their time of day";
            assert!(trace.stdout.contains(own), "{}: {what}", trace.stdout);
            assert_eq!(trace.calls_of("cuLaunchKernel").count(), log.operations.len(), "{what}");
        }
    }
}

#[test]
#[ignore = "needs root and BPF: activities are told by its engine"]
fn what_ran_until_the_program_asked_cupti_itself_is_measured_and_the_rest_is_said_not_to_be() {
    let (trace, log) = profiled("inside", &[], "30");
    let (told, before) = (device(&trace), 4 * STEPS);
    let given = number(coverage(&trace), "given_ns");
    let is_before = |one: &&Operation| one.end_ns <= given;
    let ran: Vec<&Operation> = log.operations.iter().filter(is_before).collect();
    assert!(ran.len() as u64 >= before, "{}", trace.stderr);
    assert_eq!(number(told, "kernels"), ran.len() as u64, "{}", trace.stderr);
    assert_eq!(told["certainty"], "measured", "{}", trace.stderr);
    let last = ran.iter().map(|one| one.end_ns).max().expect("work");
    let busy: u64 = ran.iter().map(|one| one.end_ns - one.start_ns).sum();
    assert_eq!((told["busy_us"].as_f64().expect("a time") * 1e3).round() as u64, busy);
    assert!(number(told, "last_ns") >= last, "until then it is known: {told}");
    let windows = &coverage(&trace)["windows"];
    assert_eq!(windows["period_us"].as_f64(), Some(0.0));
    assert!(windows["of_us"].as_f64() > windows["length_us"].as_f64(), "{windows}");
    for words in [
        "until the program asked CUPTI itself; from then on nothing is known but what calls prove",
        "asked CUPTI itself, as profilers do, and got it: what the GPU executed from then on is not known",
    ] {
        assert!(trace.stderr.contains(words), "{}", trace.stderr);
    }
}

#[test]
#[ignore = "needs root and BPF: activities are told by its engine"]
fn a_program_that_does_not_ask_for_cupti_is_told_that_it_could() {
    let (trace, _) = watched("inside", &[], &["train", "5"], &[]);
    assert_eq!(coverage(&trace)["gives_way"], true);
    assert_eq!(coverage(&trace)["given_ns"], Value::Null);
    assert!(trace.stderr.contains("gets it as soon as it asks"), "{}", trace.stderr);
}

/// Has what it starts gain no code that it could write: `PR_SET_MDWE`, as systemd's `MemoryDenyWriteExecute` does.
const UNWRITABLE: &str = "import ctypes, os, sys
ctypes.CDLL(None).prctl(65, 1, 0, 0, 0) and sys.exit(77)
os.execv(sys.argv[1], sys.argv[1:])";

#[test]
#[ignore = "needs root and BPF: the program is traced from outside"]
fn where_code_may_not_be_written_it_is_said_that_a_profiler_would_see_no_gpu() {
    let (gpusim, cupti) = (sim_text("gpusim"), sim_cupti());
    let cupti = cupti.to_str().expect("a path");
    let program = ["python3", "-c", UNWRITABLE, &gpusim, "profiled", "--cupti", cupti];
    let trace = Gpuscope::run(&["--engine", "kernel"], &program)
        .env("GPUSCOPE_CUPTI", cupti)
        .finish();
    assert!(
        trace.stdout.contains("profiled: ended early by error 39"),
        "{}",
        trace.stderr
    );
    assert_eq!(coverage(&trace)["gives_way"], false);
    assert_eq!(number(device(&trace), "kernels"), 4 * STEPS, "{}", trace.stderr);
    assert!(
        trace.stderr.contains("sees no GPU; hint: --gpu off"),
        "{}",
        trace.stderr
    );
}

#[test]
#[ignore = "needs root and BPF: activities are told by both engines"]
fn a_program_with_a_cupti_of_its_own_is_said_to_be_locked_out_of_it() {
    for engine in ENGINES {
        let (gpusim, folder) = (sim_text("gpusim"), tempfile::tempdir().expect("a folder"));
        let own = folder.path().join("libcupti.so.12");
        std::fs::copy(sim_cupti(), &own).expect("a copy");
        let own = own.to_str().expect("a path");
        let command = [gpusim.as_str(), "profiled", "--steps", "4", "--cupti", own];
        let trace = Gpuscope::run(&["--engine", engine], &command)
            .env("GPUSCOPE_CUPTI", sim_cupti())
            .finish();
        let what = &trace.stderr;
        assert!(trace.stdout.contains("profiled: ended early by error 39"), "{what}");
        assert_eq!(text(coverage(&trace), "other_cupti"), own, "{what}");
        assert_eq!(coverage(&trace)["given_ns"], Value::Null, "{what}");
        assert!(
            what.contains(&format!("has loaded another CUPTI ({own}): only the CUPTI")),
            "{what}"
        );
        assert!(what.contains("hint: --gpu off"), "{what}");
        let alone = Gpuscope::run(&["--engine", engine, "--gpu", "off"], &command).finish();
        let own_profile = "profiled: 16 kernels profiled, 16 of them at their time of day";
        assert!(alone.stdout.contains(own_profile), "{}", alone.stderr);
    }
}
