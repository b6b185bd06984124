//! A folder with the traces of several machines, exported as `docs/export.md` says.

use super::made::Made;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

const DAY_NS: u64 = 86_400_000_000_000;
/// A minute begins 25 ms later: 2026-11-01 11:59:59.975 UTC.
const START: u64 = 1_793_534_399_975_000_000;

/// Machines, and when each began to trace, ns since 1970.
pub const HOSTS: [(&str, u64); 3] = [
    ("node-7", START),
    ("node-8", START + DAY_NS),
    ("node-9", START - DAY_NS),
];

pub struct Fleet {
    /// `traces` is in it.
    pub folder: TempDir,
    /// What each of them did.
    pub made: Made,
}

impl Fleet {
    pub fn new() -> Fleet {
        let fleet = Fleet {
            folder: tempfile::tempdir().expect("a folder"),
            made: Made::trace(50),
        };
        for (host, start) in HOSTS {
            let recording = fleet.folder.path().join(host).with_extension("arrows");
            std::fs::write(&recording, fleet.made.recording_since(host, start)).expect("a file");
            export(&recording, &fleet.folder.path().join("traces/"));
        }
        fleet
    }

    /// The calls of libcuda and libcudart: name, count, ns.
    pub fn calls(&self) -> impl Iterator<Item = (&str, u64, u64)> {
        let calls = self.made.calls.iter();
        calls
            .filter(|(name, _)| name.starts_with("cu"))
            .map(|(name, (count, ns))| (name.as_str(), *count, *ns))
    }
}

fn export(recording: &Path, to: &Path) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpuscope"));
    command.arg("export").arg(recording).args(["--to", "parquet", "-o"]);
    let output = command.arg(to).output().expect("gpuscope starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
