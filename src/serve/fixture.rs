//! Samples for tests: of every metric, and any at all.

use super::metric::{Histogram, Kind, Metric, Sample, Value};
use super::metrics;
use crate::owner::Owner;
use proptest::prelude::*;
use std::borrow::Cow;
use std::sync::Arc;

/// An owner with these labels.
pub(crate) fn owner(labels: &[(&str, &str)]) -> Arc<Owner> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    Arc::new(Owner {
        labels: labels.iter().map(owned).collect(),
    })
}

/// Two series of every metric, one of those without labels, with whole numbers, fractions and hostile labels.
pub(crate) fn of_every_metric() -> Vec<Sample> {
    let hostile = "a\"b\\c\nd\0e\r,} 1";
    let owners = [owner(&[("comm", "train"), ("pod", "a-0")]), owner(&[("comm", hostile)])];
    let mut samples = Vec::new();
    for (number, metric) in metrics::all().enumerate() {
        let alone = metric.labels.is_empty() && !metric.by_owner;
        for (round, owner) in owners.iter().enumerate().take(if alone { 1 } else { 2 }) {
            let value = value_of(metric.kind, number * 10 + round);
            let values = metric.labels.iter().map(|label| Cow::Owned(format!("{label} {round}")));
            let sample = Sample::new(metric, values.collect(), value);
            samples.push(if metric.by_owner { sample.of(owner) } else { sample });
        }
    }
    samples
}

#[allow(clippy::cast_precision_loss)]
fn value_of(kind: Kind, number: usize) -> Value {
    match kind {
        Kind::Info => Value::Integer(1),
        Kind::Histogram => Value::Histogram(Histogram {
            sum: 1.5,
            count: 10,
            buckets: vec![(1.024e-6, 2), (1e-5, 3), (1.0, 4)],
        }),
        _ if number.is_multiple_of(3) => Value::Number(number as f64 / 7.0),
        _ => Value::Integer(number as u64),
    }
}

/// Samples that nobody would give: of few metrics, thus with many doubles.
pub(crate) fn any_samples() -> impl Strategy<Value = Vec<Sample>> {
    let all: Vec<&'static Metric> = metrics::all().collect();
    let metric = prop::sample::select(vec![all[0], all[1], all[2], all[3], all[all.len() - 1]]);
    let name = prop_oneof!["[a-z]{1,3}", ".{0,3}", Just("le".to_owned()), Just("class".to_owned())];
    let text = || prop_oneof!["[a-b]{0,1}", ".{0,4}", "[\\x00-\\x20\"\\\\]{0,4}"];
    let owner = prop::option::of(prop::collection::vec((name, text()), 0..4));
    let sample =
        (metric, prop::collection::vec(text(), 8), owner, any_value()).prop_map(|(metric, values, owner, value)| {
            Sample {
                metric,
                values: values.into_iter().take(metric.labels.len()).map(Cow::Owned).collect(),
                owner: owner.map(|labels| Arc::new(Owner { labels })),
                value,
                read_at: None,
            }
        });
    prop::collection::vec(sample, 0..30)
}

fn any_value() -> impl Strategy<Value = Value> {
    let number = || prop_oneof![any::<f64>(), 0.0..10.0];
    let buckets = prop::collection::vec((number(), any::<u64>()), 0..5);
    let histogram = (number(), any::<u64>(), buckets);
    prop_oneof![
        any::<u64>().prop_map(Value::Integer),
        number().prop_map(Value::Number),
        histogram.prop_map(|(sum, count, buckets)| Value::Histogram(Histogram { sum, count, buckets })),
    ]
}
