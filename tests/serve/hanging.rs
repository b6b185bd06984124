//! A file system that hangs stops neither the exporter nor its end; a program that hangs is told of.

use super::exporter::Exporter;
use super::support::{Hanging, Ledger, Program, Stepper, eventually, sim};

#[test]
#[ignore = "needs root and BPF"]
fn a_library_that_cannot_be_read_keeps_nobody_from_being_counted() {
    let hanging = Hanging::with(&sim("libcudart.so.13"));
    let mut stuck = Stepper::start(&[hanging.file().as_os_str()]);
    stuck.load(0);
    stuck.call(1);
    hanging.hang();
    let exporter = Exporter::start(&["--collect", "api,getters,self"]);
    let ledger: Ledger = Program::sim(&["train", "3"]).finish().ledger;
    let made = exporter.calls_of(&ledger) as f64;
    eventually("a program beside it is counted", || {
        exporter.sum("gpuscope_api_calls_total", &["comm=\"gpusim\""]) == Some(made)
    });
    eventually("the page says what is stuck", || {
        exporter.get("/", "text/html").contains("does not answer")
    });
}

#[test]
#[ignore = "needs root and BPF"]
fn a_call_that_does_not_return_is_told_of_while_it_lasts() {
    const LASTS: &str = "gpuscope_open_call_seconds";
    let exporter = Exporter::start(&["--collect", "sync,self"]);
    let seconds = |function: &str| exporter.sum(LASTS, &["comm=\"gpusim\"", &format!("function=\"{function}\"")]);
    let hour = [
        "stall",
        "--steps",
        "1",
        "--kernel-ns",
        "3600000000000",
        "--sync",
        "stream",
    ];
    let hangs = Program::sim(&hour);
    eventually("it lasts for more than two seconds", || {
        seconds("cuStreamSynchronize").is_some_and(|seconds| (2.0..60.0).contains(&seconds))
    });
    assert_eq!(seconds("cudaStreamSynchronize"), None, "one series for a program");
    hangs.signal(libc::SIGKILL);
    eventually("nobody is in a call any more", || exporter.sum(LASTS, &[]).is_none());
}
