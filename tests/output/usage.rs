//! Wrong usage: what is said, and the exit status, which for `run` is none that the command could have had.

use std::process::Command;

/// Exit status and what was said on stderr.
fn refusal(words: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_gpuscope"))
        .args(words)
        .output()
        .expect("gpuscope runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{words:?}");
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

/// Options that are refused before anything is loaded, and a part of what is said.
const REFUSED: [(&[&str], &str); 16] = [
    (&["--phases"], "hint: in JSON lines"),
    (&["--fail-on", "error"], "hint: leak, or leak=100MiB"),
    (&["--fail-on", "leak=5"], "such as 16MiB"),
    (&["--fail-on", "leak", "--filter", "@alloc"], "hint: drop --filter"),
    (&["--stacks", "copy"], "possible values: alloc, launch, sync, all, none"),
    (&["--stacks", "alloc", "--filter", "@alloc"], "hint: drop --filter"),
    (&["--stacks", "sync", "--filter", "@sync"], "hint: drop --filter"),
    (&["--stacks", "all", "--layer", "runtime"], "hint: drop --layer"),
    (&["--layer", "kernel"], "hint: --layer runtime,driver"),
    (&["--format", "chrome"], "hint: -o FILE.jsonl"),
    (&["--format", "perfetto"], "hint: -o FILE.jsonl"),
    (&["--format", "xml"], "possible values: text, jsonl"),
    (&["-o", "/nonexistent/x.pftrace"], "hint: -o FILE.jsonl"),
    (&["--min-duration", "10"], "such as 10us"),
    (&["--ring-size", "16"], "such as 16MiB"),
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
        (&["leaks", "--all", "--interval", "1"], "such as 10us"),
        (&["leaks", "--all", "--interval", "1ms"], "at least 100ms"),
        (&["leaks", "--all", "--fail-on", "error"], "hint: leak, or leak=100MiB"),
        (&["leaks", "--all", "--stacks", "sync"], "possible values: alloc, none"),
        (&["functions", "@aloc"], "hint: one of alloc"),
        (&["functions", "--kernel"], "hint: gpuscope functions"),
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
fn a_refused_output_file_is_not_made() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("t.json");
    let (status, _) = refusal(&["trace", "--all", "-o", path.to_str().expect("UTF-8")]);
    assert_eq!((status, path.exists()), (Some(2), false));
}
