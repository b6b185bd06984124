//! A file system of a test's own, behind a small program; gone when dropped.

use super::compile;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A mounted file system.
pub struct Mounted {
    server: Child,
    folder: TempDir,
}

impl Mounted {
    /// `source`, behind what all of these share, is told where to mount it and the other `arguments`.
    pub fn by(name: &str, source: &str, arguments: &[&OsStr]) -> Mounted {
        let folder = tempfile::tempdir().expect("a folder");
        let source = format!("{}{source}", include_str!("fuse.h"));
        let program = compile(folder.path(), name, &source, &[]);
        let mounted = folder.path().join("mounted");
        std::fs::create_dir(&mounted).expect("a folder");
        let mut server = Command::new(program)
            .arg(&mounted)
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut line = String::new();
        let stdout = server.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("it speaks");
        assert_eq!(line, "ok\n", "FUSE is needed: /dev/fuse, and a kernel with it");
        Mounted { server, folder }
    }

    /// Where it is.
    pub fn folder(&self) -> PathBuf {
        self.folder.path().join("mounted")
    }

    /// To the program behind it.
    pub fn signal(&self, signal: i32) {
        // SAFETY: plain numbers
        assert_eq!(unsafe { libc::kill(self.server.id() as i32, signal) }, 0);
    }
}

impl Drop for Mounted {
    /// Whoever waits for it then gets an error.
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
        let _ = Command::new("umount").arg("-l").arg(self.folder()).status();
    }
}
