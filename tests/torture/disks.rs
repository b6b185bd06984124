//! Disks that fail while they are written to: an error of the device, a quota, no room. It costs the output, which is whole as far
//! as it goes, and not the program; and it is said.

mod counters;
mod pages;

use crate::effort::{Chance, rounds, tried};
use crate::starved::{WAYS, assert_ran_or_refused};
use crate::subject::{Subject, assert_no_probe_is_left};
use crate::support::mounted::Mounted;
use crate::tracer::Tracer;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// (errno, as the C library puts it into words)
const ERRORS: [(i32, &str); 3] = [
    (libc::EIO, "Input/output error"),
    (libc::EDQUOT, "quota exceeded"),
    (libc::ENOSPC, "No space left on device"),
];

/// A disk that takes so many bytes, and from then on answers with `errno`.
fn failing_after(bytes: u64, errno: i32) -> Mounted {
    let words = [bytes.to_string(), errno.to_string()];
    Mounted::by(
        "failing",
        include_str!("../support/failing.c"),
        &words.each_ref().map(OsStr::new),
    )
}

/// Whether each line that lies there is one; of a recording, whether it can be read as far as it goes, and says that it was cut off
/// where it `failed`.
fn assert_whole(file: &Path, failed: bool, how: &str) {
    let Ok(bytes) = std::fs::read(file) else { return };
    if file.extension().is_some_and(|name| name == "jsonl") {
        let text = String::from_utf8(bytes).expect("UTF-8");
        assert!(text.is_empty() || text.ends_with('\n'), "{how}: half a line");
        let is_json = |line: &str| serde_json::from_str::<serde_json::Value>(line).is_ok();
        assert!(text.lines().all(is_json), "{how}: {text}");
        return;
    }
    let report = Tracer::start(&["report", file.to_str().expect("UTF-8")]).finish();
    let said = String::from_utf8_lossy(&report.stderr).into_owned();
    let refused = ["is empty", "it is no recording", "nothing in "];
    assert!(
        report.status.success() || refused.iter().any(|words| said.contains(words)),
        "{how}: {said}"
    );
    let is_read = report.status.success();
    assert!(!is_read || said.contains(" was cut off: ") == failed, "{how}: {said}");
}

/// Whether the disk was full before all was written.
fn recorded_on(bytes: u64, (errno, words): (i32, &str), way: &[&str]) -> bool {
    let failing = failing_after(bytes, errno);
    let disk = failing.folder();
    let way: Vec<String> = way
        .iter()
        .map(|part| part.replace("OUT", disk.to_str().expect("UTF-8")))
        .collect();
    let subject = Subject::new("signals", &[]);
    let mut arguments: Vec<&str> = way.iter().map(String::as_str).chain(["--"]).collect();
    arguments.extend(subject.command());
    let output = Tracer::start(&arguments).finish();
    let (stderr, how) = (
        String::from_utf8_lossy(&output.stderr).into_owned(),
        format!("{bytes} bytes, {words}, {way:?}"),
    );
    assert_ran_or_refused(&subject, &output, &how);
    let file = PathBuf::from(way.last().expect("a file"));
    let failed = stderr.contains("failed to write ");
    assert_whole(&file, failed, &how);
    assert!(
        !failed || stderr.contains(words) && stderr.contains("\nhint: "),
        "{how}: {stderr}"
    );
    assert!(
        failed != output.status.success(),
        "{how}: {:?}, {stderr}",
        output.status
    );
    failed
}

#[test]
#[ignore = "needs root and BPF"]
fn a_disk_that_fails_costs_the_output_and_says_so() {
    let (mut chance, mut runs, mut failures) = (Chance::new(), 0, 0);
    for round in 0..rounds(1, 1, 20, 300) {
        for error in ERRORS {
            for way in WAYS {
                // the first with no room at all
                let bytes = if round == 0 { 0 } else { chance.below(32 << 10) };
                failures += u64::from(recorded_on(bytes, error, way));
                runs += 1;
            }
        }
    }
    assert_no_probe_is_left();
    assert!(failures > 0, "each had room enough");
    println!("{failures} of {runs} ran out");
    tried(runs, "runs on a disk that fails (EIO, EDQUOT, ENOSPC)");
}
