//! `gpuscope functions`, run as a program: it needs no privileges.

use std::process::{Command, Output};

fn functions(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gpuscope"))
        .arg("functions")
        .args(arguments)
        .output()
        .expect("gpuscope runs")
}

fn listed(arguments: &[&str]) -> String {
    let output = functions(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn functions_by_glob() {
    insta::assert_snapshot!(listed(&["cudaMemcpy*Async"]));
}

#[test]
fn functions_by_class() {
    insta::assert_snapshot!(listed(&["@sync"]));
}

#[test]
fn functions_as_json() {
    insta::assert_snapshot!(listed(&["--json", "cudaMalloc*"]));
}

#[test]
fn functions_that_match_nothing_are_an_error() {
    let output = functions(&["nosuch*"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("\"nosuch*\"") && said.contains("hint: "), "{said}");
}

#[test]
fn a_file_without_anything_known_is_named() {
    let itself = std::env::current_exe().unwrap();
    let itself = itself.to_str().unwrap();
    for (more, words) in [
        (None, "has no function that is known"),
        (Some("cuda*"), "matches \"cuda*\""),
    ] {
        let arguments: Vec<&str> = ["--lib", itself].into_iter().chain(more).collect();
        let output = functions(&arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.contains(itself) && said.contains(words) && said.contains("hint: "),
            "{said}"
        );
    }
}
