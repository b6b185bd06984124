//! Processes that could be taken for one another, and one that is killed.

use super::account::{assert_accounts, assert_figures, of_report, only, processes};
use super::book::Books;
use super::pause::Resting;
use super::support::{Gpuscope, Trace, eventually, number, sim_text, text};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Addresses that each process was given.
fn addresses(trace: &Trace) -> BTreeMap<u64, BTreeSet<String>> {
    let mut given: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
    for call in trace.calls_of("cuMemAlloc_v2") {
        let addresses = given.entry(number(call, "pid")).or_default();
        addresses.insert(text(&call["args"], "dptr"));
    }
    given
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn processes_with_the_same_addresses_at_the_same_time_have_an_account_each() {
    let (books, gpusim) = (Books::new(), sim_text("gpusim"));
    let (stdin, held) = std::io::pipe().expect("a pipe");
    let script = format!(
        "exec 3<&0
        for count in 200 300; do {gpusim} hold --count $count <&3 & done
        for rate in 2000 3000; do {gpusim} churn --rate $rate --seconds 1 --threads 1 & done
        wait"
    );
    let gpuscope = books.of(Gpuscope::script(&["--ring-size", "64MiB"], &script));
    let gpuscope = gpuscope.env("GPUSIM_BASE", "0x700000000000").stdin(stdin);
    let running = gpuscope.start();
    eventually("all hold at the same time", || books.allocations() > 4000);
    drop(held);
    let trace = running.finish().ok();
    let kept = books.read();
    assert_eq!(kept.len(), 4);
    assert_accounts(&script, &kept, &trace);
    let mut given: Vec<BTreeSet<String>> = addresses(&trace).into_values().collect();
    given.sort_by_key(BTreeSet::len);
    assert_eq!(given[0], given[1], "of those that churn");
    assert_eq!([given[2].len(), given[3].len()], [200, 300]);
    assert!(given[2].is_subset(&given[3]), "of those that hold");
}

/// A script that starts `first`, which sets `number` to its process, and another one with that number when it has ended.
fn one_after_the_other(first: &str) -> String {
    let gpusim = sim_text("gpusim");
    // the last number is set again until no other process has come in between
    format!(
        r#"{first}
        wait $number
        while :; do
            echo $((number - 1)) >/proc/sys/kernel/ns_last_pid
            sh -c '[ $$ = '$number' ] || exit 99; exec {gpusim} memory --seed 4 --steps 200 --threads 1 --fork 0 --end leak' &
            wait $!
            status=$?
            [ $status = 99 ] || exit $status
        done"#
    )
}

#[test]
#[ignore = "needs root, and the simulated CUDA"]
fn a_process_does_not_inherit_from_the_one_that_had_its_number() {
    let (books, gpusim) = (Books::new(), sim_text("gpusim"));
    let first = format!("{gpusim} memory --seed 3 --steps 200 --threads 1 --fork 0 --end leak & number=$!");
    let script = one_after_the_other(&first);
    let command = ["sh", "-c", script.as_str()];
    let gpuscope = books.of(Gpuscope::leaks(&[], &command));
    let trace = gpuscope.env("GPUSIM_BASE", "0x700000000000").finish().ok();
    let kept = books.read();
    assert_eq!(kept.len(), 2, "{kept:?}");
    assert_eq!(kept[0]["pid"], kept[1]["pid"], "the number came again");
    assert_accounts("the same number", &kept, &trace);
    let [first, second] = processes(&trace)[..] else {
        panic!("{}", trace.stderr)
    };
    assert_ne!(of_report(first), of_report(second));
}

#[test]
#[ignore = "needs root, and the simulated CUDA"]
fn a_number_that_comes_again_while_gpuscope_is_stopped_has_an_account_of_each() {
    let (books, gpusim) = (Books::new(), sim_text("gpusim"));
    let (stdin, held) = std::io::pipe().expect("a pipe");
    let script = one_after_the_other(&format!("exec 3<&0; {gpusim} hold --count 60 <&3 & number=$!"));
    let running = books.of(Gpuscope::script(&[], &script)).stdin(stdin).start();
    eventually("the first one holds", || books.allocations() >= 60);
    let pid = number(&books.read()[0], "pid");
    let began = || {
        std::fs::read_to_string(format!("/proc/{pid}/stat"))
            .ok()
            .and_then(start_of)
    };
    let first = began();
    running.signal(libc::SIGSTOP);
    drop(held);
    eventually("another one has its number", || {
        began().is_some_and(|began| Some(began) != first)
    });
    // its agent asks meanwhile, and waits for longer
    std::thread::sleep(Duration::from_millis(200));
    running.signal(libc::SIGCONT);
    let trace = running.finish().ok();
    let kept = books.read();
    assert_eq!(kept.len(), 2, "{kept:?}");
    assert_eq!(kept[0]["pid"], kept[1]["pid"], "the number came again");
    assert_accounts("the same number", &kept, &trace);
}

/// Clock ticks from boot until a process began, by its line in `/proc`.
fn start_of(stat: String) -> Option<u64> {
    stat.rsplit(") ").next()?.split(' ').nth(19)?.parse().ok()
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn forks_and_what_they_become_have_an_account_each() {
    let (books, gpusim) = (Books::new(), sim_text("gpusim"));
    let command = [
        gpusim.as_str(),
        "memory",
        "--seed",
        "5",
        "--steps",
        "300",
        "--end",
        "exec",
    ];
    let trace = books.of(Gpuscope::leaks(&[], &command)).finish().ok();
    let kept = books.read();
    let pids: BTreeSet<u64> = kept.iter().map(|book| number(book, "pid")).collect();
    assert_eq!(
        (kept.len(), pids.len()),
        (4, 3),
        "two children, and a process that is two programs"
    );
    assert_accounts("exec", &kept, &trace);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_process_killed_at_any_moment_held_what_its_book_says() {
    let gpusim = sim_text("gpusim");
    for seed in ["11", "12", "13", "14", "15", "16"] {
        let books = Books::new();
        let arguments = [
            "memory",
            "--steps",
            "100000000",
            "--threads",
            "2",
            "--fork",
            "0",
            "--seed",
            seed,
        ];
        let command = [&[gpusim.as_str()], &arguments[..]].concat();
        let running = books.of(Gpuscope::leaks(&[], &command)).start();
        eventually("it allocates", || books.allocations() > 300);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
        std::thread::sleep(Duration::from_micros(u64::from(now.subsec_micros()) % 50_000));
        let book = Resting::of(&books).kill();
        let trace = running.finish();
        assert_eq!(trace.code(), 128 + libc::SIGKILL, "{}", trace.stderr);
        assert_figures(seed, &book, only(&trace));
        assert!(number(only(&trace), "held_bytes") > 0, "{book}");
    }
}
