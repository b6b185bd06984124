//! System calls that wait for so long at most: nobody who comes, holds a thread for a moment or stands still ends one of them.

use crate::effort::{Chance, rounds, tried};
use crate::subject::{Subject, assert_no_probe_is_left};
use crate::support::patience;
use crate::tracer::Tracer;
use std::process::{Child, Output};
use std::time::Duration;

const PROGRAMS: [&str; 2] = ["waiting", "waiting-static"];
/// Of each program: 20 calls of each of four kinds by its threads, and as many by programs that it starts.
const CALLS: u64 = 2 * 20 * 4;
/// Longer than anybody is held.
const STOPPED: Duration = Duration::from_millis(2200);

#[derive(Debug, Clone, Copy)]
enum Way {
    Run,
    Trace,
    All,
}

impl Way {
    /// The program under gpuscope, and where that has not started it the program.
    fn start(self, subject: &Subject, options: &[&str]) -> (Tracer, Option<Child>) {
        let options = [options, &["-o", "OUT/t.jsonl"]].concat();
        let trace = |whom: &[&str]| Tracer::start(&[&["trace"], whom, &options[..]].concat());
        match self {
            Way::Run => {
                let run = [&["run"], &options[..], &["--"], &subject.command()].concat();
                (Tracer::start(&run), None)
            }
            Way::Trace => {
                let child = subject.start();
                (trace(&["-p", &child.id().to_string()]), Some(child))
            }
            Way::All => {
                let tracer = trace(&["--all"]).until_attached();
                (tracer, Some(subject.start()))
            }
        }
    }
}

/// Waits for the program, where gpuscope has not started it, and asks gpuscope to end then.
fn ended(child: Option<Child>, tracer: &Tracer) -> Option<Output> {
    let ended = child?.wait_with_output().expect("it ends");
    tracer.signal(libc::SIGINT);
    Some(ended)
}

/// `stop` is called while the program waits.
fn assert_waits(subject: &Subject, way: Way, stop: impl FnOnce(&Tracer)) {
    let (tracer, child) = way.start(subject, &[]);
    stop(&tracer);
    let ended = ended(child, &tracer);
    let traced = tracer.finish();
    subject.assert_as_alone(ended.as_ref().unwrap_or(&traced), &format!("{way:?}"));
}

/// Runs a program that looks whether it is followed, beside `gpuscope WAY OPTION…`; what it said, and what gpuscope has not seen.
fn looking_at_itself(way: Way, options: &[&str]) -> (String, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let begin = folder.path().join("begin");
    let start = || std::fs::write(&begin, "").expect("a file");
    start();
    let subject = Subject::new("followed_by", &[begin.to_str().expect("UTF-8")]);
    std::fs::remove_file(&begin).expect("a file");
    let (tracer, child) = way.start(&subject, options);
    // what it starts itself it has attached to before
    let mut tracer = if child.is_some() {
        tracer.until_attached()
    } else {
        tracer
    };
    start();
    let ended = ended(child, &tracer);
    assert!(tracer.wait().success(), "{way:?}: {}", tracer.stderr());
    let said = ended.map_or_else(|| tracer.stdout(), |output| output.stdout);
    let unseen = tracer.records().last().expect("a summary")["unseen"].to_string();
    (String::from_utf8_lossy(&said).into_owned(), unseen)
}

#[test]
#[ignore = "needs root and BPF"]
fn without_holds_nobody_is_followed_and_it_is_said_what_that_costs() {
    let times = rounds(1, 10, 200);
    for _ in 0..times {
        for way in [Way::Run, Way::Trace, Way::All] {
            let (said, unseen) = looking_at_itself(way, &["--no-hold"]);
            assert_eq!(said, "not followed, 0 failed\n", "{way:?}");
            assert!(unseen.contains(" ran for "), "{way:?}: {unseen}");
            assert!(unseen.contains("did not wait until their probes"), "{way:?}: {unseen}");
        }
        let (said, unseen) = looking_at_itself(Way::Run, &[]);
        assert_eq!(said, "followed, 0 failed\n", "{unseen}");
    }
    tried(3 * times, "programs that look whether they are followed, --no-hold");
}

fn in_every_way(stop: &mut impl FnMut(&Tracer)) -> u64 {
    let mut calls = 0;
    for subject in PROGRAMS.map(|name| Subject::new(name, &[])) {
        for way in [Way::Run, Way::Trace, Way::All] {
            assert_waits(&subject, way, &mut *stop);
            calls += CALLS;
        }
    }
    assert_no_probe_is_left();
    calls
}

#[test]
#[ignore = "needs root and BPF"]
fn no_wait_ends_early_when_gpuscope_comes() {
    let calls = (0..rounds(1, 10, 200)).map(|_| in_every_way(&mut |_| ())).sum();
    tried(calls, "waits with a time limit in programs that are traced");
}

#[test]
#[ignore = "needs root and BPF"]
fn no_wait_ends_early_when_gpuscope_stands_still() {
    let mut chance = Chance::new();
    let mut stop = |tracer: &Tracer| {
        std::thread::sleep(patience(Duration::from_millis(300 + chance.below(900))));
        tracer.signal(libc::SIGSTOP);
        std::thread::sleep(STOPPED);
        tracer.signal(libc::SIGCONT);
    };
    let calls = (0..rounds(1, 10, 200)).map(|_| in_every_way(&mut stop)).sum();
    tried(calls, "waits with a time limit while gpuscope stood still for 2.2 s");
}
