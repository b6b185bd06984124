//! Copies of the simulated CUDA that nobody else uses.

use super::{Program, sim_folder};
use std::fs::File;
use std::os::fd::AsRawFd;
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
                copy(&from, &to);
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

/// Shares its blocks where the file system can (reflink).
fn copy(from: &Path, to: &Path) {
    let (source, target) = (File::open(from).expect("a file"), File::create(to).expect("a file"));
    // SAFETY: takes two descriptors
    let shared = unsafe { libc::ioctl(target.as_raw_fd(), libc::FICLONE as _, source.as_raw_fd()) };
    if shared != 0 {
        std::fs::copy(from, to).expect("a copy");
    }
    let permissions = source.metadata().expect("a file").permissions();
    std::fs::set_permissions(to, permissions).expect("a file of ours");
}
