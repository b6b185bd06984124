//! Counters that go on where the last gpuscope left them, after a restart or an upgrade.
//!
//! ```text
//!  the last gpuscope, at its end ─► file (version 1) ─► Carry ─► added to what is counted now
//! ```
//!
//! Only what was told last may be gone on with: a counter that fell would be taken for one that began anew, and counted
//! twice. So the file is written at an orderly end alone, and is gone once it has been read. After a crash counters
//! begin anew, as they should.

mod file;
#[cfg(test)]
mod tests;

pub(crate) use file::{Left, take, write};

use super::metric::{Collector, Histogram, Kind, Metric, Sample, Value};
use crate::owner::Owner;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

type Values = Vec<Cow<'static, str>>;
/// A series among all.
type Key = (&'static str, Values, Arc<Owner>);

/// What the last gpuscope had counted.
#[derive(Debug, Default)]
pub(crate) struct Carry {
    series: HashMap<Key, Carried>,
    since: Option<Instant>,
}

#[derive(Debug)]
struct Carried {
    metric: &'static Metric,
    value: Value,
    /// It was counted again since.
    matched: bool,
    /// So was something else of its owner.
    owner_seen: bool,
}

/// Whether a metric is one of those that go on: what was traced. What drivers count goes on by itself.
pub(super) fn goes_on(metric: &Metric) -> bool {
    let traced = !matches!(metric.collector, Collector::Nvml | Collector::Xid | Collector::Own);
    traced && metric.by_owner && matches!(metric.kind, Kind::Counter | Kind::Histogram)
}

impl Carry {
    /// Goes on from `left`, now.
    #[must_use]
    pub(crate) fn from(left: Vec<Sample>) -> Carry {
        let carried = |sample: Sample| {
            let owner = sample.owner.unwrap_or_default();
            let carried = Carried {
                metric: sample.metric,
                value: sample.value,
                matched: false,
                owner_seen: false,
            };
            ((sample.metric.name, sample.values, owner), carried)
        };
        Carry {
            series: left.into_iter().map(carried).collect(),
            since: Some(Instant::now()),
        }
    }

    /// Series that are gone on with.
    #[must_use]
    pub(crate) fn series(&self) -> usize {
        self.series.len()
    }

    /// Adds what was counted before to `samples`, of which traced ones are all there; series that nobody has counted again are
    /// there until their owner's end, or for `retain`.
    pub(crate) fn add_to(&mut self, samples: &mut Vec<Sample>, retain: Duration, now: Instant) {
        if self.series.is_empty() {
            return;
        }
        let owners: HashSet<Arc<Owner>> = samples
            .iter()
            .filter(|sample| goes_on(sample.metric))
            .filter_map(|sample| sample.owner.clone())
            .collect();
        let mut again = HashSet::new();
        for sample in samples.iter_mut().filter(|sample| goes_on(sample.metric)) {
            let key = (
                sample.metric.name,
                sample.values.clone(),
                sample.owner.clone().unwrap_or_default(),
            );
            if let Some(carried) = self.series.get_mut(&key) {
                carried.matched = true;
                sample.value = sum(&sample.value, &carried.value);
                again.insert(key);
            }
        }
        let is_old = self
            .since
            .is_some_and(|since| now.saturating_duration_since(since) > retain);
        self.series.retain(|key, carried| {
            let owned = owners.contains(&key.2);
            // a series that ends must not come again with less
            let ended = carried.matched && !again.contains(key) || carried.owner_seen && !owned;
            carried.owner_seen |= owned;
            !ended && (owned || carried.matched || !is_old)
        });
        let alone = self.series.iter().filter(|(_, carried)| !carried.matched);
        samples.extend(alone.map(|((_, values, owner), carried)| {
            Sample::new(carried.metric, values.clone(), carried.value.clone()).of(owner)
        }));
    }
}

/// Of two values of one counter.
#[allow(clippy::cast_precision_loss)]
fn sum(one: &Value, other: &Value) -> Value {
    let number = |value: &Value| match value {
        Value::Integer(number) => *number as f64,
        Value::Number(number) => *number,
        Value::Histogram(_) => 0.0,
    };
    match (one, other) {
        (Value::Integer(one), Value::Integer(other)) => Value::Integer(one.saturating_add(*other)),
        (Value::Histogram(one), Value::Histogram(other)) => Value::Histogram(both(one, other)),
        (Value::Histogram(_), _) | (_, Value::Histogram(_)) => one.clone(),
        (one, other) => Value::Number((number(one) + number(other)).min(f64::MAX)),
    }
}

fn both(one: &Histogram, other: &Histogram) -> Histogram {
    let mut buckets = one.buckets.clone();
    for (edge, count) in &other.buckets {
        match buckets.iter_mut().find(|(known, _)| known == edge) {
            Some((_, sum)) => *sum = sum.saturating_add(*count),
            None => buckets.push((*edge, *count)),
        }
    }
    buckets.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    Histogram {
        sum: (one.sum + other.sum).min(f64::MAX),
        count: one.count.saturating_add(other.count),
        buckets,
    }
}
