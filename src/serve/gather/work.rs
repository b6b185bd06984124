//! What GPUs are given to do: launches, copies, waits.

use super::{Label, Traced};
use crate::model::fleet::{Copied, Reading, WaitOf, Waited};
use crate::model::work::{Certainty, CopyClass};
use crate::serve::metric::{Metric, Sample, Value};
use crate::serve::metrics::work as table;
use std::collections::BTreeMap;

/// Of each owner.
const LINES: usize = 10;

/// Samples of one owner.
struct Samples<'a> {
    reading: &'a Reading,
    to: &'a mut Vec<Sample>,
}

impl Samples<'_> {
    fn count(&mut self, metric: &'static Metric, labels: Vec<Label>, count: u64) {
        let sample = Sample::new(metric, labels, Value::Integer(count));
        self.to.push(sample.of(&self.reading.owner));
    }

    fn seconds(&mut self, metric: &'static Metric, labels: Vec<Label>, ns: u64) {
        let sample = Sample::new(metric, labels, Value::Number(ns as f64 / 1e9));
        self.to.push(sample.of(&self.reading.owner));
    }
}

/// Launches, the busiest kernels by name.
pub(super) fn launches(reading: &Reading, to: &mut Vec<Sample>) {
    let launched = reading.sums.launched;
    if launched.succeeded + launched.failed + reading.sums.graph_launches == 0 {
        return;
    }
    let mut samples = Samples { reading, to };
    for (name, count) in &reading.kernels.named {
        samples.count(&table::KERNEL_LAUNCHES, vec![name.to_string().into()], *count);
    }
    if reading.kernels.other > 0 {
        samples.count(&table::KERNEL_LAUNCHES, vec!["other".into()], reading.kernels.other);
    }
    samples.count(&table::LAUNCHES, Vec::new(), launched.succeeded);
    samples.count(&table::LAUNCH_FAILURES, Vec::new(), launched.failed);
    samples.seconds(&table::LAUNCH_CALL_SECONDS, Vec::new(), launched.call_ns);
}

/// Launches of graphs and what these ran: followed in the work plane.
pub(super) fn graphs(reading: &Reading, to: &mut Vec<Sample>) {
    if reading.sums.graph_launches > 0 {
        let mut samples = Samples { reading, to };
        samples.count(&table::GRAPH_LAUNCHES, Vec::new(), reading.sums.graph_launches);
        samples.count(&table::GRAPH_KERNELS, Vec::new(), reading.sums.graph_kernels);
    }
}

/// What hangs, or may.
pub(super) fn open(reading: &Reading, to: &mut Vec<Sample>) {
    let mut samples = Samples { reading, to };
    if let Some(call) = &reading.open {
        samples.seconds(&table::OPEN_CALL_SECONDS, vec![call.function.clone().into()], call.ns);
    }
}

/// Copies by direction and host memory, and their time by how well it is known.
pub(super) fn copies(reading: &Reading, to: &mut Vec<Sample>) {
    let mut samples = Samples { reading, to };
    let mut by_ends: BTreeMap<[&str; 2], Copied> = BTreeMap::new();
    for (class, copied) in &reading.sums.copies {
        by_ends.entry(ends(*class)).or_default().add(copied);
        if copied.timed_bytes > 0 {
            let mut labels: Vec<Label> = ends(*class).map(known).to_vec();
            labels.push(class.certainty().name().into());
            samples.count(&table::COPY_TIMED_BYTES, labels.clone(), copied.timed_bytes);
            samples.seconds(&table::COPY_TIMED_SECONDS, labels, copied.timed_ns);
        }
    }
    for (ends, copied) in by_ends {
        let labels = || ends.map(known).to_vec();
        samples.count(&table::COPIES, labels(), copied.count);
        samples.count(&table::COPY_BYTES, labels(), copied.bytes);
        samples.seconds(&table::COPY_CALL_SECONDS, labels(), copied.call_ns);
    }
}

/// Direction and host memory as labels have them.
fn ends(class: CopyClass) -> [&'static str; 2] {
    [
        class.direction.map_or("unknown", |direction| direction.name()),
        class.host.map_or("", |host| host.name()),
    ]
}

fn known(name: &str) -> Label {
    name.to_owned().into()
}

/// Waits, asked for and hidden, and when devices surely had nothing to do.
pub(super) fn waits(traced: &Traced, reading: &Reading, to: &mut Vec<Sample>) {
    let mut samples = Samples { reading, to };
    for (function, waited) in by_function(traced, reading) {
        samples.count(&table::SYNC_WAITS, vec![function.to_owned().into()], waited.count);
        samples.seconds(
            &table::SYNC_BLOCKED_SECONDS,
            vec![function.to_owned().into()],
            waited.ns,
        );
    }
    for (kind, waited) in &reading.sums.hidden {
        samples.count(&table::HIDDEN_WAITS, vec![kind.name().into()], waited.count);
        samples.seconds(&table::HIDDEN_WAIT_SECONDS, vec![kind.name().into()], waited.ns);
    }
    let used = reading.sums.used;
    if used.idle_at_least_ns + used.busy_at_most_ns > 0 {
        samples.seconds(&table::GPU_IDLE_AT_LEAST_SECONDS, Vec::new(), used.idle_at_least_ns);
        samples.seconds(&table::GPU_BUSY_AT_MOST_SECONDS, Vec::new(), used.busy_at_most_ns);
        samples.count(&table::GPU_IDLE_INFERRED_PROCESSES, Vec::new(), reading.held.inferred);
    }
}

/// Lines of programs that threads wait at.
pub(super) fn sites(traced: &Traced, reading: &Reading, to: &mut Vec<Sample>) {
    let mut samples = Samples { reading, to };
    for (line, waits) in reading.sums.lines(LINES) {
        for (of, ns) in waits {
            let wait = match of {
                WaitOf::Asked(row) => function(traced, row),
                WaitOf::Hidden(kind) => kind.name(),
            };
            let labels = vec![wait.to_owned().into(), line.to_string().into()];
            samples.seconds(&table::WAIT_SITE_SECONDS, labels, ns);
        }
    }
}

/// Idle time by device and reason.
pub(super) fn waste(traced: &Traced, reading: &Reading, to: &mut Vec<Sample>) {
    let mut samples = Samples { reading, to };
    for (key, ns) in &reading.sums.waste {
        let certainty = if key.inferred {
            Certainty::Inferred
        } else {
            Certainty::Bound
        };
        let mut labels: Vec<Label> = vec![key.reason.name().into(), certainty.name().into()];
        labels.extend(traced.place(key.device.as_deref()));
        samples.seconds(&table::WASTE_GPU_SECONDS, labels, *ns);
    }
}

fn by_function<'a>(traced: &Traced<'a>, reading: &Reading) -> BTreeMap<&'a str, Waited> {
    let mut by_function: BTreeMap<&str, Waited> = BTreeMap::new();
    for (row, waited) in &reading.sums.waits {
        by_function.entry(function(traced, *row)).or_default().add(*waited);
    }
    by_function
}

fn function<'a>(traced: &Traced<'a>, row: u32) -> &'a str {
    traced
        .catalog
        .rows
        .get(row as usize)
        .map_or("?", |row| row.symbol.as_str())
}
