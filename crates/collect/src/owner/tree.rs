//! A machine made of files: what tests read instead of `/proc`, `/run` and `/var`.

use std::path::Path;

pub(crate) const DOCKER: &str = "3f1b2c4d5e6f708192a3b4c5d6e7f8090a1b2c3d4e5f60718293a4b5c6d7e8f9";

pub(crate) struct Tree(tempfile::TempDir);

impl Default for Tree {
    fn default() -> Tree {
        Tree(tempfile::tempdir().unwrap())
    }
}

impl Tree {
    pub(crate) fn root(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file below the root.
    pub(crate) fn file(&self, path: &str, bytes: &[u8]) -> &Tree {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
        self
    }

    /// A process with a name that began at a time; in no cgroup.
    pub(crate) fn process(&self, pid: u32, comm: &str, start_ticks: u64) -> &Tree {
        let stat =
            format!("{pid} ({comm}) S 1 {pid} {pid} 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 {start_ticks} 9 10 11\n");
        self.file(&format!("proc/{pid}/stat"), stat.as_bytes())
    }

    pub(crate) fn cgroup(&self, pid: u32, text: &str) -> &Tree {
        self.file(&format!("proc/{pid}/cgroup"), text.as_bytes())
    }

    pub(crate) fn exe(&self, pid: u32, target: &str) -> &Tree {
        std::os::unix::fs::symlink(target, self.root().join(format!("proc/{pid}/exe"))).unwrap();
        self
    }

    pub(crate) fn gone(&self, pid: u32) {
        std::fs::remove_dir_all(self.root().join(format!("proc/{pid}"))).unwrap();
    }
}
