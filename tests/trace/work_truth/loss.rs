//! A tracer that does not get to its work: what it has not been told is counted, and no time is called idle for that.

use super::copies::classes_told;
use super::idle::{assert_bounds, assert_streams};
use super::log::{Logs, Operation};
use super::run::{Run, command_of};
use super::seed::seed;
use super::support::{Gpuscope, eventually, number};
use super::told::list;

/// Runs a program, and stops gpuscope while its log grows by so many bytes.
fn starved(text: &str, settings: &[(&str, &str)], room: u64) -> Run {
    let (logs, command) = (Logs::new(), command_of(text));
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let mut gpuscope = logs.of(Gpuscope::run(&["--errors"], &command));
    for (name, value) in settings {
        gpuscope = gpuscope.env(name, value);
    }
    let running = gpuscope.start();
    eventually("it works", || logs.written_bytes() > 1 << 20);
    running.signal(libc::SIGSTOP);
    let room = logs.written_bytes() + room;
    eventually("the ring is full", || logs.written_bytes() > room);
    running.signal(libc::SIGCONT);
    let trace = running.finish().ok();
    let run = Run {
        name: text.to_owned(),
        trace,
        log: logs.only(),
    };
    let notes = list(&run.report()["gpu"]["notes"]);
    assert!(notes.iter().any(|note| note.to_string().contains("lost")), "{notes:?}");
    run
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn what_found_no_room_is_counted() {
    let text = format!("gpusim copies --seed {} --steps 200000 --bytes 4096", seed());
    let settings = [("GPUSIM_COPY_BYTES_PER_US", "0"), ("GPUSIM_KERNEL_NS", "0")];
    let run = starved(&text, &settings, 60 << 20);
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
    assert_bounds(&run);
    assert_streams(&run);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn over_a_loss_no_time_is_called_idle() {
    let text = "gpusim stall --steps 50000 --kernel-ns 20000 --host-ns 20000 --sync stream";
    let run = starved(text, &[], 20 << 20);
    assert!(number(&run.report()["lost"], "others") > 0, "{}", run.report());
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
