//! Go programs: their stacks move, their threads are not their own, and their functions cannot take a return probe.

use crate::effort::{rounds, tried};
use crate::programs::traced_in_every_way;
use crate::subject::{Subject, folder};
use crate::support::is_inside;
use crate::tracer::Tracer;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Its name in the folder of all programs.
pub const PROGRAM: &str = "collecting";

const PAIRS: usize = 8 * 125;

const HOOKS: &str = r#"
[[library]]
name = "collecting"
match = "collecting"

[[function]]
library = "collecting"
symbol = "main.grow"
args = ["depth: i64"]
returns = "i64"
"#;

/// Builds the program beside the library that it calls.
pub fn build(folder: &Path) {
    let here = folder.display();
    std::fs::write(folder.join("collecting.go"), include_str!("programs/collecting.go")).expect("a file");
    // a linker looks for this name
    let linked = folder.join("libcuda.so");
    std::os::unix::fs::symlink("libcuda.so.1", &linked).expect("a link");
    let output = Command::new("go")
        .args(["build", "-o", "collecting", "collecting.go"])
        .current_dir(folder)
        .env("CGO_ENABLED", "1")
        .env("CGO_CFLAGS", format!("-O1 -I{here}"))
        .env("CGO_LDFLAGS", format!("-L{here}"))
        .env("GO111MODULE", "off")
        .env("GOCACHE", Path::new(env!("CARGO_TARGET_TMPDIR")).join("go"))
        .output()
        .expect("go runs: scripts/setup.sh test installs it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::remove_file(linked).expect("a link");
}

fn traced(options: &[&str]) -> Vec<Value> {
    let subject = Subject::new(PROGRAM, &[]);
    let run = [&["run", "-o", "OUT/t.jsonl"], options, &["--"], &subject.command()[..]].concat();
    let mut tracer = Tracer::start(&run);
    let status = tracer.wait();
    assert_eq!(status.code(), Some(0), "{}", tracer.stderr());
    subject.assert_said(&tracer.stdout(), "traced");
    tracer.records()
}

fn calls_of<'a>(records: &'a [Value], name: &str) -> Vec<&'a Value> {
    records.iter().filter(|record| record["name"] == name).collect()
}

/// Each call through cgo is seen, though stacks move and the collector runs meanwhile.
#[test]
#[ignore = "needs root and BPF"]
fn go_programs_that_call_through_cgo_are_counted_exactly() {
    let mut runs = 0;
    for _ in 0..rounds(1, 1, 10, 200) {
        runs += 1 + traced_in_every_way(PROGRAM, &[]);
        let records = traced(&[]);
        for name in ["cuMemAlloc_v2", "cuMemFree_v2"] {
            assert_eq!(calls_of(&records, name).len(), PAIRS, "{name}");
        }
    }
    tried(runs, "Go programs that call through cgo and collect garbage");
}

/// A return probe would crash it, whoever asks for one, and so would an agent that works on its stack.
#[test]
#[ignore = "needs root and BPF"]
fn a_function_of_go_is_seen_at_its_entry_alone_or_not_at_all() {
    let hooks = folder().join("hooks.toml");
    std::fs::write(&hooks, HOOKS).expect("a file");
    let times = rounds(1, 1, 10, 200);
    for _ in 0..times {
        let records = traced(&["--hooks", hooks.to_str().expect("UTF-8")]);
        let unseen = records.last().expect("a summary")["unseen"].to_string();
        let calls = calls_of(&records, "main.grow");
        if is_inside() {
            assert!(unseen.contains("main.grow: Go's stacks are small and move"), "{unseen}");
            assert!(calls.is_empty());
            continue;
        }
        assert!(
            unseen.contains("main.grow: seen at entry only: Go moves its stacks"),
            "{unseen}"
        );
        assert!(calls.len() >= PAIRS, "{} calls", calls.len());
        assert!(
            calls
                .iter()
                .all(|call| call["duration_us"].is_null() && call["ret"].is_null())
        );
    }
    tried(times, "Go programs whose own functions are hooked");
}
