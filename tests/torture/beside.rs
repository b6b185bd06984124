//! Programs that run beside a gpuscope that watches the machine, or that comes and goes while they run.

use crate::effort::{Chance, all_or, rounds, tried};
use crate::subject::{Subject, assert_no_probe_is_left};
use crate::support::patience;
use crate::tracer::Tracer;
use std::time::Duration;

const NAMES: [&str; 9] = [
    "throwing",
    "fibers",
    "jumping",
    "signals",
    "threads",
    "forks",
    "rewriting",
    "followed",
    "waiting",
];

const WAYS: [[&str; 4]; 2] = [
    ["trace", "--all", "-o", "OUT/t.jsonl"],
    ["leaks", "--all", "-o", "OUT/t.jsonl"],
];

/// Whoever watches all must not change anybody.
#[test]
#[ignore = "needs root and BPF"]
fn nobody_notices_a_gpuscope_that_watches_all() {
    let mut programs = 0;
    for _ in 0..rounds(1, 1, 10, 200) {
        for way in all_or(1, &WAYS) {
            let subjects: Vec<Subject> = NAMES.iter().map(|name| Subject::new(name, &[])).collect();
            let tracer = Tracer::start(&way).until_attached();
            for subject in &subjects {
                let output = subject.start().wait_with_output().expect("it ends");
                subject.assert_as_alone(&output, &format!("beside {way:?}"));
            }
            tracer.signal(libc::SIGINT);
            assert!(tracer.finish().status.success());
            programs += NAMES.len() as u64;
        }
        assert_no_probe_is_left();
    }
    tried(programs, "programs beside a gpuscope that watches all");
}

/// Attached to and let go of at any moment, also while it is stopped.
#[test]
#[ignore = "needs root and BPF"]
fn a_running_program_is_attached_to_and_let_go_of_at_any_moment() {
    let (times, mut chance) = (rounds(3, 6, 60, 2000), Chance::new());
    for _ in 0..times {
        let name = chance.one_of(&["signals", "threads", "waiting", "rewriting"]);
        let subject = Subject::new(name, &["1000"][..usize::from(matches!(name, "signals" | "rewriting"))]);
        let child = subject.start();
        std::thread::sleep(Duration::from_millis(chance.below(300)));
        // being stopped ends system calls with a time limit early, whoever watches
        let stopped = chance.below(3) == 0 && name != "waiting";
        let send = |signal| {
            // SAFETY: plain numbers; the child has not been waited for
            unsafe { libc::kill(child.id() as i32, signal) }
        };
        if stopped {
            send(libc::SIGSTOP);
        }
        let tracer = Tracer::start(&["trace", "-p", &child.id().to_string(), "-o", "OUT/t.jsonl"]);
        std::thread::sleep(patience(Duration::from_millis(chance.below(600))));
        tracer.signal(chance.one_of(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGKILL]));
        drop(tracer);
        if stopped {
            send(libc::SIGCONT);
        }
        subject.assert_as_alone(&child.wait_with_output().expect("it ends"), "attached and let go");
    }
    assert_no_probe_is_left();
    tried(times, "attachments to running programs, ended at random");
}
