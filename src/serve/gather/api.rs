//! Calls and errors.

use super::{Label, Traced};
use crate::catalog::{Catalog, Layer, Row};
use crate::model::fleet::{Calls, EDGES_NS, OTHER_CODE, Reading};
use crate::serve::metric::{Histogram, Sample, Value};
use crate::serve::metrics::api::{API_CALLS, API_DURATION_SECONDS, API_ERRORS, API_SECONDS};

/// Calls by layer and class, without those of the kernel, and how long they took.
pub(super) fn calls(traced: &Traced, reading: &Reading, to: &mut Vec<Sample>) {
    for (labels, calls) in by_class(traced, reading) {
        let count = Value::Integer(calls.calls);
        to.push(Sample::new(&API_CALLS, labels.clone(), count).of(&reading.owner));
        if calls.timed > 0 {
            let seconds = Value::Number(calls.total_ns as f64 / 1e9);
            to.push(Sample::new(&API_SECONDS, labels, seconds).of(&reading.owner));
        }
    }
}

/// How long the same calls took each, of those that were timed.
pub(super) fn durations(traced: &Traced, reading: &Reading, to: &mut Vec<Sample>) {
    for (labels, calls) in by_class(traced, reading).filter(|(_, calls)| calls.timed > 0) {
        let durations = Value::Histogram(histogram(calls));
        to.push(Sample::new(&API_DURATION_SECONDS, labels, durations).of(&reading.owner));
    }
}

fn by_class<'a>(traced: &'a Traced, reading: &'a Reading) -> impl Iterator<Item = (Vec<Label>, &'a Calls)> {
    reading.sums.calls.iter().filter_map(|((library, class), calls)| {
        let library = traced.catalog.library_with(*library)?;
        let labels = || vec![library.name.clone().into(), class.name().into()];
        (library.layer != Layer::Kernel).then(|| (labels(), calls))
    })
}

fn histogram(calls: &Calls) -> Histogram {
    let edges = EDGES_NS.iter().zip(&calls.buckets);
    Histogram {
        sum: calls.total_ns as f64 / 1e9,
        count: calls.timed,
        buckets: edges.map(|(edge, count)| (*edge as f64 / 1e9, *count)).collect(),
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
