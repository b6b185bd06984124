//! When the ring is too small or nobody reads it, events are lost, and every lost one is counted.

use crate::support::{self, Counts, Gpuscope, Trace, assert_same, number, sim_text, text, ways};

/// Lost events by layer and function, as the `lost` records tell them. Names differ between layers.
fn lost_records(trace: &Trace) -> Counts {
    let mut lost = Counts::new();
    for record in trace.of_type("lost") {
        let name = text(record, "function");
        let layer = if name.starts_with("cuda") { "runtime" } else { "driver" };
        assert!(record["ts"].as_f64() <= record["until"].as_f64(), "{record}");
        *lost.entry((layer.to_owned(), name)).or_default() += number(record, "count");
    }
    lost
}

/// Calls that were made and not written.
fn missing(trace: &Trace) -> Counts {
    let written = trace.written();
    let mut missing = trace.totals("calls");
    for (key, calls) in &mut missing {
        *calls -= written.get(key).copied().unwrap_or(0);
    }
    missing.retain(|_, calls| *calls > 0);
    missing
}

/// Totals are those of the ledger; what is missing among the events is counted as lost.
fn assert_accounted(trace: &Trace) {
    let queries = |layer: &str, name: &str| name.ends_with("StreamQuery") && ["runtime", "driver"].contains(&layer);
    assert_same("totals", &trace.ledger.visible_where(queries), &trace.totals("calls"));
    let missing = missing(trace);
    assert!(!missing.is_empty(), "nothing was lost: this test tests nothing");
    assert_same("lost by function", &missing, &trace.totals("lost"));
    assert_same("lost records", &missing, &lost_records(trace));
    assert_eq!(number(trace.summary(), "lost_events"), missing.values().sum::<u64>());
    assert!(trace.stderr.contains("lost: "), "{}", trace.stderr);
}

#[test]
#[ignore = "needs the simulated CUDA"]
fn the_smallest_ring_loses_events_and_counts_each() {
    let gpusim = sim_text("gpusim");
    let options = ["--ring-size", "4096B", "--filter", "*StreamQuery"];
    for way in ways() {
        let trace = Gpuscope::run(&options, &[&gpusim, "hammer", "0", "1", "2"])
            .tier(way)
            .finish()
            .ok();
        println!("{way}: lost {} events", trace.summary()["lost_events"]);
        assert_accounted(&trace);
    }
}

/// What is not read while gpuscope stands still is counted, and the program does not wait for it.
#[test]
#[ignore = "needs the simulated CUDA"]
fn a_stopped_reader_loses_events_and_counts_each() {
    let gpusim = sim_text("gpusim");
    let options = ["--ring-size", "64KiB", "--filter", "*StreamQuery"];
    let running = Gpuscope::run(&options, &[&gpusim, "hammer", "0", "2", "1"]).start();
    running.until_written("StreamQuery");
    running.signal(libc::SIGSTOP);
    support::eventually("the program ends by itself", || running.stdout().contains("GPUSIM "));
    running.signal(libc::SIGCONT);
    assert_accounted(&running.finish().ok());
}
