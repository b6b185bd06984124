//! Memory that programs hold, and what came and went.

use super::{Label, Traced};
use crate::model::fleet::{AGES, Allocated, Reading};
use crate::serve::metric::{Metric, Sample, Value};
use crate::serve::metrics::memory as table;

/// What is held now, by living processes.
pub(super) fn held(traced: &Traced, reading: &Reading, to: &mut Vec<Sample>) {
    let held = &reading.held;
    let mut put = |metric: &'static Metric, labels: Vec<Label>, value: u64| {
        to.push(Sample::new(metric, labels, Value::Integer(value)).of(&reading.owner));
    };
    for ((family, device), (bytes, count)) in &held.families {
        let labels = || {
            let mut labels: Vec<Label> = vec![family.name().into()];
            labels.extend(traced.place(device.as_deref()));
            labels
        };
        put(&table::MEMORY_HELD_BYTES, labels(), *bytes);
        put(&table::MEMORY_ALLOCATIONS, labels(), *count);
    }
    for (device, bytes) in &held.peak_bytes {
        put(
            &table::MEMORY_PEAK_BYTES,
            traced.place(device.as_deref()).to_vec(),
            *bytes,
        );
    }
    for (device, bytes) in &held.driver_bytes {
        put(&table::MEMORY_DRIVER_BYTES, traced.place(Some(device)).to_vec(), *bytes);
    }
    for (device, bytes) in &held.unattributed_bytes {
        put(
            &table::MEMORY_UNATTRIBUTED_BYTES,
            traced.place(Some(device)).to_vec(),
            *bytes,
        );
    }
    for (device, bytes) in &held.earlier_bytes {
        put(
            &table::MEMORY_EARLIER_BYTES,
            traced.place(Some(device)).to_vec(),
            *bytes,
        );
    }
    if !held.families.is_empty() {
        for ((_, age), (count, bytes)) in AGES.iter().zip(held.ages) {
            put(&table::MEMORY_AGE_BYTES, vec![(*age).into()], bytes);
            put(&table::MEMORY_AGE_ALLOCATIONS, vec![(*age).into()], count);
        }
    }
}

/// What came and went, of all processes that ever were.
pub(super) fn moved(reading: &Reading, to: &mut Vec<Sample>) {
    type Counter = (&'static Metric, fn(&Allocated) -> u64);
    const COUNTERS: [Counter; 5] = [
        (&table::MEMORY_ALLOCATED_BYTES, |memory| memory.allocated_bytes),
        (&table::MEMORY_ALLOCATED, |memory| memory.allocations),
        (&table::MEMORY_FREED_BYTES, |memory| memory.freed_bytes),
        (&table::MEMORY_FREED, |memory| memory.frees),
        (&table::MEMORY_FAILED_ALLOCATIONS, |memory| memory.failed),
    ];
    for (family, memory) in &reading.sums.memory {
        for (metric, of) in COUNTERS {
            let labels = vec![family.name().into()];
            to.push(Sample::new(metric, labels, Value::Integer(of(memory))).of(&reading.owner));
        }
    }
    if !reading.sums.memory.is_empty() {
        let bytes = Value::Integer(reading.sums.unreturned_bytes);
        to.push(Sample::new(&table::MEMORY_UNRETURNED_BYTES, Vec::new(), bytes).of(&reading.owner));
    }
}
