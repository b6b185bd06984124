//! A file system that hangs when it is told to.

use super::compile;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A file system with one file; gone when dropped. Whoever waits for it then gets an error.
pub struct Hanging {
    server: Child,
    folder: TempDir,
}

impl Hanging {
    /// Its file holds what `source` holds.
    pub fn with(source: &Path) -> Hanging {
        let folder = tempfile::tempdir().expect("a folder");
        let program = compile(folder.path(), "hanging", include_str!("hanging.c"), &[]);
        let mounted = folder.path().join("mounted");
        std::fs::create_dir(&mounted).expect("a folder");
        let mut server = Command::new(program)
            .args([source, &mounted])
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut line = String::new();
        let stdout = server.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("it speaks");
        assert_eq!(line, "ok\n", "FUSE is needed: /dev/fuse, and a kernel with it");
        Hanging { server, folder }
    }

    /// Its file.
    pub fn file(&self) -> PathBuf {
        self.folder.path().join("mounted/file")
    }

    /// From now on it answers nobody.
    pub fn hang(&self) {
        self.signal(libc::SIGSTOP);
    }

    /// It answers again.
    pub fn go_on(&self) {
        self.signal(libc::SIGCONT);
    }

    fn signal(&self, signal: i32) {
        // SAFETY: plain numbers
        assert_eq!(unsafe { libc::kill(self.server.id() as i32, signal) }, 0);
    }
}

impl Drop for Hanging {
    fn drop(&mut self) {
        let mounted = self.folder.path().join("mounted");
        let _ = self.server.kill();
        let _ = self.server.wait();
        let _ = Command::new("umount").arg("-l").arg(mounted).status();
    }
}
