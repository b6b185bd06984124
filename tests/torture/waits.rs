//! System calls that wait for so long at most: nobody who comes, holds a thread for a moment or stands still ends one of them.

use crate::effort::{Chance, rounds, tried};
use crate::subject::{Subject, assert_no_probe_is_left};
use crate::tracer::Tracer;
use std::process::Child;
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
    fn start(self, subject: &Subject) -> (Tracer, Option<Child>) {
        let out = ["-o", "OUT/t.jsonl"];
        match self {
            Way::Run => (
                Tracer::start(&[&["run"], &out[..], &["--"], &subject.command()].concat()),
                None,
            ),
            Way::Trace => {
                let child = subject.start();
                let pid = child.id().to_string();
                (Tracer::start(&[&["trace", "-p", &pid], &out[..]].concat()), Some(child))
            }
            Way::All => {
                let tracer = Tracer::start(&[&["trace", "--all"], &out[..]].concat()).until_attached();
                (tracer, Some(subject.start()))
            }
        }
    }
}

/// `stop` is called while the program waits.
fn assert_waits(subject: &Subject, way: Way, stop: impl FnOnce(&Tracer)) {
    let (tracer, child) = way.start(subject);
    stop(&tracer);
    let ended = child.map(|child| child.wait_with_output().expect("it ends"));
    if ended.is_some() {
        tracer.signal(libc::SIGINT);
    }
    let traced = tracer.finish();
    subject.assert_as_alone(ended.as_ref().unwrap_or(&traced), &format!("{way:?}"));
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
        std::thread::sleep(Duration::from_millis(300 + chance.below(900)));
        tracer.signal(libc::SIGSTOP);
        std::thread::sleep(STOPPED);
        tracer.signal(libc::SIGCONT);
    };
    let calls = (0..rounds(1, 10, 200)).map(|_| in_every_way(&mut stop)).sum();
    tried(calls, "waits with a time limit while gpuscope stood still for 2.2 s");
}
