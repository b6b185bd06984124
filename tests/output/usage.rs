//! Wrong usage: what is said, and the exit status, which for `run` is none that the command could have had.

use std::process::Command;

/// Exit status and what was said on stderr.
fn refusal(words: &[&str]) -> (Option<i32>, String) {
    // what is not refused may run until somebody ends it
    let output = Command::new("timeout")
        .args(["60", env!("CARGO_BIN_EXE_gpuscope")])
        .args(words)
        .output()
        .expect("gpuscope runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{words:?}");
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

/// What is said on stdout.
fn said(words: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_gpuscope"))
        .args(words)
        .output()
        .expect("gpuscope runs");
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn a_version_is_one_line_with_its_commit_and_verbose_says_all() {
    let short = said(&["--version"]);
    let start = concat!("gpuscope ", env!("CARGO_PKG_VERSION"), " (");
    assert!(short.starts_with(start) && short.lines().count() == 1, "{short}");
    let long = said(&["--version", "--verbose"]);
    assert!(long.starts_with(&short), "{long}");
    let facts: Vec<&str> = long.lines().skip(1).filter_map(|line| line.split(':').next()).collect();
    assert_eq!(facts, ["commit", "dirty", "rustc", "features", "target"]);
}

/// Options that are refused before anything is loaded, and a part of what is said.
const REFUSED: [(&[&str], &str); 14] = [
    (&["--phases"], "hint: -o FILE.jsonl"),
    (&["--fail-on", "errors"], "hint: error, xid, leak, leak=100MiB"),
    (
        &["--fail-on", "error", "--layer", "kernel"],
        "hint: --layer runtime,driver",
    ),
    (&["--fail-on", "leak=5"], "--fail-on leak=5 needs a unit, such as 5MiB"),
    (&["--fail-on", "leak", "--filter", "@alloc"], "hint: drop --filter"),
    (&["--stacks", "copy"], "possible values: alloc, launch, sync, all, none"),
    (&["--stacks", "alloc", "--filter", "@alloc"], "hint: drop --filter"),
    (&["--stacks", "sync", "--filter", "@sync"], "hint: drop --filter"),
    (&["--stacks", "all", "--layer", "runtime"], "hint: drop --layer"),
    (&["--layer", "gpu"], "hint: runtime, driver, kernel or all"),
    (&["--format", "xml"], "possible values: text, jsonl"),
    (
        &["--min-duration", "10"],
        "gpuscope: --min-duration needs a unit: 10us, 10ms or 10s",
    ),
    (
        &["--ring-size", "16"],
        "gpuscope: --ring-size needs a unit, such as 16MiB",
    ),
    (&["--filter", "@aloc"], "hint: one of alloc"),
];

#[test]
fn run_ends_with_125_and_names_the_cure() {
    for (options, cure) in REFUSED {
        let (status, said) = refusal(&[&["run"], options, &["--", "echo", "the command ran"]].concat());
        assert_eq!(status, Some(125), "{options:?}: {said}");
        assert!(said.contains(cure), "{options:?}: {said}");
    }
}

#[test]
fn other_commands_end_with_2_and_name_the_cure() {
    for (options, cure) in REFUSED {
        let (status, said) = refusal(&[&["trace", "--all"], options].concat());
        assert_eq!(status, Some(2), "{options:?}: {said}");
        assert!(said.contains(cure), "{options:?}: {said}");
    }
    for (words, cure) in [
        (&["trace"][..], "hint: -p PID, or --all"),
        (&["leaks"], "hint: -p PID, --all for every process, or -- CMD"),
        (&["leaks", "-p", "1", "--all"], "cannot be used with"),
        (
            &["leaks", "--all", "--interval", "1"],
            "gpuscope: --interval needs a unit: 1s or 1min",
        ),
        (&["leaks", "--all", "--interval", "1ms"], "at least 100ms"),
        (&["leaks", "--all", "--fail-on", "error"], "hint: leak, or leak=100MiB"),
        (&["leaks", "--all", "--stacks", "sync"], "possible values: alloc, none"),
        (&["functions", "@aloc"], "hint: one of alloc"),
    ] {
        let (status, said) = refusal(words);
        assert_eq!(status, Some(2), "{words:?}: {said}");
        assert!(said.contains(cure), "{words:?}: {said}");
    }
}

#[test]
fn leaks_with_a_command_ends_with_125_as_run_does() {
    for (options, cure) in [
        (&["-p", "1"][..], "cannot be used with"),
        (&["--all"], "cannot be used with"),
        (&["--duration", "1s"], "cannot be used with"),
        (&["--fail-on", "error"], "hint: leak, or leak=100MiB"),
        (&["--layer", "driver"], "unexpected argument"),
        (&["-o", "/nonexistent/x"], "hint: is its directory there"),
        (&["--hooks", "/nonexistent.toml"], "failed to read the hook file"),
    ] {
        let (status, said) = refusal(&[&["leaks"], options, &["--", "echo", "the command ran"]].concat());
        assert_eq!(status, Some(125), "{options:?}: {said}");
        assert!(said.contains(cure), "{options:?}: {said}");
    }
}

#[test]
fn a_name_that_says_something_else_is_refused_and_no_file_is_made() {
    let directory = tempfile::tempdir().expect("a directory");
    for (command, name, cure) in [
        (&["record"][..], "t.jsonl", "gpuscope run -o FILE.jsonl"),
        (&["record"], "t.pftrace", "gpuscope export"),
        (&["run"], "t.csv", "gpuscope export"),
        (&["run"], "t.parquet", "gpuscope export"),
        (&["run", "--format", "jsonl"], "t.arrows", "this writes JSON lines"),
        (&["leaks"], "t.arrows", "FILE.jsonl for JSON lines"),
    ] {
        let path = directory.path().join(name);
        let path_text = path.to_str().expect("UTF-8");
        let (status, said) = refusal(&[command, &["-o", path_text, "--", "echo", "the command ran"]].concat());
        assert_eq!((status, path.exists()), (Some(125), false), "{name}: {said}");
        assert!(said.contains(cure) && said.contains("the name says"), "{said}");
    }
}

#[test]
fn a_hook_file_that_is_no_file_is_refused_at_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let pipe = directory.path().join("pipe.toml");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .expect("mkfifo runs")
            .success()
    );
    let long = directory.path().join("long.toml");
    std::fs::write(&long, "#".repeat((1 << 20) + 1)).expect("a file");
    for (path, why) in [
        (pipe.as_path(), "it is no regular file\nhint: "),
        (std::path::Path::new("/dev/zero"), "it is no regular file\nhint: "),
        (&long, "it is longer than 1 MiB"),
    ] {
        let (status, said) = refusal(&["functions", "--hooks", path.to_str().expect("UTF-8")]);
        assert_eq!(status, Some(1), "{said}");
        assert!(said.contains(why), "{said}");
    }
}

/// `ulimit -f`: the kernel ends whoever writes more and does not handle the signal.
#[test]
fn a_file_that_may_not_become_longer_is_an_error() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("t.html");
    let recording = directory.path().join("t.jsonl");
    let line = "{\"type\":\"meta\",\"tool\":\"gpuscope\",\"start_monotonic_ns\":0,\"start_unix_ns\":0}\n";
    let call = "{\"ts\":0.1,\"type\":\"userspace\",\"name\":\"cuInit\",\"pid\":7,\"duration_us\":1.000}\n";
    std::fs::write(&recording, [line, call].concat()).expect("a file");
    let output = Command::new("prlimit")
        .args(["--fsize=1000", env!("CARGO_BIN_EXE_gpuscope"), "report"])
        .arg(&recording)
        .arg("--html")
        .arg(&path)
        .output()
        .expect("prlimit runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), path.exists()), (Some(1), false), "{said}");
    assert!(said.contains("File too large"), "{said}");
}

#[test]
fn a_refused_output_file_is_not_made() {
    let directory = tempfile::tempdir().expect("a directory");
    for name in ["t.jsonl", "t.json", "t.pftrace", "t.arrows"] {
        let path = directory.path().join(name);
        let path_text = path.to_str().expect("UTF-8");
        let (status, said) = refusal(&["trace", "--all", "--filter", "cuNothing", "-o", path_text]);
        assert_eq!((status, path.exists()), (Some(2), false), "{name}: {said}");
    }
}

#[cfg(feature = "serve")]
#[test]
fn serve_names_the_place_of_each_mistake_in_its_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("gpuscope.toml");
    std::fs::write(&path, "colect = [\"api\"]\n\nretain = 5\n[otlp]\nurl = \"x\"\n").expect("a file");
    let path = path.to_str().expect("UTF-8");
    let (status, said) = refusal(&["serve", "--config", path, "--check-config"]);
    assert_eq!(status, Some(2), "{said}");
    for (place, cure) in [
        ("1:1", "hint: did you mean collect?"),
        ("3:10", "hint: a number and s, min, h or d"),
        ("5:7", "hint: such as http://"),
    ] {
        let line = said.lines().find(|line| line.contains(&format!("{path}:{place}: ")));
        assert!(line.is_some_and(|line| line.contains(cure)), "{place}: {said}");
    }
}

#[cfg(feature = "serve")]
#[test]
fn serve_ends_with_2_and_names_the_cure() {
    for (words, cure) in [
        (
            &["serve", "--retain", "3600"][..],
            "--retain: \"3600\" is no duration; hint: a number and s, min, h or d",
        ),
        (
            &["serve", "--collect", "memroy"],
            "--collect: unknown collector \"memroy\"; hint: did you mean memory?",
        ),
        (
            &["serve", "--listen", "localhost"],
            "--listen: \"localhost\" is no address with a port; hint: an IP address",
        ),
        (
            &["serve", "--metrics-addr", ":9748"],
            "hint: 127.0.0.1:9748 for this machine only",
        ),
        (
            &["serve", "--labels", "comm,cgroup"],
            "--labels: \"cgroup\" is no label; hint: comm, exe",
        ),
        (
            &["serve", "--otlp", "collector:4317"],
            "hint: such as http://127.0.0.1:4318/v1/metrics",
        ),
        (
            &["serve", "--config", "/nonexistent.toml"],
            "hint: does --config name a file that gpuscope may read?",
        ),
        (
            &["serve", "--check-config", "--top-kernels", "x"],
            "hint: a whole number from 0 to 1000",
        ),
    ] {
        let (status, said) = refusal(words);
        assert_eq!(status, Some(2), "{words:?}: {said}");
        assert!(said.contains(cure), "{words:?}: {said}");
    }
}

#[cfg(not(feature = "serve"))]
#[test]
fn a_build_without_an_exporter_says_so() {
    let (status, said) = refusal(&["serve"]);
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("hint: cargo build with the feature serve"), "{said}");
}
