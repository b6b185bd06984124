//! CPython 3.10 to 3.15 as distributions ship them, each in a root directory of its own.
//!
//! `scripts/fetch-interpreters.sh DIR`, then `GPUSCOPE_INTERPRETERS=DIR make test`.

use crate::support::callers::{Callers, Seen, expected_python, python_callers};
use crate::support::sim;
use gpuscope::probe::Sites;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

const ALLOCATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/allocate.py");

fn root(version: &str) -> PathBuf {
    let folder = std::env::var_os("GPUSCOPE_INTERPRETERS");
    let folder = folder.expect("GPUSCOPE_INTERPRETERS; scripts/fetch-interpreters.sh");
    std::fs::canonicalize(Path::new(&folder).join(version)).expect("a version of fetch-interpreters.sh")
}

/// What the program needs lies in its root directory, in /tmp.
fn furnish(root: &Path) -> PathBuf {
    let place = root.join("tmp");
    std::fs::copy(sim("libcuda.so.1"), place.join("libcuda.so.1")).expect("a copy");
    std::fs::copy(ALLOCATE, place.join("allocate.py")).expect("a copy");
    place
}

fn follow(version: &str) -> Seen {
    let root = root(version);
    let library = furnish(&root).join("libcuda.so.1");
    let callers = Callers::of(&library, "cuMemAlloc_v2", None, true, Sites::default());
    let mut command = Command::new("chroot");
    command.arg(&root).arg(format!("/usr/bin/python{version}"));
    command.args(["/tmp/allocate.py", "/tmp/libcuda.so.1", "3"]);
    callers.follow(&mut command, || {})
}

fn assert_named(version: &str) {
    let seen = follow(version);
    assert!(seen.notes.is_empty(), "{:?}", seen.notes);
    assert_eq!(python_callers(&seen), expected_python(version != "3.10"));
    assert_eq!(seen.sites.len(), 13);
}

#[test]
#[ignore = "needs root, BPF and fetched interpreters"]
fn python_3_10_is_named_to_the_line() {
    assert_named("3.10");
}

#[test]
#[ignore = "needs root, BPF and fetched interpreters"]
fn python_3_11_is_named_to_the_line() {
    assert_named("3.11");
}

#[test]
#[ignore = "needs root, BPF and fetched interpreters"]
fn python_3_12_is_named_to_the_line() {
    assert_named("3.12");
}

#[test]
#[ignore = "needs root, BPF and fetched interpreters"]
fn python_3_13_is_named_to_the_line() {
    assert_named("3.13");
}

#[test]
#[ignore = "needs root, BPF and fetched interpreters"]
fn python_3_14_is_named_to_the_line() {
    assert_named("3.14");
}

#[test]
#[ignore = "needs root, BPF and fetched interpreters"]
fn python_3_15_is_named_to_the_line() {
    assert_named("3.15");
}

/// gpuscope runs in the root directory, too: from outside of it, the program would not find the agent.
const WITHIN: &str = "mount --rbind /proc \"$0/proc\" && mount --rbind /dev \"$0/dev\" && \
     (echo; sleep 2; echo) | chroot \"$0\" /tmp/gpuscope leaks --engine inside --json --top 50 -- \
     /usr/bin/python$1 /tmp/allocate.py /tmp/libcuda.so.1 3";

/// The frames of the program's own file, innermost first, of each call site of a report of `leaks`.
fn callers_of(report: &Value) -> BTreeSet<Vec<String>> {
    let sites = report.pointer("/processes/0/sites").and_then(Value::as_array);
    let stack = |site: &Value| {
        let frames = site["stack"].as_array().into_iter().flatten();
        let own = frames.filter(|frame| frame["file"].as_str().is_some_and(|file| file.ends_with("allocate.py")));
        let told = |frame: &Value| {
            format!(
                "{} allocate.py:{}",
                frame["function"].as_str().unwrap_or("?"),
                frame["line"]
            )
        };
        own.map(told).collect()
    };
    sites.expect("sites").iter().map(stack).collect()
}

fn from_inside(version: &str) -> BTreeSet<Vec<String>> {
    let root = root(version);
    std::fs::copy(env!("CARGO_BIN_EXE_gpuscope"), furnish(&root).join("gpuscope")).expect("a copy");
    for folder in ["proc", "dev"] {
        std::fs::create_dir_all(root.join(folder)).expect("a folder");
    }
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", WITHIN]).arg(&root).arg(version);
    let output = command.output().expect("unshare");
    let said = String::from_utf8_lossy(&output.stdout);
    let report = said.lines().last().and_then(|line| serde_json::from_str(line).ok());
    let error = String::from_utf8_lossy(&output.stderr);
    callers_of(&report.unwrap_or_else(|| panic!("{version}: {said}{error}")))
}

/// With the C libraries that they come with, of 2.35 to the newest.
#[test]
#[ignore = "needs root and fetched interpreters"]
fn from_inside_each_version_is_named_to_the_line() {
    for version in ["3.10", "3.11", "3.12", "3.13", "3.14", "3.15"] {
        assert_eq!(from_inside(version), expected_python(version != "3.10"), "{version}");
    }
}
