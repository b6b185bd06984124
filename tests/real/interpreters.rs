//! CPython 3.10 to 3.14 as distributions ship them, each in a root directory of its own.
//!
//! `scripts/fetch-interpreters.sh DIR`, then `GPUSCOPE_INTERPRETERS=DIR make test`.

use crate::support::callers::{Callers, Seen, expected_python, python_callers};
use crate::support::sim;
use gpuscope::probe::Sites;
use std::path::{Path, PathBuf};
use std::process::Command;

const ALLOCATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/allocate.py");

fn root(version: &str) -> PathBuf {
    let folder = std::env::var_os("GPUSCOPE_INTERPRETERS");
    let folder = folder.expect("GPUSCOPE_INTERPRETERS; scripts/fetch-interpreters.sh");
    std::fs::canonicalize(Path::new(&folder).join(version)).expect("a version of fetch-interpreters.sh")
}

fn follow(version: &str) -> Seen {
    let root = root(version);
    let place = |name: &str| root.join("tmp").join(name);
    std::fs::copy(sim("libcuda.so.1"), place("libcuda.so.1")).expect("a copy");
    std::fs::copy(ALLOCATE, place("allocate.py")).expect("a copy");
    let callers = Callers::of(&place("libcuda.so.1"), "cuMemAlloc_v2", None, true, Sites::default());
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
