//! gpuscope is killed at any moment: what it started or watched goes on to its end as if nothing had been.

use crate::effort::{Chance, kills, rounds, tried};
use crate::subject::{Subject, assert_no_probe_is_left};
use crate::support::patience;
use crate::tracer::Tracer;
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

const STARTING: [&[&str]; 4] = [
    &["run", "-q"],
    &["run", "-o", "OUT/t.jsonl"],
    &["record", "-o", "OUT/t.arrows"],
    &["leaks", "-o", "OUT/t.jsonl"],
];

/// How long gpuscope takes to start a short program and see it through.
fn millis_of_a_run() -> u64 {
    let (subject, start) = (Subject::new("jumping", &[]), Instant::now());
    let whole = Tracer::start(&[STARTING[0], &["--"], &subject.command()].concat()).finish();
    subject.assert_as_alone(&whole, "not killed");
    start.elapsed().as_millis() as u64
}

/// Starts a program by `way` and kills gpuscope at some moment; whether the program had been started.
fn kill_starter(way: &[&str], longest: u64, chance: &mut Chance) -> bool {
    let subject = Subject::new(chance.one_of(&["signals", "threads", "jumping", "waiting"]), &[]);
    let mut tracer = Tracer::start(&[way, &["--"], &subject.command()].concat());
    std::thread::sleep(Duration::from_millis(chance.below(longest)));
    tracer.signal(libc::SIGKILL);
    tracer.wait();
    tracer.assert_session_is_over();
    tracer.assert_left_only(&["stdout", "stderr", "t.jsonl", "t.arrows"]);
    let started = !tracer.stdout().is_empty();
    if started {
        subject.assert_said(&tracer.stdout(), &format!("{way:?} was killed"));
    }
    started
}

#[test]
#[ignore = "needs root and BPF"]
fn what_it_started_goes_on_when_it_is_killed() {
    let (times, mut chance, longest) = (kills(1, 2, 50, 1000), Chance::new(), millis_of_a_run() * 2);
    let (mut all, mut unstarted) = (0, 0);
    for way in STARTING {
        let (mut killed, mut early) = (0, 0);
        // killed before it is ready, it starts nothing, which tries nothing
        while killed < times || (early == killed && killed < 4 * times) {
            early += u64::from(!kill_starter(way, longest, &mut chance));
            killed += 1;
        }
        tried(
            killed,
            &format!("kills of a gpuscope {} that has started a program", way[0]),
        );
        (all, unstarted) = (all + killed, unstarted + early);
    }
    assert_no_probe_is_left();
    assert!(unstarted < all, "all were killed before they had started the program");
    println!("{unstarted} of {all} were killed before they had started the program");
}

const WATCHING: [&[&str]; 4] = [
    &["trace", "-q", "-p", "PID"],
    &["trace", "-p", "PID", "-o", "OUT/t.jsonl"],
    &["record", "-p", "PID", "-o", "OUT/t.arrows"],
    &["leaks", "-p", "PID"],
];
const WATCHING_ALL: [&[&str]; 3] = [
    &["serve", "--listen", "127.0.0.1:0"],
    &["trace", "--all", "-o", "OUT/t.jsonl"],
    &["top", "--json"],
];

/// Starts `way` beside a program that runs and kills it, at a moment from its start to the program's end. Whether it had
/// not ended before.
fn kill_watcher(way: &[&str], chance: &mut Chance) -> bool {
    let name = chance.one_of(&["signals", "threads", "jumping", "waiting"]);
    let subject = Subject::new(name, &["1000"][..usize::from(name == "signals")]);
    let child = subject.start();
    let pid = child.id().to_string();
    let arguments: Vec<&str> = way
        .iter()
        .map(|word| if *word == "PID" { &pid } else { *word })
        .collect();
    let mut tracer = Tracer::start(&arguments);
    std::thread::sleep(patience(Duration::from_millis(chance.below(1500))));
    tracer.signal(libc::SIGKILL);
    let killed = tracer.wait().signal() == Some(libc::SIGKILL);
    let output = child.wait_with_output().expect("it ends");
    subject.assert_as_alone(&output, &format!("{way:?} was killed"));
    tracer.assert_session_is_over();
    tracer.assert_left_only(&["stdout", "stderr", "t.jsonl", "t.arrows"]);
    killed
}

/// Kills each of `ways` so many times. How often it had not ended before.
fn kill_watchers(ways: &[&[&str]], times: u64) -> u64 {
    let (mut chance, mut killed) = (Chance::new(), 0);
    for way in ways {
        for _ in 0..times {
            killed += u64::from(kill_watcher(way, &mut chance));
        }
        tried(times, &format!("kills of gpuscope {}", way[0]));
    }
    assert_no_probe_is_left();
    killed
}

#[test]
#[ignore = "needs root and BPF"]
fn what_it_watches_goes_on_when_it_is_killed() {
    let killed = kill_watchers(&WATCHING, kills(1, 2, 50, 1000));
    assert!(killed > 0, "each had ended before");
}

#[test]
#[ignore = "needs root and BPF"]
fn a_gpuscope_that_watches_all_is_killed_and_nobody_notices() {
    let times = kills(1, 2, 50, 1000);
    assert_eq!(kill_watchers(&WATCHING_ALL, times), times * WATCHING_ALL.len() as u64);
}

/// Two and five on one process; some are killed, all others stay right.
#[test]
#[ignore = "needs root and BPF"]
fn several_on_one_process_and_some_are_killed() {
    let (times, mut chance) = (rounds(1, 2, 40, 1000), Chance::new());
    for _ in 0..times {
        let subject = Subject::new("signals", &["1500"]);
        let child = subject.start();
        let pid = child.id().to_string();
        let count = chance.one_of(&[2, 5]);
        let start = |_| Tracer::start(&["trace", "-p", &pid, "-o", "OUT/t.jsonl"]);
        let tracers: Vec<Tracer> = (0..count).map(start).collect();
        std::thread::sleep(patience(Duration::from_millis(300 + chance.below(500))));
        for tracer in &tracers {
            tracer.signal(chance.one_of(&[libc::SIGKILL, libc::SIGTERM]));
        }
        drop(tracers);
        subject.assert_as_alone(&child.wait_with_output().expect("it ends"), "several at once");
    }
    assert_no_probe_is_left();
    tried(times, "programs watched by several at once, some of them killed");
}
