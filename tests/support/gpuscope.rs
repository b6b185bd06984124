//! gpuscope as a process whose output lies in files of its own.

use super::engine::{ENGINE, engine};
use super::trace::Trace;
use super::{PATIENCE, changed_code, comes_true, eventually, probes_of, sim_folder};
use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Instant;
use tempfile::TempDir;

const LONGEST_HOLD: &str = "GPUSCOPE_LONGEST_HOLD";

/// A gpuscope that is yet to be started.
pub struct Gpuscope {
    command: Command,
    folder: TempDir,
}

impl Gpuscope {
    /// `gpuscope ARGUMENTS…`, as they are.
    pub fn new(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Gpuscope {
        Gpuscope::of(Path::new(env!("CARGO_BIN_EXE_gpuscope")), arguments)
    }

    /// As [`Gpuscope::new`], of another copy of the program.
    pub fn of(program: &Path, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Gpuscope {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("ledger")).expect("a folder");
        let mut command = Command::new(program);
        command
            .args(arguments)
            .stdin(Stdio::null())
            .env_remove("GPUSCOPE_TIER")
            .env(ENGINE, engine())
            // many tests beside one another make a busy machine
            .env(LONGEST_HOLD, "30s")
            // whoever runs the tests by sudo has the commands run as root, as they are written for
            .env_remove("SUDO_UID")
            .env("LD_LIBRARY_PATH", sim_folder())
            .env("GPUSIM_LEDGER", folder.path().join("ledger/%p"));
        Gpuscope { command, folder }
    }

    /// `gpuscope run -o FILE OPTIONS… -- COMMAND…`; the file is read back into [`Trace::records`].
    pub fn run(options: &[&str], command: &[&str]) -> Gpuscope {
        let mut this = Gpuscope::new(["run"]);
        let lines = this.folder.path().join("lines.jsonl");
        this.command
            .arg("-o")
            .arg(lines)
            .args(with_getters(options))
            .arg("--")
            .args(command);
        this
    }

    /// `gpuscope trace -o FILE OPTIONS…`.
    pub fn trace(options: &[&str]) -> Gpuscope {
        let mut this = Gpuscope::new(["trace"]);
        let lines = this.folder.path().join("lines.jsonl");
        this.command.arg("-o").arg(lines).args(with_getters(options));
        this
    }

    /// `gpuscope leaks -o FILE OPTIONS…`, with `-- COMMAND…` if there is one; its reports are [`Trace::records`].
    pub fn leaks(options: &[&str], command: &[&str]) -> Gpuscope {
        Gpuscope::leaks_of(Path::new(env!("CARGO_BIN_EXE_gpuscope")), options, command)
    }

    /// As [`Gpuscope::leaks`], of another copy of the program.
    pub fn leaks_of(program: &Path, options: &[&str], command: &[&str]) -> Gpuscope {
        let mut this = Gpuscope::of(program, ["leaks"]);
        let lines = this.folder.path().join("lines.jsonl");
        this.command.arg("-o").arg(lines).args(options);
        if !command.is_empty() {
            this.command.arg("--").args(command);
        }
        this
    }

    /// `gpuscope record -o FOLDER/t.arrows OPTIONS…`, with `-- COMMAND…` if there is one.
    pub fn record(options: &[&str], command: &[&str]) -> Gpuscope {
        let mut this = Gpuscope::new(["record"]);
        let file = this.folder.path().join("t.arrows");
        this.command.arg("-o").arg(file).args(with_getters(options));
        if !command.is_empty() {
            this.command.arg("--").args(command);
        }
        this
    }

    /// `gpuscope run` of a shell script.
    pub fn script(options: &[&str], script: &str) -> Gpuscope {
        Gpuscope::run(options, &["sh", "-c", script])
    }

    /// It holds programs for no longer than it does for users.
    pub fn with_usual_patience(mut self) -> Gpuscope {
        self.command.env_remove(LONGEST_HOLD);
        self
    }

    /// Forces one way of attaching; `inside`: that engine.
    pub fn tier(self, name: &str) -> Gpuscope {
        match name {
            "inside" => self.env(ENGINE, name),
            _ => self.env(ENGINE, "kernel").env("GPUSCOPE_TIER", name),
        }
    }

    /// Has another program start it: `WRAPPER… gpuscope …`.
    pub fn under(mut self, wrapper: &[&str]) -> Gpuscope {
        let mut command = Command::new(wrapper[0]);
        command.args(&wrapper[1..]).arg(self.command.get_program());
        command.args(self.command.get_args()).stdin(Stdio::null());
        for (name, value) in self.command.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        self.command = command;
        self
    }

    /// Sets a variable for gpuscope and what it starts.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Gpuscope {
        self.command.env(name, value);
        self
    }

    /// Takes stdin from there; else it is empty.
    pub fn stdin(mut self, from: impl Into<Stdio>) -> Gpuscope {
        self.command.stdin(from);
        self
    }

    /// Sends stdout there.
    pub fn stdout(mut self, to: impl Into<Stdio>) -> Gpuscope {
        self.command.stdout(to);
        self
    }

    /// Starts it; stdout goes to a file.
    pub fn start(self) -> Running {
        let stdout = File::create(self.folder.path().join("stdout")).expect("a file");
        self.stdout(stdout).start_as_set()
    }

    /// Starts it with stdout as [`Gpuscope::stdout`] says.
    pub fn start_as_set(mut self) -> Running {
        let stderr = File::create(self.folder.path().join("stderr")).expect("a file");
        let child = self.command.stderr(stderr).spawn().expect("gpuscope starts");
        Running {
            child,
            folder: Arc::new(self.folder),
        }
    }

    /// Starts it and waits for its end.
    pub fn finish(self) -> Trace {
        self.start().finish()
    }
}

/// A ledger has every call, those that only ask, too; unless `options` say about them what they want.
fn with_getters<'a>(options: &[&'a str]) -> Vec<&'a str> {
    let says = |option: &&str| ["--getters", "--no-getters", "--chatty"].contains(option);
    let all = (!options.iter().any(says)).then_some("--getters");
    all.into_iter().chain(options.iter().copied()).collect()
}

/// A gpuscope at work; killed when dropped.
pub struct Running {
    child: Child,
    folder: Arc<TempDir>,
}

impl Running {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The folder that its output and its command's ledgers lie in.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.file("stderr")).unwrap_or_default()).into_owned()
    }

    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.file("stdout")).unwrap_or_default()).into_owned()
    }

    /// What is in the output file so far.
    pub fn lines(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.file("lines.jsonl")).unwrap_or_default()).into_owned()
    }

    /// Waits until `trace` says that it is attached.
    pub fn until_attached(mut self) -> Running {
        eventually("gpuscope: tracing N functions", || {
            let ended = self.child.try_wait().expect("a child");
            assert!(ended.is_none(), "gpuscope ended: {ended:?}\n{}", self.stderr());
            self.stderr().contains("gpuscope: tracing ")
        });
        self
    }

    /// How many probes it has itself in files named `name`; where the kernel does not tell that, how many bytes of those
    /// that process `pid` maps are changed, by whomever.
    pub fn probes_in(&self, pid: u32, name: &str) -> usize {
        probes_of(self.pid(), name).map_or_else(|| changed_code(pid, name), |offsets| offsets.len())
    }

    /// Waits until the output file contains `text`.
    pub fn until_written(&self, text: &str) {
        eventually(text, || self.lines().contains(text));
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: plain numbers; the child has not been waited for, so its id is its own
        assert_eq!(unsafe { libc::kill(self.pid() as i32, signal) }, 0);
    }

    /// Ends a `trace` as Ctrl-C does, and reads what it wrote.
    pub fn stop(self) -> Trace {
        self.signal(libc::SIGINT);
        self.finish()
    }

    /// Waits for its end, and until nobody takes its probes away any more, and reads what it wrote.
    pub fn finish(self) -> Trace {
        let trace = self.end();
        if let Some(remover) = trace.remover() {
            let process = format!("/proc/{remover}");
            let is_gone = (0..10).any(|_| comes_true(|| !Path::new(&process).exists()));
            assert!(is_gone, "process {remover} still takes probes away");
        }
        trace
    }

    /// Waits for its end and reads what it wrote.
    pub fn end(mut self) -> Trace {
        let status = self.wait();
        Trace::read(status, self.stdout(), self.stderr(), Arc::clone(&self.folder))
    }

    fn wait(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return status;
            }
            assert!(
                start.elapsed() < 4 * PATIENCE,
                "gpuscope does not end:\n{}",
                self.stderr()
            );
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
