//! A tracer that does not get to its work: what it has not been told is counted, exactly.

use super::account::{assert_accounts, only};
use super::book::Books;
use super::support::{Gpuscope, eventually, number, sim_text};

#[test]
#[ignore = "needs the simulated CUDA"]
fn what_found_no_room_is_counted_and_no_total_goes_wrong() {
    let (books, gpusim) = (Books::new(), sim_text("gpusim"));
    let command = [
        gpusim.as_str(),
        "churn",
        "--rate",
        "0",
        "--seconds",
        "6",
        "--threads",
        "2",
    ];
    let running = books.of(Gpuscope::leaks(&[], &command)).start();
    eventually("it allocates", || books.allocations() > 1000);
    running.signal(libc::SIGSTOP);
    let room = books.allocations() + 200_000;
    eventually("the ring is full", || books.allocations() > room);
    running.signal(libc::SIGCONT);
    let trace = running.finish().ok();
    let (book, process) = (&books.only()["families"][0], only(&trace));
    let (family, lost) = (&process["families"][0], &process["lost"]);
    assert!(number(lost, "allocations") > 0, "{process}");
    assert_eq!(process["exact"], false);
    let sum = |name, missing| number(family, name) + number(lost, missing);
    assert_eq!(sum("allocations", "allocations"), number(book, "allocations"));
    assert_eq!(
        sum("allocated_bytes", "allocation_bytes"),
        number(book, "allocated_bytes")
    );
    // a free whose allocation was lost is one of something unknown, or of what was freed before
    let odd = &process["anomalies"];
    let unmatched = number(odd, "unknown_frees") + number(odd, "double_frees");
    assert_eq!(sum("frees", "others") + unmatched, number(book, "frees"), "{process}");
    assert!(number(family, "held_bytes") <= number(family, "allocated_bytes"));
    assert!(number(family, "outstanding") <= number(lost, "others"), "{process}");
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn a_program_that_ends_unwatched_is_accounted_for_while_there_is_room() {
    let (books, gpusim) = (Books::new(), sim_text("gpusim"));
    let command = [
        gpusim.as_str(),
        "memory",
        "--steps",
        "2000",
        "--threads",
        "2",
        "--fork",
        "0",
        "--end",
        "leak",
    ];
    let running = books.of(Gpuscope::leaks(&[], &command)).start();
    eventually("it allocates", || books.allocations() > 50);
    running.signal(libc::SIGSTOP);
    let pid = number(&books.only(), "pid");
    let stat = || std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("not waited for");
    eventually("it ends", || stat().contains(") Z "));
    running.signal(libc::SIGCONT);
    let trace = running.finish().ok();
    assert_accounts("unwatched", &books.read(), &trace);
}
