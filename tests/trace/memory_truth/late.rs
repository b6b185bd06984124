//! Programs that ran before they were watched: nothing is invented.

use super::account::{of_book, of_report, only};
use super::book::Books;
use super::pause::Resting;
use super::support::{Gpuscope, Program, compile, eventually, number, sim, sim_folder};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use tempfile::TempDir;

/// A program that takes and gives back memory as it is told; see `keeper.c`.
struct Keeper {
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
    _folder: TempDir,
}

impl Keeper {
    fn start() -> Keeper {
        let folder = tempfile::tempdir().expect("a folder");
        let program = compile(
            folder.path(),
            "keeper",
            include_str!("../../support/keeper.c"),
            &["-ldl"],
        );
        let mut child = Command::new(program)
            .env("LD_LIBRARY_PATH", sim_folder())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the keeper starts");
        Keeper {
            commands: child.stdin.take().expect("a pipe"),
            answers: BufReader::new(child.stdout.take().expect("a pipe")),
            child,
            _folder: folder,
        }
    }

    fn tell(&mut self, command: &str, number: u64) -> u64 {
        writeln!(self.commands, "{command} {number}").expect("the keeper reads");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("the keeper answers");
        line.trim().parse().expect("a number")
    }

    fn take(&mut self, bytes: u64) -> u64 {
        self.tell("take", bytes)
    }

    /// Whether the driver took it back.
    fn give(&mut self, address: u64) -> bool {
        self.tell("give", address) == 0
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn only_what_came_after_is_held_and_a_free_of_what_came_before_takes_nothing_away() {
    let mut keeper = Keeper::start();
    let before = [100, 200].map(|bytes| keeper.take(bytes));
    let pid = keeper.child.id().to_string();
    let running = Gpuscope::leaks(&["-p", &pid], &[]).start().until_attached();
    let after = [300, 4000].map(|bytes| keeper.take(bytes));
    let given = [before[0], before[0], after[0], after[0]].map(|address| keeper.give(address));
    assert_eq!(given, [true, false, true, false]);
    let trace = running.stop().ok();
    let process = only(&trace);
    assert_eq!(
        (&process["late"], &process["exact"], &process["ended"]),
        (&json!(true), &json!(false), &json!(false))
    );
    let fields = [
        "outstanding",
        "held_bytes",
        "allocations",
        "allocated_bytes",
        "frees",
        "freed_bytes",
    ];
    let family = &process["families"][0];
    assert_eq!(fields.map(|name| number(family, name)), [1, 4000, 2, 4300, 1, 300]);
    let odd = ["unknown_frees", "double_frees", "failed_frees"];
    assert_eq!(odd.map(|name| number(&process["anomalies"], name)), [1, 1, 1]);
}

/// Sums over devices, which a late tracer may not know.
fn by_family(figures: BTreeMap<(String, String, &'static str), u64>) -> BTreeMap<(String, &'static str), u64> {
    let mut sums = BTreeMap::new();
    for ((family, _, name), value) in figures {
        *sums.entry((family, name)).or_default() += value;
    }
    sums
}

fn of(book: &Value) -> BTreeMap<(String, &'static str), u64> {
    by_family(of_book(book))
}

#[test]
#[ignore = "needs root and BPF: it attaches to what runs"]
fn allocations_are_those_since_the_attach_and_nothing_else_is_freed() {
    let books = Books::new();
    let arguments = [
        "memory",
        "--steps",
        "100000000",
        "--threads",
        "2",
        "--fork",
        "0",
        "--seed",
        "21",
    ];
    let program = Program::start(
        Command::new(sim("gpusim"))
            .args(arguments)
            .env("GPUSIM_BOOK", books.setting()),
    );
    eventually("it allocates", || books.allocations() > 300);
    let before = Resting::of(&books);
    let pid = program.pid().to_string();
    let running = Gpuscope::leaks(&["-p", &pid], &[]).start().until_attached();
    let first = of(&before.book);
    before.resume();
    eventually("it allocates more", || books.allocations() > 3000);
    let after = Resting::of(&books);
    let trace = running.stop().ok();
    let (last, process) = (of(&after.book), only(&trace));
    assert_eq!((&process["late"], &process["exact"]), (&json!(true), &json!(false)));
    let told = by_family(of_report(process));
    let figure = |of: &BTreeMap<(String, &'static str), u64>, family: &str, name| {
        of.get(&(family.to_owned(), name)).copied().unwrap_or(0)
    };
    for family in [
        "device",
        "managed",
        "async",
        "array",
        "mipmapped",
        "pinned",
        "registered",
        "reserved",
    ] {
        for name in ["allocations", "allocated_bytes", "failed_allocations"] {
            let since = figure(&last, family, name) - figure(&first, family, name);
            assert_eq!(figure(&told, family, name), since, "{family} {name}");
        }
        let since = |name| figure(&last, family, name) - figure(&first, family, name);
        assert!(figure(&told, family, "frees") <= since("frees"), "{family}");
        assert!(figure(&told, family, "freed_bytes") <= since("freed_bytes"), "{family}");
        // a context that was entered before is not known to end what was allocated in it since
        let ever = figure(&told, family, "allocated_bytes") - figure(&told, family, "freed_bytes");
        assert!(figure(&told, family, "held_bytes") <= ever, "{family}");
    }
    after.kill();
}
