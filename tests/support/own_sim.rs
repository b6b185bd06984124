//! Copies of the simulated CUDA that nobody else uses.

use super::{Program, copy_program, sim_folder};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A folder with the files of `sim/out`, each a file of its own: probes that others have in those are not in these.
pub struct OwnSim(TempDir);

impl OwnSim {
    pub fn new() -> OwnSim {
        let folder = tempfile::tempdir().expect("a folder");
        let files = std::fs::read_dir(sim_folder()).expect("sim/out; sim/build.sh builds it");
        for from in files.map(|file| file.expect("a file").path()) {
            let to = folder.path().join(from.file_name().expect("a name"));
            if from.is_symlink() {
                let target = std::fs::read_link(&from).expect("a link");
                std::os::unix::fs::symlink(target, to).expect("a link");
            } else {
                copy_program(&from, &to);
            }
        }
        OwnSim(folder)
    }

    pub fn folder(&self) -> &Path {
        self.0.path()
    }

    /// One of the files.
    pub fn file(&self, name: &str) -> PathBuf {
        let path = self.folder().join(name);
        assert!(path.exists(), "{} is missing", path.display());
        path
    }

    /// `gpusim ARGUMENTS…` with these libraries.
    pub fn program(&self, arguments: &[&str]) -> Program {
        Program::start_with(self.folder(), Command::new(self.file("gpusim")).args(arguments))
    }
}
