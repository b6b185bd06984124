//! Where next to nothing is allowed: in a container without capabilities, whose profile refuses what traces others, whose root
//! cannot be written and whose other file systems run no code, each call is counted from inside, or it is said what is missing.

use crate::inside::Public;
use crate::support::{compile, text};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::{Command, Output};

const ROOM: &str = "mount -t tmpfs -o noexec none /tmp; mount -t tmpfs -o noexec none /dev/shm";
const NO_ROOM: &str = "mount -t tmpfs -o ro none /tmp; mount -t tmpfs -o ro none /dev/shm";

/// `gpuscope ARGUMENTS…` in such a container, with these other file systems.
fn contained(room: &str, arguments: &[&str]) -> Output {
    let public = Public::new();
    compile(&public.path(""), "confined", include_str!("../support/confined.c"), &[]);
    let script = format!(
        "set -e; mount --bind \"$0\" /mnt; cd /mnt; {room}
        mount -o remount,bind,ro /mnt; mount -o remount,bind,ro /; test ! -w /etc; test ! -w /mnt
        exec setpriv --inh-caps=-all --bounding-set=-all --no-new-privs ./confined ./gpuscope \"$@\""
    );
    let mut container = Command::new("unshare");
    container
        .args([
            "--user",
            "--map-root-user",
            "--mount",
            "--pid",
            "--fork",
            "--mount-proc",
        ])
        .args(["sh", "-c", &script])
        .arg(public.path(""))
        .args(arguments)
        .env_remove("XDG_RUNTIME_DIR")
        .env_remove("TMPDIR")
        .env_remove("GPUSCOPE_ENGINE")
        .env("LD_LIBRARY_PATH", "/mnt");
    container.output().expect("unshare")
}

fn words(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json(text: &str, begin: &str) -> Vec<Value> {
    let lines = text.lines().filter_map(|line| line.strip_prefix(begin));
    lines
        .filter(|line| line.starts_with('{'))
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// What the programs counted themselves of the runtime, but for what they call when they have said so.
fn own_counts(stdout: &str) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for program in json(stdout, "GPUSIM ") {
        for (name, calls) in program["calls"].as_object().expect("calls") {
            *counts.entry(name.clone()).or_default() += calls.as_u64().expect("a count");
        }
    }
    counts.retain(|name, _| !name.starts_with("__"));
    counts
}

fn told_counts(summary: &Value) -> BTreeMap<String, u64> {
    let functions = summary["functions"].as_array().expect("functions").iter();
    let runtime = functions.filter(|function| function["layer"] == "runtime");
    let counts = runtime.map(|function| (text(function, "name"), function["calls"].as_u64().unwrap_or(0)));
    counts
        .filter(|(name, calls)| *calls > 0 && !name.starts_with("__"))
        .collect()
}

#[test]
#[ignore = "needs root, and the simulated CUDA"]
fn every_call_is_counted() {
    for scenario in [
        &["train", "20"][..],
        &["late-dlopen"],
        &["threads", "8", "50"],
        &["fork"],
        &["static"],
    ] {
        let run = [&["run", "-q", "--summary", "json", "--", "./gpusim"], scenario].concat();
        let done = contained(ROOM, &run);
        let (stdout, stderr) = (words(&done.stdout), words(&done.stderr));
        assert_eq!(done.status.code(), Some(0), "{scenario:?}: {stderr}");
        let summary = json(&stderr, "").pop().expect("a summary");
        assert_eq!(summary["attach"], "inside");
        assert!(!own_counts(&stdout).is_empty(), "{stdout}");
        assert_eq!(
            told_counts(&summary),
            own_counts(&stdout),
            "{scenario:?}: {}",
            summary["unseen"]
        );
    }
}

#[test]
#[ignore = "needs root, and the simulated CUDA"]
fn recordings_are_made_and_leaks_are_found() {
    let done = contained(ROOM, &["record", "-o", "/tmp/t.arrows", "--", "./gpusim", "leak", "50"]);
    assert_eq!(done.status.code(), Some(0), "{}", words(&done.stderr));
    let done = contained(
        ROOM,
        &["leaks", "--fail-on", "leak=10MiB", "--", "./gpusim", "leak", "50"],
    );
    assert_eq!(done.status.code(), Some(3), "{}", words(&done.stderr));
}

#[test]
#[ignore = "needs root, and the simulated CUDA"]
fn where_nothing_may_be_written_the_command_is_not_begun_and_the_cure_is_said() {
    let done = contained(NO_ROOM, &["run", "-q", "--", "./gpusim", "train", "1"]);
    let (stdout, stderr) = (words(&done.stdout), words(&done.stderr));
    assert_eq!((done.status.code(), stdout.as_str()), (Some(125), ""), "{stderr}");
    assert!(
        stderr.contains("found no folder") && stderr.contains("hint: set TMPDIR"),
        "{stderr}"
    );
}
