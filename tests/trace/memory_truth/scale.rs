//! Many allocations: all at once, and one after the other. What is promised is promised of the optimised program, so
//! these run `target/release/gpuscope`.

use super::account::{assert_accounts, only};
use super::book::Books;
use super::support::{Gpuscope, number, sim_text};
use std::path::Path;
use std::time::Duration;

/// What the project promises.
const MOST_MEMORY_KB: u64 = 200_000_000 / 1024;

/// `gpuscope leaks OPTIONS… -- gpusim ARGUMENTS…`, optimised, with a book.
fn watch(books: &Books, options: &[&str], arguments: &[&str]) -> Gpuscope {
    let release = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/release/gpuscope");
    let hint = "is missing; cargo build --release --locked makes it";
    assert!(release.exists(), "{} {hint}", release.display());
    let gpusim = sim_text("gpusim");
    books.of(Gpuscope::leaks_of(
        &release,
        options,
        &[&[gpusim.as_str()], arguments].concat(),
    ))
}

/// The most memory that a process has had in use; `None`: it has ended.
fn peak_kb(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_million_allocations_are_all_known_in_200_mb() {
    let books = Books::new();
    let (stdin, held) = std::io::pipe().expect("a pipe");
    let gpuscope = watch(&books, &["--interval", "1s"], &["hold", "--count", "1000000"]);
    let running = gpuscope.stdin(stdin).start();
    running.until_written("\"outstanding\":1000000");
    drop(held);
    let mut highest = peak_kb(running.pid()).expect("it runs");
    while let Some(now) = peak_kb(running.pid()) {
        highest = now;
        std::thread::sleep(Duration::from_millis(1));
    }
    let trace = running.finish().ok();
    assert_accounts("a million", &books.read(), &trace);
    assert_eq!(number(only(&trace), "held_bytes"), 4_096_000_000);
    assert!(highest <= MOST_MEMORY_KB, "{highest} kB");
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_hundred_thousand_pairs_a_second_balance_to_the_byte() {
    let books = Books::new();
    let arguments = ["churn", "--rate", "100000", "--seconds", "5", "--threads", "2"];
    let trace = watch(&books, &[], &arguments).finish().ok();
    assert_accounts("100,000/s", &books.read(), &trace);
    let lost = ["allocations", "allocation_bytes", "others"];
    assert_eq!(lost.map(|name| number(&only(&trace)["lost"], name)), [0; 3]);
}
