//! Many allocations: all at once, and one after the other.

use super::account::{assert_accounts, only};
use super::book::Books;
use super::support::{Gpuscope, number, sim_text};

/// What the project promises.
const MOST_MEMORY_KB: u64 = 200_000_000 / 1024;

/// The most memory that a process has had in use; `None`: it has ended.
fn peak_kb(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}

#[test]
#[ignore = "needs root and BPF"]
fn a_million_allocations_are_all_known_in_200_mb() {
    let (books, gpusim) = (Books::new(), sim_text("gpusim"));
    let (stdin, held) = std::io::pipe().expect("a pipe");
    let command = [gpusim.as_str(), "hold", "--count", "1000000"];
    let running = books
        .of(Gpuscope::leaks(&["--interval", "1s"], &command))
        .stdin(stdin)
        .start();
    running.until_written("\"outstanding\":1000000");
    drop(held);
    let mut highest = peak_kb(running.pid()).expect("it runs");
    while let Some(now) = peak_kb(running.pid()) {
        highest = now;
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let trace = running.finish().ok();
    assert_accounts("a million", &books.read(), &trace);
    assert_eq!(number(only(&trace), "held_bytes"), 4_096_000_000);
    assert!(highest <= MOST_MEMORY_KB, "{highest} kB");
}

#[test]
#[ignore = "needs root and BPF"]
fn a_hundred_thousand_pairs_a_second_balance_to_the_byte() {
    let (books, gpusim) = (Books::new(), sim_text("gpusim"));
    let command = [
        gpusim.as_str(),
        "churn",
        "--rate",
        "100000",
        "--seconds",
        "5",
        "--threads",
        "2",
    ];
    let trace = books.of(Gpuscope::leaks(&[], &command)).finish().ok();
    assert_accounts("100,000/s", &books.read(), &trace);
    let lost = ["allocations", "allocation_bytes", "others"];
    assert_eq!(lost.map(|name| number(&only(&trace)["lost"], name)), [0; 3]);
}
