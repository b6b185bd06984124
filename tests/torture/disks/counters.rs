//! The counters that `serve` leaves to the next one, on a disk that has no room for them, and has some later.

use super::{ERRORS, failing_after};
use crate::effort::{Chance, rounds, tried};
use crate::subject::{Subject, assert_no_probe_is_left};
use crate::tracer::{Tracer, program};
use std::path::Path;
use std::process::Command;

const SERVE: [&str; 5] = ["serve", "--listen", "127.0.0.1:0", "--collect", "api,self"];

/// What one says that leaves its counters in `folder`, after a program of `subject`'s has run.
fn served(folder: &Path, subject: &Subject) -> String {
    let mut command = Command::new(program());
    let mut serve = Tracer::start_by(command.env("STATE_DIRECTORY", folder), &SERVE).until_attached();
    let output = subject.start().wait_with_output().expect("it ends");
    subject.assert_as_alone(&output, "beside serve");
    serve.signal(libc::SIGTERM);
    let status = serve.wait();
    assert!(status.success(), "{status:?}: {}", serve.stderr());
    serve.assert_session_is_over();
    serve.stderr()
}

#[test]
#[ignore = "needs root and BPF"]
fn counters_that_found_no_room_are_left_by_the_next_that_watches_all() {
    let (mut chance, times) = (Chance::new(), rounds(1, 1, 10, 100));
    let subject = Subject::new("jumping", &[]);
    for _ in 0..times {
        for (errno, words) in ERRORS {
            let disk = failing_after(chance.below(64), errno);
            let file = disk.folder().join("counters.json");
            let refused = served(&disk.folder(), &subject);
            let told = refused.lines().find(|line| line.contains("counters will begin anew: "));
            assert!(told.is_some_and(|line| line.contains(words)), "{words}: {refused}");
            assert!(!file.exists(), "{words}: half a file is left");

            disk.signal(libc::SIGUSR1);
            let written = served(&disk.folder(), &subject);
            assert!(!written.contains("begin anew"), "{words}: {written}");
            assert!(file.exists(), "{words}: {written}");
            let next = served(&disk.folder(), &subject);
            assert!(next.contains("counters go on from the last run: "), "{words}: {next}");
        }
    }
    assert_no_probe_is_left();
    tried(times * 3, "counters of serve on a disk that is full and has room again");
}
