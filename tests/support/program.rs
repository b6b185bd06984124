//! Programs that are traced, and what is left in them.

use super::engine::is_inside;
use super::ledger::Ledger;
use super::{PATIENCE, eventually, sim, sim_folder};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::Instant;
use tempfile::TempDir;

/// A program in the background; killed when dropped.
pub struct Program {
    child: Child,
    folder: TempDir,
}

/// How a program ended.
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub ledger: Ledger,
}

impl Program {
    /// `gpusim ARGUMENTS…`.
    pub fn sim(arguments: &[&str]) -> Program {
        Program::start(Command::new(sim("gpusim")).args(arguments))
    }

    /// A shell that waits for [`Program::go`] before it becomes `gpusim ARGUMENTS…`.
    pub fn held_sim(arguments: &[&str]) -> Program {
        let mut shell = Command::new("sh");
        shell.args(["-c", "read go; exec \"$0\" \"$@\""]).arg(sim("gpusim"));
        Program::start(shell.args(arguments).stdin(Stdio::piped()))
    }

    pub fn start(command: &mut Command) -> Program {
        Program::start_with(&sim_folder(), command)
    }

    /// As [`Program::start`], with the libraries of another folder.
    pub fn start_with(libraries: &Path, command: &mut Command) -> Program {
        let folder = tempfile::tempdir().expect("a folder");
        let stdout = File::create(folder.path().join("stdout")).expect("a file");
        std::fs::create_dir(folder.path().join("ledger")).expect("a folder");
        let child = command
            .stdout(stdout)
            .env("LD_LIBRARY_PATH", libraries)
            .env("GPUSIM_LEDGER", folder.path().join("ledger/%p"))
            .spawn()
            .expect("the program starts");
        Program { child, folder }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets a held program start.
    pub fn go(&mut self) {
        drop(self.child.stdin.take().map(|mut gate| gate.write_all(b"go\n")));
    }

    /// Waits until it has written `text`.
    pub fn until_said(&self, text: &str) {
        let said = || std::fs::read_to_string(self.folder.path().join("stdout")).unwrap_or_default();
        eventually(text, || said().contains(text));
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("a child").is_none()
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: plain numbers; the child has not been waited for, so its id is its own
        assert_eq!(unsafe { libc::kill(self.pid() as i32, signal) }, 0);
    }

    /// Waits for its end.
    pub fn finish(mut self) -> Ended {
        let start = Instant::now();
        while self.is_running() {
            assert!(start.elapsed() < PATIENCE, "the program does not end");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        Ended {
            status: self.child.wait().expect("a child"),
            stdout: std::fs::read_to_string(self.folder.path().join("stdout")).expect("a file"),
            ledger: Ledger::read(&self.folder.path().join("ledger")),
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program that loads and calls CUDA as it is told, step by step; ended when dropped. See `stepper.c`.
pub struct Stepper {
    child: Child,
    commands: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Stepper {
    /// Starts it with the paths that [`Stepper::load`] chooses from.
    pub fn start(libraries: &[&OsStr]) -> Stepper {
        Stepper::start_in(&mut Command::new(Stepper::program()), libraries)
    }

    /// As [`Stepper::start`], where `command` ends with the program itself.
    pub fn start_in(command: &mut Command, libraries: &[&OsStr]) -> Stepper {
        let mut child = command
            .args(libraries)
            .env("LD_LIBRARY_PATH", sim_folder())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the stepper starts");
        let mut stepper = Stepper {
            commands: child.stdin.take(),
            answers: BufReader::new(child.stdout.take().expect("a pipe")),
            child,
        };
        stepper.answer();
        stepper
    }

    /// The program itself, compiled once.
    pub fn program() -> &'static Path {
        static PROGRAM: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
        &PROGRAM
            .get_or_init(|| {
                let folder = tempfile::tempdir().expect("a folder");
                let path = compile(folder.path(), "stepper", include_str!("stepper.c"), &["-ldl"]);
                (folder, path)
            })
            .1
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Loads the library of that index.
    pub fn load(&mut self, index: usize) {
        self.tell(&format!("load {index}"));
    }

    pub fn unload(&mut self) {
        self.tell("unload");
    }

    /// Calls cudaMalloc and cudaFree, both `times` times.
    pub fn call(&mut self, times: u64) {
        self.tell(&format!("call {times}"));
    }

    /// Renames the thread; the name must have no newline.
    pub fn rename(&mut self, name: &str) {
        self.tell(&format!("name {name}"));
    }

    fn tell(&mut self, command: &str) {
        let commands = self.commands.as_mut().expect("not ended");
        commands
            .write_all(format!("{command}\n").as_bytes())
            .expect("the stepper reads");
        self.answer();
    }

    fn answer(&mut self) {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("the stepper answers");
        assert_eq!(line, "ok\n", "the stepper failed: {:?}", self.child.try_wait());
    }

    /// Lets it end.
    pub fn end(mut self) -> ExitStatus {
        drop(self.commands.take());
        self.child.wait().expect("a child")
    }
}

impl Drop for Stepper {
    fn drop(&mut self) {
        drop(self.commands.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What has the compiler begin also the shortest function so that it can be patched. Which ones cannot be is the business of
/// the planner's own tests.
pub fn patchable() -> &'static [&'static str] {
    match is_inside() {
        true => &["-O0"],
        false => &[],
    }
}

/// A program of the shell's.
pub fn shell_script(folder: &Path, name: &str, source: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{source}\n")).expect("a script");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("made a program");
    path
}

/// Compiles a C program, or with `-shared` a library.
pub fn compile(folder: &Path, name: &str, source: &str, flags: &[&str]) -> PathBuf {
    compile_as("c", folder, name, source, flags)
}

/// As [`compile`], in another language (`c++`).
pub fn compile_as(language: &str, folder: &Path, name: &str, source: &str, flags: &[&str]) -> PathBuf {
    let (input, output) = (folder.join(format!("{name}.c")), folder.join(name));
    std::fs::write(&input, source).expect("a file");
    let done = Command::new("cc")
        .args(["-O1", "-g0", "-Wall", "-fno-omit-frame-pointer", "-pthread"])
        .args(patchable())
        .arg("-o")
        .arg(&output)
        .args(["-x", language])
        .arg(&input)
        .args(["-x", "none"])
        .args(flags)
        .output()
        .expect("cc runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    output
}

/// Where that of process `pid` is changed and that of `control` is not, a program that only others may trace.
pub fn changed_beyond(control: u32, pid: u32, name: &str) -> Vec<u64> {
    let by_others = changed_places(control, name);
    changed_places(pid, name).difference(&by_others).copied().collect()
}

/// How many bytes of the code that process `pid` maps from files named `name` are not as in the file.
pub fn changed_code(pid: u32, name: &str) -> usize {
    changed_places(pid, name).len()
}

/// Where they are: offsets in the file. Whoever has probes there has changed them.
pub fn changed_places(pid: u32, name: &str) -> BTreeSet<u64> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("a process");
    let code: Vec<&str> = maps
        .lines()
        .filter(|line| line.contains(" r-xp ") && line.ends_with(name))
        .collect();
    assert!(!code.is_empty(), "{name} is not mapped:\n{maps}");
    code.into_iter().flat_map(|line| changed_in(pid, line)).collect()
}

fn changed_in(pid: u32, line: &str) -> Vec<u64> {
    let mut fields = line.split_whitespace();
    let range = fields.next().and_then(|range| range.split_once('-')).expect("a range");
    let hex = |digits: &str| u64::from_str_radix(digits, 16).expect("a number");
    let (start, end, offset) = (hex(range.0), hex(range.1), hex(fields.nth(1).expect("an offset")));
    let length = usize::try_from(end - start).expect("small");
    let memory = read_at(Path::new(&format!("/proc/{pid}/mem")), start, length);
    let file = read_at(Path::new(fields.nth(2).expect("a path")), offset, length);
    let bytes = (offset..).zip(memory.iter().zip(&file));
    let changed = bytes.filter(|(_, (memory, file))| memory != file);
    changed.map(|(at, _)| at).collect()
}

fn read_at(path: &Path, offset: u64, length: usize) -> Vec<u8> {
    let mut file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    file.seek(SeekFrom::Start(offset)).expect("an offset");
    let mut bytes = Vec::new();
    file.take(length as u64).read_to_end(&mut bytes).expect("readable");
    bytes
}
