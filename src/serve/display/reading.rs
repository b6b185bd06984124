//! Looking samples up.

use crate::serve::metric::{Sample, Value};

/// The samples of a metric.
pub(crate) fn of<'a>(scrape: &'a [Sample], name: &'static str) -> impl Iterator<Item = &'a Sample> {
    scrape.iter().filter(move |sample| sample.metric.name == name)
}

/// The sum of a metric; `None`: there is no sample.
pub(crate) fn total(scrape: &[Sample], name: &'static str) -> Option<f64> {
    of(scrape, name).map(number).reduce(|sum, value| sum + value)
}

/// The number of a sample; of a histogram, how many it counts.
pub(crate) fn number(sample: &Sample) -> f64 {
    match &sample.value {
        Value::Integer(number) => *number as f64,
        Value::Number(number) => *number,
        Value::Histogram(histogram) => histogram.count as f64,
    }
}

/// The value of a label of the metric's own, empty where it has none.
pub(crate) fn label<'a>(sample: &'a Sample, name: &str) -> &'a str {
    let labels = sample.metric.labels.iter().zip(&sample.values);
    labels
        .filter(|(known, _)| **known == name)
        .map(|(_, value)| value.as_ref())
        .next()
        .unwrap_or("")
}
