//! The programs that are traced, with a libcuda of their own that nobody else on the machine probes.

use crate::effort::waits;
use crate::go;
use crate::support::{changed_beyond, compile, compile_as, eventually};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use tempfile::TempDir;

thread_local! {
    /// Each test runs on a thread of its own, and asks of its own files whether a probe is left in them.
    static OWN: Files = Files::own();
}

/// Names a folder of built programs, for where there is no compiler.
const GIVEN: &str = "GPUSCOPE_TORTURE_SUBJECTS";

const HEADER: &str = include_str!("programs/cuda.h");

/// (name, source, language)
const SOURCES: &[(&str, &str, &str)] = &[
    ("throwing", include_str!("programs/throwing.cpp"), "c++"),
    ("fibers", include_str!("programs/fibers.c"), "c"),
    ("jumping", include_str!("programs/jumping.c"), "c"),
    ("signals", include_str!("programs/signals.c"), "c"),
    ("interrupting", include_str!("programs/interrupting.c"), "c"),
    ("threads", include_str!("programs/threads.c"), "c"),
    ("forks", include_str!("programs/forks.c"), "c"),
    ("sandbox", include_str!("programs/sandbox.c"), "c"),
    ("rewriting", include_str!("programs/rewriting.c"), "c"),
    ("dumping", include_str!("programs/dumping.c"), "c"),
    ("followed", include_str!("programs/followed.c"), "c"),
    ("waiting", include_str!("programs/waiting.c"), "c"),
    ("many", include_str!("programs/many.c"), "c"),
    ("handles", include_str!("programs/handles.c"), "c"),
    ("twice", include_str!("programs/twice.c"), "c"),
    ("cloned", include_str!("programs/cloned.c"), "c"),
    ("opening", include_str!("programs/opening.c"), "c"),
    ("followed_by", include_str!("programs/followed_by.c"), "c"),
];
/// Those that are built without a dynamic linker, too, with the library in them.
const STATIC: &[(&str, &str)] = &[
    ("waiting-static", include_str!("programs/waiting.c")),
    ("twice-static", include_str!("programs/twice.c")),
];

/// A program and what it does when nobody watches.
pub struct Subject {
    command: Vec<String>,
    alone: Output,
}

impl Subject {
    /// `NAME ARGUMENTS…`, run once without gpuscope.
    pub fn new(name: &str, arguments: &[&str]) -> Subject {
        let program = folder().join(name).to_str().expect("UTF-8").to_owned();
        let arguments = arguments.iter().map(|text| (*text).to_owned());
        let command: Vec<String> = std::iter::once(program).chain(arguments).collect();
        let alone = start(&command).wait_with_output().expect("it runs");
        assert!(alone.status.success(), "{name}: {alone:?}");
        Subject { command, alone }
    }

    pub fn command(&self) -> Vec<&str> {
        self.command.iter().map(String::as_str).collect()
    }

    /// Starts it by itself.
    pub fn start(&self) -> Child {
        start(&self.command)
    }

    /// Fails the test unless this is what it does by itself.
    pub fn assert_as_alone(&self, output: &Output, how: &str) {
        assert_eq!(output.status.code(), self.alone.status.code(), "{how}: {output:?}");
        self.assert_said(&output.stdout, how);
    }

    /// Fails the test unless this is what it writes by itself.
    pub fn assert_said(&self, stdout: &[u8], how: &str) {
        let (expected, got) = (text(&self.alone.stdout), text(stdout));
        assert_eq!(expected, got, "{how}: {:?}", self.command);
    }
}

fn start(command: &[String]) -> Child {
    let mut child = Command::new(&command[0]);
    child.args(&command[1..]).env("LD_LIBRARY_PATH", folder());
    child
        .env("GPUSCOPE_TORTURE_WAITS", waits().to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Where the library and the programs of this test lie: copies of its own.
pub fn folder() -> PathBuf {
    OWN.with(|files| files.path.clone())
}

struct Files {
    path: PathBuf,
    /// Removed with the test.
    _copies: TempDir,
}

impl Files {
    fn own() -> Files {
        let copies = tempfile::tempdir().expect("a folder");
        copy(&built().join("."), copies.path());
        Files {
            path: copies.path().to_owned(),
            _copies: copies,
        }
    }
}

/// Copies a file, or what is in a folder. A process of its own does: one that another test starts meanwhile would inherit the
/// descriptor, and a program that somebody may write cannot be run.
pub fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-R").args([from, to]).status();
    assert!(status.expect("cp runs").success(), "{}", from.display());
}

/// What all copies are made of, built once.
fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let given = std::env::var_os(GIVEN).map(PathBuf::from);
        let path = given.unwrap_or_else(|| tempfile::tempdir().expect("a folder").keep());
        if !path.join("libcuda.so.1").exists() {
            build(&path);
        }
        path
    })
}

fn build(folder: &Path) {
    std::fs::write(folder.join("cuda.h"), HEADER).expect("a file");
    let flags = ["-shared", "-fPIC", "-fexceptions", "-Wl,-soname,libcuda.so.1"];
    let library = compile(folder, "libcuda.so.1", include_str!("programs/cuda.c"), &flags);
    let library = library.to_str().expect("UTF-8");
    std::fs::write(folder.join("cuda.c"), include_str!("programs/cuda.c")).expect("a file");
    for (name, source) in STATIC {
        compile(folder, name, source, &["-static", "-DSTATIC"]);
    }
    for (name, source, language) in SOURCES {
        let flags = [library, "-ldl", "-lstdc++"];
        compile_as(
            language,
            folder,
            name,
            source,
            &flags[..if *language == "c" { 2 } else { 3 }],
        );
    }
    go::build(folder);
}

/// Fails the test unless the library's code is, for who maps it now, as that of a copy that was never traced.
pub fn assert_no_probe_is_left() {
    let unknown = tempfile::tempdir().expect("a folder");
    let copy = unknown.path().join("libcuda.so.1");
    std::fs::copy(folder().join("libcuda.so.1"), &copy).expect("a copy");
    let (control, witness) = (Witness::of(&copy), Witness::of(&folder().join("libcuda.so.1")));
    eventually("no probe is left", || {
        changed_beyond(control.0.id(), witness.0.id(), "libcuda.so.1").is_empty()
    });
}

/// A program that maps a library and waits; ended when dropped.
struct Witness(Child);

impl Witness {
    fn of(library: &Path) -> Witness {
        let mut shell = Command::new("sh");
        shell.args(["-c", "read line"]).env("LD_PRELOAD", library);
        let witness = Witness(shell.stdin(Stdio::piped()).spawn().expect("a shell"));
        let maps = || std::fs::read_to_string(format!("/proc/{}/maps", witness.0.id())).unwrap_or_default();
        // a linker maps a library piece by piece
        let is_code = |line: &str| line.contains(" r-xp ") && line.ends_with("libcuda.so.1");
        eventually("the witness maps the library", || maps().lines().any(is_code));
        witness
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// They print the same and end well each time: what is compared with must not change by itself.
#[test]
fn every_program_does_the_same_each_time_alone() {
    for name in SOURCES.iter().map(|(name, ..)| *name).chain([go::PROGRAM]) {
        let subject = Subject::new(name, &[]);
        let again = subject.start().wait_with_output().expect("it ends");
        subject.assert_as_alone(&again, "alone");
    }
}
