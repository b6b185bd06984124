//! The totals of a run, and the events it writes, are the calls that the libraries really received.

use crate::support::{
    Counts, Gpuscope, Ledger, TIERS, Trace, assert_same, groups, kernel_version, ledgers_of, sim_text,
};
use std::collections::BTreeMap;

/// Name and command of each program that is run, one after the other, under one gpuscope.
const PROGRAMS: [(&str, &str); 13] = [
    ("train", "gpusim train 5"),
    ("churn", "gpusim churn 5"),
    ("threads", "gpusim threads 8 20"),
    ("errors", "gpusim errors 3"),
    ("kinds", "gpusim kinds"),
    ("graph", "gpusim graph 5"),
    ("vmm", "gpusim vmm"),
    ("pool", "gpusim pool 5"),
    ("recursion", "gpusim recursion"),
    ("fork", "gpusim fork"),
    ("late-dlopen", "gpusim late-dlopen"),
    ("static", "gpusim static"),
    ("static-stripped", "gpusim-static-stripped train 5"),
];

/// What a stripped runtime does not show: functions that never mention their own name.
const NAMELESS: &str = "__cuda";

/// A shell script that runs all programs, each with its ledgers in `$LEDGERS/NAME`.
fn script(programs: &[(&str, &str)]) -> String {
    let line = |(name, command): &(&str, &str)| {
        let command = command.replacen("gpusim", &sim_text("gpusim"), 1);
        format!("mkdir $LEDGERS/{name}; GPUSIM_LEDGER=$LEDGERS/{name}/%p {command}\n")
    };
    programs.iter().map(line).collect()
}

/// Traces all programs; also what each of them did.
fn traced(tier: &str, options: &[&str], programs: &[(&str, &str)]) -> (Trace, BTreeMap<String, Ledger>) {
    let ledgers = tempfile::tempdir().expect("a folder");
    let trace = Gpuscope::script(options, &script(programs))
        .tier(tier)
        .env("LEDGERS", ledgers.path())
        .finish()
        .ok();
    let ledgers = ledgers_of(ledgers.path());
    assert_eq!(ledgers.len(), programs.len());
    (trace, ledgers)
}

/// The calls of a program that can be seen.
fn visible(name: &str, ledger: &Ledger) -> Counts {
    ledger.visible_where(|_, function| name != "static-stripped" || !function.starts_with(NAMELESS))
}

fn sum(all: impl Iterator<Item = Counts>) -> Counts {
    let mut total = Counts::new();
    for (key, count) in all.flatten() {
        *total.entry(key).or_default() += count;
    }
    total
}

/// What these programs may be told not to show: deep recursion, a runtime without names, and what follows from
/// functions that a filter leaves out.
const DECLARED: [&str; 3] = [
    "nested too deeply",
    "internal functions that never mention their name",
    "of which --filter leaves some out",
];

/// Everything that a run says must be what the ledgers say.
fn assert_exact(trace: &Trace, ledgers: &BTreeMap<String, Ledger>, traced: impl Fn(&str) -> bool) {
    let seen = |name: &str, ledger: &Ledger| {
        let mut calls = visible(name, ledger);
        calls.retain(|(_, function), _| traced(function));
        calls
    };
    assert!(
        trace
            .unseen()
            .iter()
            .all(|line| DECLARED.iter().any(|part| line.contains(part))),
        "{:?}",
        trace.unseen()
    );
    for (name, ledger) in ledgers {
        let expected = seen(name, ledger);
        assert!(expected.values().sum::<u64>() > 0, "{name} made no call");
        assert_same(&format!("events of {name}"), &expected, &trace.written_by(&ledger.pids));
    }
    let expected = sum(ledgers.iter().map(|(name, ledger)| seen(name, ledger)));
    assert_same("totals", &expected, &trace.totals("calls"));
    assert_same("calls that did not return", &Counts::new(), &trace.totals("unfinished"));
    assert_same("lost", &Counts::new(), &trace.totals("lost"));
    assert_eq!(trace.summary()["lost_events"], 0);
    assert_eq!(trace.summary()["malformed_events"], 0);
    let mut failures = BTreeMap::new();
    for (key, count) in ledgers
        .values()
        .flat_map(|ledger| &ledger.errors)
        .filter(|(key, _)| traced(&key.0))
    {
        *failures.entry(key.clone()).or_default() += count;
    }
    assert_same("failed calls", &failures, &trace.failures());
}

fn assert_bytes(trace: &Trace, ledgers: &BTreeMap<String, Ledger>) {
    let bytes = |what: &str| {
        ledgers
            .values()
            .map(|ledger| ledger.bytes.get(what).copied().unwrap_or(0))
            .sum::<u64>()
    };
    let copied = |direction: &str| {
        let copies = trace.summary()["copies"].as_array().expect("copies");
        let copies = copies
            .iter()
            .filter(|copy| copy["layer"] == "driver" && copy["direction"] == direction);
        copies.filter_map(|copy| copy["bytes"].as_u64()).sum::<u64>()
    };
    for (direction, what) in [("HtoD", "htod"), ("DtoH", "dtoh"), ("DtoD", "dtod"), ("HtoH", "htoh")] {
        assert_eq!(copied(direction), bytes(what), "{direction}");
    }
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn every_call_is_counted_and_written_in_each_way() {
    // a way that this kernel lacks is the business of `a_tier_that_this_kernel_lacks_is_refused`
    for way in groups() {
        let (trace, ledgers) = traced(way, &["--chatty", "--ring-size", "64MiB"], &PROGRAMS);
        println!("{way}: {} calls", trace.calls().count());
        assert_eq!(trace.summary()["attach"], way);
        assert_exact(&trace, &ledgers, |_| true);
        assert_bytes(&trace, &ledgers);
    }
}

/// Single links detach so slowly that only some functions are probed.
#[test]
#[ignore = "needs root and BPF: a way of attaching that it has"]
fn every_call_is_counted_and_written_by_single_links() {
    const FUNCTIONS: [&str; 6] = [
        "cudaMalloc",
        "cudaFree",
        "cudaLaunchKernel",
        "cuLaunchKernel",
        "cuMemAlloc_v2",
        "cuMemFree_v2",
    ];
    let options: Vec<&str> = FUNCTIONS.iter().flat_map(|name| ["--filter", name]).collect();
    let programs = [PROGRAMS[0], PROGRAMS[1], PROGRAMS[2], PROGRAMS[9], PROGRAMS[10]];
    let (trace, ledgers) = traced("perf-link", &options, &programs);
    assert_eq!(trace.summary()["attach"], "perf-link");
    assert_exact(&trace, &ledgers, |function| FUNCTIONS.contains(&function));
}

#[test]
#[ignore = "needs root and BPF: a way of attaching that it has"]
fn a_tier_that_this_kernel_lacks_is_refused() {
    let unknown = Gpuscope::run(&[], &["true"]).tier("uprobe.none").finish();
    assert_eq!(unknown.code(), 125);
    assert!(
        unknown.stderr.contains("uprobe.session, uprobe.multi, perf-link"),
        "{}",
        unknown.stderr
    );
    for tier in TIERS.iter().filter(|tier| kernel_version() < tier.since) {
        let refused = Gpuscope::run(&[], &["true"]).tier(tier.name).finish();
        assert_eq!(refused.code(), 125, "{}", tier.name);
        assert!(refused.stderr.contains("hint: gpuscope doctor"), "{}", refused.stderr);
    }
}
