//! Programs whose libraries nobody has ever mapped, as each new image of a container brings them.

use super::exporter::Exporter;
use super::support::{Ledger, eventually};
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

#[test]
#[ignore = "needs root and BPF"]
fn each_is_counted_from_its_first_call() {
    let exporter = Exporter::start(&["--collect", "api,memory,copies,self"]);
    for number in 0..TIMES {
        let name = format!("f-{number}");
        let folder = installed_as(&name);
        let ledger = started(folder.path(), &name, "train 1").finish().ledger;
        eventually("its calls are counted, all of them", || {
            of(&exporter, "gpuscope_api_calls_total", &name, "") == exporter.calls_of(&ledger)
        });
        let bytes = |label| of(&exporter, "gpuscope_copy_bytes_total", &name, label);
        // a training loop copies from and to pinned memory alone
        assert_eq!(
            (bytes(""), bytes("host_memory=\"pinned\"")),
            (copied(&ledger), copied(&ledger))
        );
        let allocated = of(
            &exporter,
            "gpuscope_memory_allocated_bytes_total",
            &name,
            "family=\"device\"",
        );
        assert_eq!(allocated, ledger.bytes["alloc"], "{name}");
    }
    let late = exporter.sum("gpuscope_lost_records_total", &["reason=\"late_probes\""]);
    assert_eq!(late, Some(0.0));
}
