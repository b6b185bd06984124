//! Simulated programs under names of their own, so that one can tell them apart by `comm`.

use super::exporter::Exporter;
use super::support::{Ended, Program, eventually, sim};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Where they lie.
pub struct Workloads {
    folder: TempDir,
    state: PathBuf,
}

impl Workloads {
    /// Seen by the NVML of that exporter.
    pub fn of(exporter: &Exporter) -> Workloads {
        Workloads {
            folder: tempfile::tempdir().expect("a folder"),
            state: exporter.state(),
        }
    }

    /// `gpusim ARGUMENTS…` that is called `name`.
    pub fn command(&self, name: &str, arguments: &str) -> Command {
        let path = self.folder.path().join(name);
        if !path.exists() {
            std::os::unix::fs::symlink(sim("gpusim"), &path).expect("a link");
        }
        let mut command = Command::new(path);
        command.args(arguments.split(' ')).env("GPUSIM_STATE", &self.state);
        command
    }

    /// Runs it to its end.
    pub fn run(&self, name: &str, arguments: &str) -> Ended {
        let ended = Program::start(&mut self.command(name, arguments)).finish();
        assert!(ended.status.success(), "{name} {arguments}: {}", ended.status);
        ended
    }

    /// Starts it; it goes on until it is dropped.
    pub fn start(&self, name: &str, arguments: &str) -> Program {
        Program::start(self.command(name, arguments).stdin(Stdio::null()))
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs short programs until one was seen whole: from then on both libraries have their probes.
    pub fn until_seen_whole(&self, exporter: &Exporter) {
        let mut number = 0;
        eventually("a program is seen from its first call to its last", || {
            number += 1;
            let name = format!("first-{number}");
            let ledger = self.run(&name, "train 1").ledger;
            let calls = exporter.calls_of(&ledger);
            std::thread::sleep(std::time::Duration::from_millis(300));
            exporter.sum("gpuscope_api_calls_total", &[&format!("comm=\"{name}\"")]) == Some(calls as f64)
        });
    }
}
