//! Series of each metric, none twice, with valid labels and numbers, from any samples at all.
//!
//! - Names of an owner's labels are made valid; one that a metric uses itself gets the prefix `exported_`, in all
//!   metrics alike.
//! - Control codes in values become U+FFFD, except the end of a line.
//! - Samples of a metric with the same labels become one: counters and histograms are added, of others the last stays.
//! - What is not finite, and what is negative though it only grows, is left out.

mod label;

use super::metric::{Histogram, Kind, Metric, Sample, Value};
use crate::owner::Owner;
use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::SystemTime;

/// A metric with its series.
#[derive(Debug)]
pub(crate) struct Family<'a> {
    pub(crate) metric: &'static Metric,
    pub(crate) series: Vec<Series<'a>>,
}

/// Of the labels of a metric; copied only where one had to be cleaned.
type Values<'a> = Cow<'a, [Cow<'static, str>]>;

/// Labels and a value; finite, and not negative where it only grows.
#[derive(Debug)]
pub(crate) struct Series<'a> {
    pub(crate) metric: &'static Metric,
    /// Of the metric's own labels; empty: it has no such label.
    pub(crate) values: Values<'a>,
    pub(crate) owner: Arc<Vec<(String, String)>>,
    pub(crate) value: Value,
    /// When it was read, where that was not with the others.
    pub(crate) read_at: Option<SystemTime>,
}

impl Series<'_> {
    /// The metric's own, none empty.
    pub(crate) fn own_labels(&self) -> impl Iterator<Item = (&str, &str)> {
        let own = self.metric.labels.iter().copied();
        let own = own.zip(self.values.iter().map(AsRef::as_ref));
        own.filter(|(_, value)| !value.is_empty())
    }

    /// All names and values, none empty.
    #[cfg(feature = "otlp")]
    pub(crate) fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        let owner = self.owner.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        self.own_labels().chain(owner)
    }
}

/// The metrics of `samples` in the order in which they first come.
pub(crate) fn families(samples: &[Sample]) -> Vec<Family<'_>> {
    let mut owners = Owners::default();
    let mut families: Vec<Family> = Vec::new();
    let mut of_metric: HashMap<&'static str, usize> = HashMap::new();
    let mut known: HashMap<(usize, Values, usize), usize> = HashMap::with_capacity(samples.len());
    for sample in samples {
        let Some(value) = valid(sample.metric, &sample.value) else {
            continue;
        };
        let place = *of_metric.entry(sample.metric.name).or_insert_with(|| {
            families.push(Family {
                metric: sample.metric,
                series: Vec::new(),
            });
            families.len() - 1
        });
        let family = &mut families[place];
        let (owner, labels) = owners.of(sample.owner.as_ref());
        let values = values_of(sample);
        match known.entry((place, values.clone(), owner)) {
            Entry::Occupied(at) => merge(family.metric.kind, &mut family.series[*at.get()].value, value),
            Entry::Vacant(free) => {
                free.insert(family.series.len());
                family.series.push(Series {
                    metric: family.metric,
                    values,
                    owner: labels,
                    value,
                    read_at: sample.read_at,
                });
            }
        }
    }
    families
}

fn values_of(sample: &Sample) -> Values<'_> {
    let values = sample
        .values
        .get(..sample.metric.labels.len())
        .unwrap_or(&sample.values);
    if values.iter().all(|value| label::is_clean(value)) {
        return Cow::Borrowed(values);
    }
    let cleaned = values.iter().map(|value| Cow::Owned(label::clean(value)));
    Cow::Owned(cleaned.collect())
}

/// Labels of owners, cleaned once; owners that look alike have the same number.
#[derive(Default)]
struct Owners {
    by_address: HashMap<*const Owner, usize>,
    by_labels: HashMap<Arc<Vec<(String, String)>>, usize>,
    labels: Vec<Arc<Vec<(String, String)>>>,
}

impl Owners {
    fn of(&mut self, owner: Option<&Arc<Owner>>) -> (usize, Arc<Vec<(String, String)>>) {
        let address = owner.map_or(std::ptr::null(), Arc::as_ptr);
        let number = match self.by_address.get(&address) {
            Some(number) => *number,
            None => {
                let labels = owner.map_or_else(Vec::new, |owner| label::labels_of(owner));
                let number = self.number_of(Arc::new(labels));
                self.by_address.insert(address, number);
                number
            }
        };
        (number, Arc::clone(&self.labels[number]))
    }

    fn number_of(&mut self, labels: Arc<Vec<(String, String)>>) -> usize {
        *self.by_labels.entry(labels).or_insert_with_key(|labels| {
            self.labels.push(Arc::clone(labels));
            self.labels.len() - 1
        })
    }
}

/// Whether a text may show the value as it is; else [`families`] makes one of it, or leaves it out.
pub(crate) fn is_valid(metric: &Metric, value: &Value) -> bool {
    match (metric.kind, value) {
        (Kind::Histogram, Value::Histogram(histogram)) => is_in_order(histogram),
        (Kind::Histogram, _) | (_, Value::Histogram(_)) => false,
        (_, Value::Integer(_)) => true,
        (kind, Value::Number(number)) => number.is_finite() && !(kind == Kind::Counter && *number < 0.0),
    }
}

fn is_in_order(histogram: &Histogram) -> bool {
    let mut counts = histogram.buckets.iter().map(|(_, count)| *count);
    let within = counts.try_fold(0u64, u64::checked_add);
    let edges = || histogram.buckets.iter().map(|(edge, _)| *edge);
    histogram.sum.is_finite()
        && histogram.sum >= 0.0
        && edges().all(|edge| edge.is_finite() && edge >= 0.0)
        && edges().is_sorted_by(|one, other| one < other)
        && within.is_some_and(|within| within <= histogram.count)
}

/// Values of the metric's own labels as they are, if a text may show them so.
pub(crate) fn clean_values(sample: &Sample) -> Option<&[Cow<'static, str>]> {
    match values_of(sample) {
        Cow::Borrowed(values) => Some(values),
        Cow::Owned(_) => None,
    }
}

/// The labels of an owner, clean.
pub(crate) fn labels_of(owner: &Owner) -> Vec<(String, String)> {
    label::labels_of(owner)
}

/// The value as a text may show it.
fn valid(metric: &Metric, value: &Value) -> Option<Value> {
    let grows = metric.kind == Kind::Counter;
    match (metric.kind, value) {
        (Kind::Histogram, Value::Histogram(histogram)) => in_order(histogram).map(Value::Histogram),
        (Kind::Histogram, _) | (_, Value::Histogram(_)) => None,
        (_, Value::Integer(number)) => Some(Value::Integer(*number)),
        (_, Value::Number(number)) => (number.is_finite() && !(grows && *number < 0.0)).then_some(value.clone()),
    }
}

/// With finite, rising edges, and no fewer in all than in the buckets.
fn in_order(histogram: &Histogram) -> Option<Histogram> {
    let negative = |(edge, _): &(f64, u64)| *edge < 0.0;
    if !histogram.sum.is_finite() || histogram.sum < 0.0 || histogram.buckets.iter().any(negative) {
        return None;
    }
    let mut ordered = Histogram {
        sum: histogram.sum,
        ..Histogram::default()
    };
    let finite = histogram.buckets.iter().filter(|(edge, _)| edge.is_finite());
    add_buckets(&mut ordered.buckets, finite);
    ordered.count = histogram.count.max(within(&ordered.buckets));
    Some(ordered)
}

/// How many the buckets hold.
pub(crate) fn within(buckets: &[(f64, u64)]) -> u64 {
    buckets.iter().map(|(_, count)| count).sum()
}

/// Their sum fits into a number.
fn add_buckets<'a>(to: &mut Vec<(f64, u64)>, buckets: impl Iterator<Item = &'a (f64, u64)>) {
    to.extend(buckets);
    to.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    to.dedup_by(|(edge, count), (before, sum)| {
        let same = edge == before;
        if same {
            *sum = sum.saturating_add(*count);
        }
        same
    });
    let mut room = u64::MAX;
    for (_, count) in to {
        *count = (*count).min(room);
        room -= *count;
    }
}

fn merge(kind: Kind, to: &mut Value, value: Value) {
    match (kind, to, value) {
        (Kind::Counter, to, value) => *to = sum(to, &value),
        (_, Value::Histogram(to), Value::Histogram(value)) => {
            to.sum = finite(to.sum + value.sum);
            add_buckets(&mut to.buckets, value.buckets.iter());
            to.count = to.count.saturating_add(value.count).max(within(&to.buckets));
        }
        (_, to, value) => *to = value,
    }
}

#[allow(clippy::cast_precision_loss)]
fn sum(one: &Value, other: &Value) -> Value {
    match (one, other) {
        (Value::Integer(one), Value::Integer(other)) => Value::Integer(one.saturating_add(*other)),
        (Value::Integer(whole), Value::Number(number)) | (Value::Number(number), Value::Integer(whole)) => {
            Value::Number(finite(number + *whole as f64))
        }
        (Value::Number(one), Value::Number(other)) => Value::Number(finite(one + other)),
        (one, _) => one.clone(),
    }
}

fn finite(sum: f64) -> f64 {
    sum.min(f64::MAX)
}
