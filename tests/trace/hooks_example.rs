//! docs/hooks-reference.md shows what gpuscope really prints for its example.

use crate::support::{ENGINE, engine, patchable};
use std::path::Path;
use std::process::{Command, Output};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn compile(directory: &Path, arguments: &[&str]) {
    let status = Command::new("gcc")
        .current_dir(directory)
        .args(["-O1", "-Wall", "-Wextra", "-Werror"])
        .args(patchable())
        .args(arguments)
        .status();
    assert!(status.expect("gcc runs").success(), "{arguments:?}");
}

/// The example's library and program, in `directory`.
fn build(directory: &Path) {
    let source = |name: &str| format!("{ROOT}/docs/examples/{name}");
    compile(
        directory,
        &["-shared", "-fPIC", "-o", "libmylib.so", &source("mylib.c")],
    );
    let rpath = format!("-Wl,-rpath,{}", directory.display());
    compile(
        directory,
        &["-o", "use_mylib", &source("use_mylib.c"), "-L.", "-lmylib", &rpath],
    );
}

fn gpuscope(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpuscope"));
    command.current_dir(directory).args(arguments).env(ENGINE, engine());
    command.output().expect("gpuscope runs")
}

/// A line without what differs from run to run: time, process, addresses, durations, and what was left in registers.
fn lasting(line: &str) -> String {
    let (_, call) = line.split_once("   ").expect("a line of text");
    let call = call.split_once(", arg2=").map_or(call, |(known, _)| known);
    let mut out = String::new();
    for (index, part) in call.split("0x").enumerate() {
        let digits = part.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(part.len());
        // small numbers are the example's own
        match (index, digits) {
            (0, _) => out.push_str(part),
            (_, ..3) => out.push_str(&format!("0x{part}")),
            _ => out.push_str(&format!("0x…{}", &part[digits..])),
        }
    }
    out.split(" <").next().unwrap_or_default().to_owned()
}

fn documented() -> Vec<String> {
    let document = include_str!("../../docs/hooks-reference.md");
    let (_, after) = document.split_once("-- ./use_mylib\n").expect("the example's command");
    let (block, _) = after.split_once("```").expect("the end of its output");
    block.lines().map(lasting).collect()
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn the_example_prints_what_the_document_shows() {
    let directory = tempfile::tempdir().expect("a directory");
    build(directory.path());
    let hooks = format!("{ROOT}/docs/examples/mylib.toml");
    let arguments = ["run", "--hooks", &hooks, "--summary", "none", "--", "./use_mylib"];
    let output = gpuscope(directory.path(), &arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let lines: Vec<String> = String::from_utf8_lossy(&output.stdout).lines().map(lasting).collect();
    assert_eq!(lines, documented());
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_function_that_the_library_lacks_is_named_and_the_rest_is_traced() {
    let directory = tempfile::tempdir().expect("a directory");
    build(directory.path());
    let hooks = std::fs::read_to_string(format!("{ROOT}/docs/examples/mylib.toml")).expect("the example");
    std::fs::write(
        directory.path().join("hooks.toml"),
        hooks.replace("\"my_open\"", "\"my_opn\""),
    )
    .expect("a file");
    let output = gpuscope(directory.path(), &["run", "--hooks", "hooks.toml", "--", "./use_mylib"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("libmylib.so: has no function my_opn\n"), "{said}");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).lines().count(),
        documented().len() - 2
    );
}
