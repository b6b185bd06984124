//! System calls that wait for so long at most: nobody who comes, holds a thread for a moment or stands still ends one of them.

use crate::effort::{Chance, all_or, rounds, tried, waits};
use crate::subject::{Subject, assert_no_probe_is_left};
use crate::support::eventually;
use crate::tracer::Tracer;
use std::path::PathBuf;
use std::process::{Child, Output};
use std::time::Duration;
use tempfile::TempDir;

const PROGRAMS: [&str; 2] = ["waiting", "waiting-static"];
const KINDS: u64 = 4;
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

/// Tells a program that it may begin: by a file, which it is given the name of. It makes another when it is there.
struct Begin(TempDir);

impl Begin {
    /// What the program does alone, which it may begin at once.
    fn of(program: &str) -> (Subject, Begin) {
        let begin = Begin(tempfile::tempdir().expect("a folder"));
        begin.tell();
        let subject = Subject::new(program, &[begin.file("begin").to_str().expect("UTF-8")]);
        (subject, begin)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn tell(&self) {
        std::fs::write(self.file("begin"), "").expect("a file");
    }

    fn take_back(&self) {
        std::fs::remove_file(self.file("begin")).expect("a file");
        let _ = std::fs::remove_file(self.file("begin.here"));
    }

    fn until_here(&self) {
        eventually("the program has been started", || self.file("begin.here").exists());
    }
}

/// Waits for the program, where gpuscope has not started it, and asks gpuscope to end then.
fn ended(child: Option<Child>, tracer: &Tracer) -> Option<Output> {
    let ended = child?.wait_with_output().expect("it ends");
    tracer.signal(libc::SIGINT);
    Some(ended)
}

/// The program waits while gpuscope comes, and again when it may begin; `stop` is called then.
fn assert_waits((subject, begin): &(Subject, Begin), way: Way, stop: impl FnOnce(&Tracer)) {
    begin.take_back();
    let (mut tracer, child) = way.start(subject, &[]);
    begin.until_here();
    if child.is_some() {
        tracer = tracer.until_attached();
    }
    begin.tell();
    stop(&tracer);
    let ended = ended(child, &tracer);
    let traced = tracer.finish();
    subject.assert_as_alone(ended.as_ref().unwrap_or(&traced), &format!("{way:?}"));
}

/// Runs a program that looks whether it is followed, beside `gpuscope WAY OPTION…`; what it said, and what gpuscope has not seen.
fn looking_at_itself(way: Way, options: &[&str]) -> (String, String) {
    let (subject, begin) = Begin::of("followed_by");
    begin.take_back();
    let (tracer, child) = way.start(&subject, options);
    // what it starts itself it has attached to before
    let mut tracer = if child.is_some() {
        tracer.until_attached()
    } else {
        tracer
    };
    begin.tell();
    let ended = ended(child, &tracer);
    assert!(tracer.wait().success(), "{way:?}: {}", tracer.stderr());
    let said = ended.map_or_else(|| tracer.stdout(), |output| output.stdout);
    let unseen = tracer.records().last().expect("a summary")["unseen"].to_string();
    (String::from_utf8_lossy(&said).into_owned(), unseen)
}

#[test]
#[ignore = "needs root and BPF"]
fn without_holds_nobody_is_followed_and_it_is_said_what_that_costs() {
    let times = rounds(1, 1, 10, 200);
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
    let (mut calls, subjects) = (0, PROGRAMS.map(Begin::of));
    for way in [Way::Run, Way::Trace, Way::All] {
        for subject in all_or(1, &subjects.each_ref()) {
            assert_waits(subject, way, &mut *stop);
            // by its threads, and as many by programs that it starts
            calls += 2 * KINDS * waits();
        }
    }
    assert_no_probe_is_left();
    calls
}

#[test]
#[ignore = "needs root and BPF"]
fn no_wait_ends_early_when_gpuscope_comes() {
    let calls = (0..rounds(1, 1, 10, 200)).map(|_| in_every_way(&mut |_| ())).sum();
    tried(calls, "waits with a time limit in programs that are traced");
}

#[test]
#[ignore = "needs root and BPF"]
fn no_wait_ends_early_when_gpuscope_stands_still() {
    let mut chance = Chance::new();
    let mut stop = |tracer: &Tracer| {
        std::thread::sleep(Duration::from_millis(chance.below(900)));
        tracer.signal(libc::SIGSTOP);
        std::thread::sleep(STOPPED);
        tracer.signal(libc::SIGCONT);
    };
    let calls = (0..rounds(1, 1, 10, 200)).map(|_| in_every_way(&mut stop)).sum();
    tried(calls, "waits with a time limit while gpuscope stood still for 2.2 s");
}
