//! What lies in `deploy/` fits what `gpuscope serve` says, and the tools that it is for accept it.
//!
//! Tests that need those tools (`scripts/fetch-tools.sh`) are ignored, so that `cargo test` needs none.

mod dashboard;
mod kubernetes;
mod rendered;
mod rules;
mod service;

use crate::expression;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A file of the repository.
fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn read(name: &str) -> String {
    std::fs::read_to_string(file(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).expect("YAML")
}

/// Runs a program that `scripts/fetch-tools.sh` fetched, in the repository.
fn tool(name: &str, arguments: &[&str]) -> Output {
    let path = file("target/tools/bin").join(name);
    assert!(path.exists(), "{name} is missing: scripts/fetch-tools.sh fetches it");
    run(Command::new(path).args(arguments))
}

fn run(command: &mut Command) -> Output {
    let output = command.current_dir(file("")).output();
    output.unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Both outputs of a program that must have succeeded.
fn succeeded(output: &Output) -> String {
    let said = said(output);
    assert!(output.status.success(), "{said}");
    said
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn strings<'a>(value: &'a Value, key: &str) -> Vec<&'a str> {
    let items = value.as_array().expect("a list");
    items.iter().filter_map(|item| item[key].as_str()).collect()
}
