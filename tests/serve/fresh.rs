//! Programs whose libraries nobody has ever mapped, as each new image of a container brings them.

use super::exporter::Exporter;
use super::support::{Ledger, comes_true};
use super::unmapped::{installed_as, started};

/// Every time other files than those that were there before.
const TIMES: usize = 20;

/// The value of one owner.
fn of(exporter: &Exporter, metric: &str, name: &str, label: &str) -> u64 {
    let sum = exporter.sum(metric, &[&format!("comm=\"{name}\""), label]);
    sum.unwrap_or(0.0) as u64
}

fn copied(ledger: &Ledger) -> u64 {
    let kinds = ["htod", "dtoh", "dtod", "htoh"].iter();
    kinds.filter_map(|kind| ledger.bytes.get(*kind)).sum()
}

/// Calls; bytes copied, and from or to pinned memory; bytes allocated.
type Numbers = [u64; 4];

fn truth(exporter: &Exporter, ledger: &Ledger) -> Numbers {
    let copied = copied(ledger);
    // a training loop copies from and to pinned memory alone
    [exporter.calls_of(ledger), copied, copied, ledger.bytes["alloc"]]
}

fn counted(exporter: &Exporter, name: &str) -> Numbers {
    [
        of(exporter, "gpuscope_api_calls_total", name, ""),
        of(exporter, "gpuscope_copy_bytes_total", name, ""),
        of(exporter, "gpuscope_copy_bytes_total", name, "host_memory=\"pinned\""),
        of(exporter, "gpuscope_memory_allocated_bytes_total", name, ""),
    ]
}

/// The files of the one before are deleted: those of the next may get their numbers.
#[test]
#[ignore = "needs root and BPF"]
fn each_is_counted_from_its_first_call() {
    let exporter = Exporter::start(&["--collect", "api,memory,copies,self"]);
    for number in 0..TIMES {
        let name = format!("f-{number}");
        let folder = installed_as(&name);
        let ledger = started(folder.path(), &name, "train 1").finish().ledger;
        let truth = truth(&exporter, &ledger);
        let mut numbers = Numbers::default();
        let is_whole = comes_true(|| {
            numbers = counted(&exporter, &name);
            numbers == truth
        });
        assert!(
            is_whole,
            "{name}: {numbers:?} of {truth:?}; late: {:?}",
            late(&exporter)
        );
    }
    assert_eq!(late(&exporter), Some(0.0));
}

fn late(exporter: &Exporter) -> Option<f64> {
    exporter.sum("gpuscope_lost_records_total", &["reason=\"late_probes\""])
}
