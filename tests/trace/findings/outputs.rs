//! What is said of findings at the end of a run, and where nothing can be said.

use super::program::Defect;
use super::support::Gpuscope;

fn said(options: &[&str], defect: Defect) -> (i32, String) {
    let words: Vec<String> = ["run"].iter().chain(options).map(|word| (*word).to_owned()).collect();
    let words = words.into_iter().chain(["--".to_owned()]).chain(defect.command());
    let trace = defect.set(Gpuscope::new(words)).finish();
    (trace.code(), trace.stderr)
}

const CHURN: Defect = Defect {
    steps: 60,
    setting: "GPUSIM_ALLOC_US=300",
    ..Defect::of("alloc-churn")
};

#[test]
#[ignore = "needs the simulated CUDA"]
fn the_end_of_a_run_says_what_is_wrong_and_the_cure() {
    let (code, said) = said(&["-o", "/dev/null"], CHURN);
    assert_eq!(code, 0, "{said}");
    let findings = &said[said.find("\nfindings").expect("findings")..];
    for part in [
        "  1. Memory is given back and taken again 59 times",
        " % of the time, ",
        " (alloc-churn, inferred)",
        "worst: cuMemAlloc_v2 ",
        "     do: keep the memory",
        "     rule: ",
    ] {
        assert!(findings.contains(part), "{part}: {findings}");
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn where_calls_are_left_out_the_end_says_that_and_why() {
    let short = Defect { steps: 3, ..CHURN };
    for (options, why) in [
        (&["-q", "--filter", "*"][..], "--filter and --comm leave calls out"),
        (
            &["-o", "/dev/null", "--filter", "@alloc"],
            "--filter and --comm leave calls out",
        ),
        (
            &["-o", "/dev/null", "--errors"],
            "--errors and --min-duration leave calls out",
        ),
        (
            &["-o", "/dev/null", "--layer", "runtime"],
            "--layer leaves the driver out",
        ),
    ] {
        let (_, said) = said(options, short);
        let line = said.lines().find(|line| line.starts_with("findings: not looked for: "));
        assert!(line.is_some_and(|line| line.contains(why)), "{options:?}: {said}");
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_run_fails_on_a_finding_where_that_is_asked_for() {
    let file = ["-o", "/dev/null", "--fail-on"];
    let with = |rule| [&file[..], &[rule]].concat();
    let (code, text) = said(&with("finding:alloc-churn"), CHURN);
    assert_eq!(code, 3, "{text}");
    assert!(
        text.contains("gpuscope: --fail-on finding:alloc-churn: memory was given back"),
        "{text}"
    );
    assert_eq!(said(&with("finding:leak-growth"), CHURN).0, 0);
    assert_eq!(said(&with("launches>1000"), CHURN).0, 0, "60 steps of 8 launches");
    let (code, text) = said(&with("launches>479"), CHURN);
    assert_eq!(code, 3, "{text}");
    assert!(
        text.contains("gpuscope: --fail-on launches>479: there were 480"),
        "{text}"
    );
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_rule_that_could_not_match_is_refused() {
    let (code, said) = said(&["-q", "--filter", "@alloc", "--fail-on", "finding"], CHURN);
    assert_eq!(code, 125, "{said}");
    assert!(said.contains("--fail-on finding cannot be told: "), "{said}");
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn without_lines_findings_are_looked_for_all_the_same() {
    let words = ["run", "-q", "--"]
        .map(str::to_owned)
        .into_iter()
        .chain(CHURN.command());
    let trace = CHURN.set(Gpuscope::new(words.collect::<Vec<String>>())).finish();
    assert!(trace.stderr.contains("(alloc-churn, inferred)"), "{}", trace.stderr);
    assert!(!trace.stdout.contains("cuMemAlloc"), "{}", trace.stdout);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn what_calls_answer_behind_the_end_of_cuda_is_no_failure() {
    for (setting, failures) in [
        ("GPUSIM_FAIL=cuStreamDestroy_v2:2=4", 0),
        ("GPUSIM_FAIL=cuStreamDestroy_v2:2=400", 1),
    ] {
        let steps = 3;
        let trace = Defect {
            steps,
            setting,
            ..Defect::of("none")
        }
        .run(&["--layer", "driver"]);
        let seen = trace.summary()["failures"].as_array().expect("failures").len();
        assert_eq!(seen, failures, "{setting}: {}", trace.summary()["failures"]);
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn of_a_program_without_a_call_nothing_is_said() {
    let trace = Gpuscope::new(["run", "--", "true"]).finish();
    assert!(
        trace
            .stderr
            .contains("findings: not looked for: no call was seen that they could be about"),
        "{}",
        trace.stderr
    );
}
