//! Programs with libraries that nobody has mapped before: they wait until these are probed, so that each is counted whole.

use super::exporter::Exporter;
use super::support::{Ledger, Program, eventually, sim_folder};
use std::path::Path;
use std::process::Command;

/// The simulated CUDA in files of its own, with its program called `name`.
fn installed(name: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for library in ["libcuda.so.1", "libcudart.so.13"] {
        std::fs::copy(sim_folder().join(library), folder.path().join(library)).expect("a copy");
    }
    std::fs::copy(sim_folder().join("gpusim"), folder.path().join(name)).expect("a copy");
    folder
}

fn run(folder: &Path, name: &str) -> Ledger {
    let script = "exec env LD_LIBRARY_PATH=\"$0\" \"$0/$1\" train 3";
    let ended = Program::start(Command::new("sh").args(["-c", script]).arg(folder).arg(name)).finish();
    assert!(ended.status.success(), "{}", ended.status);
    ended.ledger
}

#[test]
#[ignore = "needs root and BPF"]
fn programs_with_new_libraries_are_counted_from_their_first_call() {
    let exporter = Exporter::start(&["--collect", "api,getters,copies,self"]);
    let calls = |name: &str| exporter.sum("gpuscope_api_calls_total", &[&format!("comm=\"{name}\"")]);
    for number in 0..20 {
        let name = format!("held-{number}");
        let ledger = run(installed(&name).path(), &name);
        let made = exporter.calls_of(&ledger) as f64;
        eventually(&format!("{name}: all of {made} calls are counted"), || {
            calls(&name) == Some(made)
        });
    }
    let late = exporter.sum("gpuscope_lost_records_total", &["reason=\"late_probes\""]);
    assert_eq!(late.unwrap_or(0.0), 0.0);
}
