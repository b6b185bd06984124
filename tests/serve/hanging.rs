//! A file system that hangs stops neither the exporter nor its end.

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
