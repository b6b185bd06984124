//! A tracer that does not get to its work: what it has not been told is counted, and no time is called idle for that.

use super::copies::classes_told;
use super::idle::{assert_bounds, assert_streams};
use super::log::{Logs, Operation};
use super::run::{Run, command_of};
use super::seed::seed;
use super::support::{Gpuscope, eventually, number};
use super::told::list;

/// More of the log than there is room for in the ring, several times.
const ROOM: u64 = 60 << 20;

#[test]
#[ignore = "needs root and BPF"]
fn what_found_no_room_is_counted_and_no_time_is_called_idle_for_that() {
    let (logs, text) = (
        Logs::new(),
        format!("gpusim copies --seed {} --steps 200000 --bytes 4096", seed()),
    );
    let command = command_of(&text);
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let gpuscope = logs.of(Gpuscope::run(&["--errors"], &command));
    let gpuscope = gpuscope
        .env("GPUSIM_COPY_BYTES_PER_US", "0")
        .env("GPUSIM_KERNEL_NS", "0");
    let running = gpuscope.start();
    eventually("it works", || logs.written_bytes() > 1 << 20);
    running.signal(libc::SIGSTOP);
    let room = logs.written_bytes() + ROOM;
    eventually("the ring is full", || logs.written_bytes() > room);
    running.signal(libc::SIGCONT);
    let trace = running.finish().ok();
    let run = Run {
        name: text,
        trace,
        log: logs.only(),
    };
    let (report, lost) = (run.report(), &run.report()["lost"]);
    assert!(number(lost, "copies") > 0 && number(lost, "others") > 0, "{report}");
    let told = classes_told(report);
    let sum = told.values().fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
    assert_eq!(
        sum.0 + number(lost, "copies"),
        run.log.copies().count() as u64,
        "{}",
        run.name
    );
    assert_bytes(&run, sum.1 + number(lost, "bytes"));
    let notes = list(&report["gpu"]["notes"]);
    assert!(notes.iter().any(|note| note.to_string().contains("lost")), "{notes:?}");
    assert_bounds(&run);
    assert_streams(&run);
}

/// The bytes of lost copies are counted but for those of a batch.
fn assert_bytes(run: &Run, bytes: u64) {
    let (of_batches, of_others): (Vec<&Operation>, _) = run.log.copies().partition(|copy| copy.api.contains("Batch"));
    let sum = |copies: &[&Operation]| copies.iter().map(|copy| copy.bytes).sum::<u64>();
    let least = sum(&of_others);
    let most = least + sum(&of_batches);
    assert!(
        (least..=most).contains(&bytes),
        "{}: {bytes} not in {least}..={most}",
        run.name
    );
}
