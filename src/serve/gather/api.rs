//! Calls and errors.

use super::{Label, Traced};
use crate::catalog::{Catalog, Layer, Row};
use crate::model::fleet::{Calls, EDGES_NS, OTHER_CODE, Reading};
use crate::serve::metric::{Histogram, Sample, Value};
use crate::serve::metrics::api::{API_CALLS, API_DURATION_SECONDS, API_ERRORS};

/// Of the edges of durations, each how manieth is shown where not all are: 16 us, 1 ms, 67 ms, 4.3 s.
const COARSE: usize = 3;

/// Calls by layer and class, without those of the kernel. `fine`: with all buckets.
pub(super) fn calls(traced: &Traced, reading: &Reading, fine: bool, to: &mut Vec<Sample>) {
    for ((library, class), calls) in &reading.sums.calls {
        let library = traced.catalog.library_with(*library);
        let Some(library) = library.filter(|library| library.layer != Layer::Kernel) else {
            continue;
        };
        let labels = || vec![library.name.clone().into(), class.name().into()];
        let count = Value::Integer(calls.calls);
        to.push(Sample::new(&API_CALLS, labels(), count).of(&reading.owner));
        if calls.timed > 0 {
            let durations = Value::Histogram(histogram(calls, if fine { 1 } else { COARSE }));
            to.push(Sample::new(&API_DURATION_SECONDS, labels(), durations).of(&reading.owner));
        }
    }
}

/// With every `step`th edge, the last one among them.
fn histogram(calls: &Calls, step: usize) -> Histogram {
    let edges = EDGES_NS.chunks(step).zip(calls.buckets.chunks(step));
    let bucket = |(edges, counts): (&[u64], &[u64])| {
        let edge = edges.last().copied().unwrap_or_default();
        (edge as f64 / 1e9, counts.iter().sum())
    };
    Histogram {
        sum: calls.total_ns as f64 / 1e9,
        count: calls.timed,
        buckets: edges.map(bucket).collect(),
    }
}

/// Failed calls by function and error, without those of the kernel.
pub(super) fn errors(traced: &Traced, reading: &Reading, to: &mut Vec<Sample>) {
    let catalog = traced.catalog;
    for ((row, code), count) in &reading.sums.failures {
        let Some(row) = catalog.rows.get(*row as usize) else {
            continue;
        };
        let library = catalog.library_with(row.library);
        if library.is_some_and(|library| library.layer == Layer::Kernel) {
            continue;
        }
        let layer = library.map_or("?", |library| &library.name);
        let error = error_name(catalog, row, *code);
        let labels = vec![layer.to_owned().into(), row.symbol.clone().into(), error];
        to.push(Sample::new(&API_ERRORS, labels, Value::Integer(*count)).of(&reading.owner));
    }
}

/// What a call of `row` that failed with `code` has answered: a name, or a number.
pub(super) fn error_name(catalog: &Catalog, row: &Row, code: i32) -> Label {
    if code == OTHER_CODE {
        return "other".into();
    }
    let name = catalog.error_name(row, code.into());
    name.map_or_else(|| code.to_string(), str::to_owned).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_edges_have_the_same_counts_below_them() {
        let mut calls = Calls {
            calls: 100,
            timed: 100,
            total_ns: 5_000_000_000,
            ..Calls::default()
        };
        (1..)
            .zip(&mut calls.buckets)
            .for_each(|(count, bucket)| *bucket = count);
        let below = |step: usize| {
            let histogram = histogram(&calls, step);
            let mut sum = 0;
            let below = histogram.buckets.iter().map(move |(edge, count)| {
                sum += count;
                (edge.to_bits(), sum)
            });
            (histogram.count, below.collect::<Vec<(u64, u64)>>())
        };
        let ((all, fine), (same, coarse)) = (below(1), below(COARSE));
        assert_eq!((all, same, fine.len(), coarse.len()), (100, 100, 12, 4));
        assert!(coarse.iter().all(|bucket| fine.contains(bucket)));
        assert_eq!(coarse.last(), fine.last());
    }
}
