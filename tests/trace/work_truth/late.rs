//! A program that ran before it was watched: what it pinned then is not known, and nothing is invented.

use super::copies::{Class, classes_told};
use super::log::Logs;
use super::support::{Gpuscope, compile, sim_folder};
use super::told::only;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use tempfile::TempDir;

/// A program that copies as it is told; see `copier.c`.
struct Copier {
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
    _folder: TempDir,
}

/// Bytes of each of its copies.
const BYTES: u64 = 1000;
/// Its copies each time.
const COPIES: usize = 6;

impl Copier {
    fn start(logs: &Logs) -> Copier {
        let folder = tempfile::tempdir().expect("a folder");
        let program = compile(
            folder.path(),
            "copier",
            include_str!("../../support/copier.c"),
            &["-ldl"],
        );
        let mut child = Command::new(program)
            .env("LD_LIBRARY_PATH", sim_folder())
            .env("GPUSIM_WORK", logs.setting())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the copier starts");
        Copier {
            commands: child.stdin.take().expect("a pipe"),
            answers: BufReader::new(child.stdout.take().expect("a pipe")),
            child,
            _folder: folder,
        }
    }

    fn tell(&mut self, command: &str) {
        writeln!(self.commands, "{command}").expect("the copier reads");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("the copier answers");
        assert_eq!(line, "ok\n", "{:?}", self.child.try_wait());
    }
}

impl Drop for Copier {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn expected(classes: &[(&str, &str, bool, u64)]) -> BTreeMap<Class, (u64, u64)> {
    let class = |way: &str, host: &str, blocks| (way.to_owned(), host.to_owned(), blocks);
    let classes = classes.iter();
    classes
        .map(|(way, host, blocks, count)| (class(way, host, *blocks), (*count, count * BYTES)))
        .collect()
}

#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn of_copies_of_what_was_allocated_before_it_is_not_known_whether_it_was_pinned() {
    let logs = Logs::new();
    let mut copier = Copier::start(&logs);
    copier.tell("take");
    copier.tell("copy 5");
    let before = logs.only().copies().count();
    assert_eq!(before, 5 * COPIES);
    let pid = copier.child.id().to_string();
    let running = Gpuscope::trace(&["-p", &pid]).start().until_attached();
    copier.tell("copy 100");
    copier.tell("take");
    copier.tell("copy 10");
    let trace = running.stop().ok();
    let report = only(&trace);
    assert_eq!(
        (&report["watched"], &report["gpu"]["certainty"]),
        (&"late".into(), &"inferred".into())
    );
    let told = classes_told(report);
    let count: u64 = told.values().map(|(count, _)| count).sum();
    assert_eq!(count, (logs.only().copies().count() - before) as u64);
    let expected = expected(&[
        ("DtoD", "", false, 110),
        ("DtoH", "unknown", true, 100),
        ("DtoH", "pinned", true, 10),
        ("HtoD", "unknown", true, 300 + 10),
        ("HtoD", "unknown", false, 100),
        ("HtoD", "pinned", true, 20),
        ("HtoD", "pinned", false, 10),
    ]);
    super::support::assert_same("late", &expected, &told);
}
