//! gpuscope under attack: a process with a session of its own, so that whatever it leaves behind can be found.

use crate::effort::waits;
use crate::subject::folder;
use crate::support::{ENGINE, engine, eventually, patience};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Nothing that is asked of it takes longer, on whatever machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A gpuscope at work; killed when dropped.
pub struct Tracer {
    child: Child,
    folder: TempDir,
}

impl Tracer {
    /// `gpuscope ARGUMENTS…`; `OUT` within an argument is a folder for what it writes.
    pub fn start<S: AsRef<OsStr>>(arguments: &[S]) -> Tracer {
        Tracer::start_by(&mut Command::new(program()), arguments)
    }

    /// As [`Tracer::start`], where `command` ends with the program itself.
    pub fn start_by<S: AsRef<OsStr>>(command: &mut Command, arguments: &[S]) -> Tracer {
        let folder = tempfile::tempdir().expect("a folder");
        let out = folder.path().to_str().expect("UTF-8");
        for argument in arguments {
            let argument = argument.as_ref().to_str().expect("UTF-8");
            command.arg(argument.replace("OUT", out));
        }
        let file = |name| File::create(folder.path().join(name)).expect("a file");
        command
            .stdin(Stdio::null())
            .stdout(file("stdout"))
            .stderr(file("stderr"))
            .env("LD_LIBRARY_PATH", self::folder())
            .env(ENGINE, engine())
            .env("GPUSCOPE_TORTURE_WAITS", waits().to_string());
        // SAFETY: setsid is async-signal-safe
        unsafe {
            command.pre_exec(|| match libc::setsid() {
                -1 => Err(std::io::Error::last_os_error()),
                _ => Ok(()),
            })
        };
        let child = command.spawn().expect("gpuscope starts");
        Tracer { child, folder }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn out(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What it has written into `OUT/t.jsonl`.
    pub fn records(&self) -> Vec<Value> {
        let lines = std::fs::read_to_string(self.out("t.jsonl")).expect("lines");
        let records = lines.lines().map(|line| serde_json::from_str(line).expect("JSON"));
        records.collect()
    }

    pub fn stdout(&self) -> Vec<u8> {
        std::fs::read(self.out("stdout")).unwrap_or_default()
    }

    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.out("stderr")).unwrap_or_default()).into_owned()
    }

    pub fn until_attached(self) -> Tracer {
        eventually("gpuscope traces", || self.stderr().contains("gpuscope: tracing "));
        self
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: plain numbers; the child has not been waited for, so its id is its own
        unsafe { libc::kill(self.pid() as i32, signal) };
    }

    /// Waits for its end, and that nothing of its session is left.
    pub fn finish(mut self) -> Output {
        let status = self.wait();
        let (stdout, stderr) = (self.stdout(), self.stderr());
        assert!(!stderr.contains("panicked"), "{stderr}");
        self.assert_session_is_over();
        Output {
            status,
            stdout,
            stderr: stderr.into_bytes(),
        }
    }

    pub fn wait(&mut self) -> ExitStatus {
        let (start, patience) = (Instant::now(), patience(PATIENCE));
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return status;
            }
            assert!(start.elapsed() < patience, "gpuscope does not end:\n{}", self.stderr());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// In the folder that it was given for what it writes.
    pub fn assert_left_only(&self, names: &[&str]) {
        let left = std::fs::read_dir(self.folder.path()).expect("a folder").flatten();
        for entry in left {
            let name = entry.file_name().into_string().expect("UTF-8");
            assert!(names.contains(&name.as_str()), "it has left {name}");
        }
    }

    /// Its helpers and what it started have ended, too.
    pub fn assert_session_is_over(&self) {
        let session = self.pid();
        eventually("all of gpuscope's session has ended", || members(session).is_empty());
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program under test.
pub fn program() -> PathBuf {
    let given = std::env::var_os("GPUSCOPE_TORTURE_PROGRAM").map(PathBuf::from);
    given.unwrap_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_gpuscope")))
}

/// Processes of a session that have not ended.
fn members(session: u32) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
    let stats = processes.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    stats.filter(|stat| is_member(stat, session)).collect()
}

fn is_member(stat: &str, session: u32) -> bool {
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let [state, _, _, of, ..] = fields[..] else {
        return false;
    };
    !matches!(state, "Z" | "X") && of.parse() == Ok(session)
}
