//! Who waited for what, and what came and went.

use super::log::{Log, Operation, Wait};
use super::run::{Run, watch};
use super::seed::seed;
use super::support::{number, text};
use super::told::{assert_complete, handle, list, ns};
use serde_json::Value;
use std::collections::BTreeMap;

/// Count and ns by function and stream; 0: none, or a default one.
type Waits = BTreeMap<(String, u64), (u64, u64)>;

/// Functions that memory comes or goes with wait, too; a program does not ask for that.
fn is_asked_for(wait: &&Wait) -> bool {
    wait.function.contains("Synchronize")
}

fn add(waits: &mut Waits, key: (String, u64), count: u64, ns: u64) {
    let sum = waits.entry(key).or_default();
    *sum = (sum.0 + count, sum.1 + ns);
}

/// The log does not say which stream an event is of.
fn of_log(log: &Log) -> Waits {
    let mut waits = Waits::new();
    for wait in log.waits.iter().filter(is_asked_for) {
        let key = (wait.function.clone(), wait.stream.unwrap_or(0));
        add(&mut waits, key, 1, wait.returned_ns - wait.entered_ns);
    }
    waits
}

fn of_report(report: &Value) -> Waits {
    let mut waits = Waits::new();
    for wait in list(&report["waits"]) {
        let function = text(wait, "function");
        let is_of_event = function.starts_with("cuEvent");
        let stream = if is_of_event { 0 } else { handle(wait, "stream") };
        add(
            &mut waits,
            (function, stream),
            number(wait, "count"),
            ns(wait, "total_us"),
        );
    }
    waits
}

fn assert_waits(run: &Run) {
    assert_complete(&run.name, run.report());
    let (expected, told) = (of_log(&run.log), of_report(run.report()));
    let counts = |waits: &Waits| waits.iter().map(|(key, (count, _))| (key.clone(), *count)).collect();
    let (expected_counts, told_counts): (BTreeMap<_, u64>, BTreeMap<_, u64>) = (counts(&expected), counts(&told));
    super::support::assert_same(&run.name, &expected_counts, &told_counts);
    for (key, (_, truly)) in expected {
        let waited = told[&key].1;
        assert!(waited >= truly, "{}: {key:?} {waited} ns, truly {truly}", run.name);
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn every_wait_is_counted_and_lasts_as_long_as_it_did() {
    for seed in [1, seed(), seed()] {
        assert_waits(&watch(&format!("gpusim streams --seed {seed} --steps 500"), &[], &[]));
        assert_waits(&watch(&format!("gpusim graphs --seed {seed}"), &[], &[]));
        assert_waits(&watch(&format!("gpusim copies --seed {seed}"), &[], &[]));
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn waits_are_those_of_the_stream_that_was_waited_for() {
    for how in ["device", "stream", "event"] {
        let run = watch(&format!("gpusim stall --steps 20 --sync {how}"), &[], &[]);
        assert_waits(&run);
        let waits = list(&run.report()["waits"]);
        assert_eq!((waits.len(), number(&waits[0], "count")), (1, 20), "{waits:?}");
        let stream = if how == "device" {
            0
        } else {
            run.log.operations[0].stream
        };
        assert_eq!(handle(&waits[0], "stream"), stream, "{how}: {waits:?}");
        let streams = list(&run.report()["streams"]);
        let blocked: u64 = streams.iter().map(|stream| ns(stream, "blocked_us")).sum();
        let expected = if how == "device" { 0 } else { ns(&waits[0], "total_us") };
        assert_eq!(blocked, expected, "{how}: {streams:?}");
    }
}

/// A wait that begins so soon after a small copy is for that.
const SOON_NS: u64 = 50_000;

/// Small copies with a wait soon after; an interrupted thread may wait later.
fn items_waited_for_soon(log: &Log) -> u64 {
    let soon = |copy: &Operation| {
        let given = if copy.blocking { copy.end_ns } else { copy.submitted_ns };
        let next = log.waits.iter().find(|wait| wait.entered_ns > copy.submitted_ns);
        next.is_some_and(|wait| wait.entered_ns.saturating_sub(given) <= SOON_NS)
    };
    log.copies().filter(|copy| soon(copy)).count() as u64
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn each_value_fetched_is_one_wait_that_nobody_asked_for() {
    for host in ["pageable", "pinned"] {
        let run = watch(&format!("gpusim item --steps 100 --host {host}"), &[], &[]);
        let hidden = list(&run.report()["hidden"]).iter();
        let items: u64 = hidden
            .filter(|wait| wait["kind"] == "item")
            .map(|wait| number(wait, "count"))
            .sum();
        let (least, most) = (items_waited_for_soon(&run.log), number(&run.own()["planted"], "items"));
        assert!(
            items > 0 && (least..=most).contains(&items),
            "{host}: {least} {items} {most}"
        );
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn what_was_made_less_what_was_destroyed_is_what_is_left() {
    for seed in [1, seed()] {
        for left in [0, 3] {
            let text = format!(
                "gpusim streams --seed {seed} --steps 500 --left {left} --events-left {}",
                left + 1
            );
            let run = watch(&text, &[], &[]);
            let (created, planted) = (&run.report()["created"], &run.own()["planted"]);
            for kind in ["streams", "events"] {
                let made = number(planted, &format!("{kind}_made"));
                let expected = [made, made - number(planted, &format!("{kind}_left"))];
                let fields = [kind.to_owned(), format!("{kind}_destroyed")];
                assert_eq!(fields.map(|field| number(created, &field)), expected, "{text}: {kind}");
            }
        }
    }
}
