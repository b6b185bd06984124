//! `--budget`: what is dear goes unseen for a while, is said to, and is counted again; memory is counted as ever.

use super::exporter::{Exporter, hooked};
use super::support::eventually;
use super::workload::Workloads;
use gpuscope::catalog::Class;
use std::process::Command;
use std::time::Duration;

const SHED: &str = "gpuscope_budget_shed";
const IDLE: &str = "gpuscope_gpu_idle_at_least_seconds_total";
const BUSY: &str = "gpuscope_gpu_busy_at_most_seconds_total";

/// An exporter with that budget, whose probes are where programs will look for the libraries.
fn with_budget(budget: &str) -> (Exporter, Workloads) {
    with_budget_but(budget, &[])
}

/// The same with `exceptions` from it.
fn with_budget_but(budget: &str, exceptions: &[&str]) -> (Exporter, Workloads) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpuscope"));
    command.args(["serve", "--budget", budget]);
    command.args(exceptions.iter().flat_map(|exception| ["--budget-except", exception]));
    let exporter = Exporter::start_as(command.env("GPUSCOPE_BUDGET_EVERY", "1s"));
    let workloads = Workloads::of(&exporter);
    workloads.until_seen_whole(&exporter);
    (exporter, workloads)
}

fn of(exporter: &Exporter, metric: &str, name: &str, part: &str) -> Option<f64> {
    exporter.sum(metric, &[&format!("comm=\"{name}\""), part])
}

fn is_shed(exporter: &Exporter) -> bool {
    exporter.sum(SHED, &["calls=\"work\""]) == Some(1.0)
}

#[test]
#[ignore = "needs root and BPF: serve traces the whole machine"]
fn launches_go_unseen_while_a_program_spends_too_much_on_them_and_are_counted_again() {
    let (exporter, workloads) = with_budget("0.05%");
    let busy = workloads.start("b-busy", "stall --steps 100000000 --host-ns 100000");
    eventually("its launches are shed", || is_shed(&exporter));

    assert_eq!(of(&exporter, "gpuscope_launches_total", "b-busy", ""), None);
    assert_eq!(
        of(&exporter, "gpuscope_api_calls_total", "b-busy", "class=\"launch\""),
        None
    );
    assert!(of(&exporter, "gpuscope_api_calls_total", "b-busy", "class=\"context\"").is_some());
    assert!(
        exporter
            .stderr()
            .contains("launches, copies and waits are not seen (--budget)")
    );
    assert!(
        exporter
            .get("/", "text/html")
            .contains("launches, copies and waits are not seen (--budget)")
    );

    // while they are unseen no idle time is claimed
    std::thread::sleep(Duration::from_secs(2));
    let before = [IDLE, BUSY].map(|metric| of(&exporter, metric, "b-busy", ""));
    let pool = workloads.run("b-pool", "pool 20");
    let held = |metric| of(&exporter, metric, "b-pool", "");
    eventually("memory is counted as ever", || {
        held("gpuscope_memory_allocated_total").is_some() && held("gpuscope_memory_freed_total").is_some()
    });
    assert!(
        is_shed(&exporter),
        "it is still beyond the budget, as far as anybody knows"
    );
    let after = [IDLE, BUSY].map(|metric| of(&exporter, metric, "b-busy", ""));
    assert_eq!(after[0], before[0]);
    assert!(after[1] > before[1], "{before:?} {after:?}");
    assert!(of(&exporter, IDLE, "b-pool", "").unwrap_or(0.0) == 0.0);
    for class in [Class::Alloc, Class::Free] {
        let calls: u64 = hooked(&pool.ledger, |row| row.class == class).values().sum();
        let counted = of(
            &exporter,
            "gpuscope_api_calls_total",
            "b-pool",
            &format!("class=\"{}\"", class.name()),
        );
        assert_eq!(counted, Some(calls as f64), "{class:?}");
    }

    drop(busy);
    eventually("everything is seen again", || !is_shed(&exporter));
    let ended = workloads.run("b-after", "train 20");
    let calls = exporter.calls_of(&ended.ledger) as f64;
    eventually("each call is counted", || {
        of(&exporter, "gpuscope_api_calls_total", "b-after", "") == Some(calls)
    });
    assert!(of(&exporter, "gpuscope_launches_total", "b-busy", "").is_some_and(|count| count > 0.0));
    assert!(exporter.sum("gpuscope_budget_unseen_seconds_total", &["calls=\"work\""]) > Some(2.0));
    assert!(exporter.stderr().contains("are seen again"));
}

#[test]
#[ignore = "needs root and BPF: serve traces the whole machine"]
fn within_the_budget_nothing_is_shed() {
    let (exporter, workloads) = with_budget("90%");
    let ended = workloads.run("b-stalls", "stall --steps 1500 --host-ns 100000");
    let calls = exporter.calls_of(&ended.ledger) as f64;
    eventually("each call is counted", || {
        of(&exporter, "gpuscope_api_calls_total", "b-stalls", "") == Some(calls)
    });
    for kind in ["work", "queries"] {
        let part = format!("calls=\"{kind}\"");
        assert_eq!(exporter.sum(SHED, &[&part]), Some(0.0));
        assert_eq!(
            exporter.sum("gpuscope_budget_unseen_seconds_total", &[&part]),
            Some(0.0)
        );
    }
}

#[test]
#[ignore = "needs root and BPF: serve traces the whole machine"]
fn on_account_of_who_is_excepted_nothing_goes_unseen() {
    const STALL: &str = "stall --steps 100000000 --host-ns 100000";
    let (exporter, workloads) = with_budget_but("0.05%", &["unit=nobody.service", "comm=b-may-*"]);
    let excepted = workloads.start("b-may-spend", STALL);
    eventually("it is beyond the budget", || {
        exporter.sum("gpuscope_budget_spent_ratio", &[]) > Some(0.0005)
    });
    let launches = || of(&exporter, "gpuscope_launches_total", "b-may-spend", "");
    let before = launches();
    // another program would have had its launches shed after two looks
    std::thread::sleep(Duration::from_secs(4));
    assert!(!is_shed(&exporter));
    assert!(launches() > before && before.is_some(), "{before:?} {:?}", launches());

    let other = workloads.start("b-other", STALL);
    eventually("another one is judged as ever", || is_shed(&exporter));
    assert_eq!(launches(), None, "probes are in files that they share");
    assert!(exporter.stderr().contains("(b-other) spent "), "{}", exporter.stderr());
    drop(other);
    eventually("the one that remains is excepted still", || !is_shed(&exporter));
    std::thread::sleep(Duration::from_secs(4));
    assert!(!is_shed(&exporter));
    assert!(!exporter.stderr().contains("(b-may-spend)"), "{}", exporter.stderr());
    drop(excepted);
}
