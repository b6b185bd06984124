//! Recordings, JSON lines and hook files with changed bytes: a message and a status, in bounded memory.

use crate::effort::{Chance, rounds, tried};
use crate::support::{Gpuscope, sim_text};
use crate::tracer::program;
use std::path::Path;
use std::process::Command;

const READERS: [&[&str]; 8] = [
    &["report", "FILE"],
    &["report", "FILE", "--json"],
    &["report", "FILE", "--md"],
    &["report", "FILE", "--html", "FILE.html"],
    &["timeline", "FILE"],
    &["diff", "FILE", "FILE"],
    &["export", "FILE", "-o", "FILE.pftrace"],
    &["export", "FILE", "-o", "FILE.csv"],
];
/// Far more than the whole recording needs.
const MEMORY: &str = "--as=2147483648";

/// A recording of a real run.
fn recording() -> Vec<u8> {
    let gpusim = sim_text("gpusim");
    let trace = Gpuscope::record(&["--stacks", "all"], &[&gpusim, "train", "20"])
        .finish()
        .ok();
    std::fs::read(trace.folder().join("t.arrows")).expect("a recording")
}

/// Replaces words, cuts, repeats or removes a part.
fn forge(bytes: &[u8], chance: &mut Chance) -> Vec<u8> {
    let mut forged = bytes.to_vec();
    for _ in 0..1 + chance.below(8) {
        let place = chance.below(forged.len() as u64) as usize;
        let end = (place + 1 + chance.below(64) as usize).min(forged.len());
        match chance.below(5) {
            0 => forged[place] ^= 1 << chance.below(8),
            1 => forged[place..end].fill(chance.one_of(&[0, 0x7f, 0x80, 0xff])),
            2 => forged.truncate(place.max(1)),
            3 => drop(forged.drain(place..end)),
            _ => forged
                .splice(place..place, bytes[..end - place].to_vec())
                .for_each(drop),
        }
        if forged.is_empty() {
            forged.push(0);
        }
    }
    forged
}

fn assert_survives(reader: &[&str], file: &Path) {
    let file = file.to_str().expect("UTF-8");
    let mut command = Command::new("prlimit");
    command.args([MEMORY, "--cpu=60", "--"]).arg(program());
    command.args(reader.iter().map(|part| part.replace("FILE", file)));
    let output = command.output().expect("it runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    let kept = std::env::temp_dir().join("forged.kept");
    if !matches!(output.status.code(), Some(0..=3)) || stderr.contains("panicked") {
        std::fs::copy(file, &kept).expect("a copy");
        panic!("{reader:?}: {}: {stderr}\nkept as {}", output.status, kept.display());
    }
}

#[test]
#[ignore = "needs root and BPF"]
fn forged_recordings_are_refused_or_read() {
    let (times, mut chance) = (rounds(10, 40, 2000, 50_000), Chance::new());
    let (whole, folder) = (recording(), tempfile::tempdir().expect("a folder"));
    for _ in 0..times {
        let file = folder.path().join("t.arrows");
        std::fs::write(&file, forge(&whole, &mut chance)).expect("a file");
        assert_survives(chance.one_of(&READERS), &file);
    }
    tried(times, "forged recordings");
}

#[test]
#[ignore = "needs root and BPF"]
fn forged_hook_files_are_refused_or_read() {
    let (times, mut chance) = (rounds(10, 40, 2000, 50_000), Chance::new());
    let folder = tempfile::tempdir().expect("a folder");
    let whole = include_bytes!("../../hooks/pytorch.toml");
    for _ in 0..times {
        let file = folder.path().join("hooks.toml");
        std::fs::write(&file, forge(whole, &mut chance)).expect("a file");
        assert_survives(&["functions", "--explain", "FILE"], &file);
    }
    tried(times, "forged hook files");
}
