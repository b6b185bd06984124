//! A number that grows, and how fast.

use serde::{Serialize, Serializer};

/// A number that grows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct Count {
    /// Since gpuscope came.
    #[serde(serialize_with = "whole")]
    pub(crate) total: f64,
    /// `None`: this is the first look.
    pub(crate) per_second: Option<f64>,
}

impl Count {
    pub(crate) fn add(&mut self, more: Count) {
        self.total += more.total;
        self.per_second = match (self.per_second, more.per_second) {
            (Some(own), Some(more)) => Some(own + more),
            (own, more) => own.or(more),
        };
    }
}

/// Adds to what may not have been measured so far.
pub(super) fn add(to: &mut Option<Count>, more: Count) {
    to.get_or_insert_default().add(more);
}

/// How fast it grows, where it is known.
pub(crate) fn rate(count: Option<Count>) -> Option<f64> {
    count.and_then(|count| count.per_second)
}

const LARGEST_EXACT: f64 = 9_007_199_254_740_992.0;

/// As an integer where it is one.
pub(super) fn whole<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    match number.fract() == 0.0 && (0.0..LARGEST_EXACT).contains(number) {
        true => serializer.serialize_u64(*number as u64),
        false => serializer.serialize_f64(*number),
    }
}

/// The same of what may not be known.
pub(super) fn optional_whole<S: Serializer>(number: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match number {
        Some(number) => whole(number, serializer),
        None => serializer.serialize_none(),
    }
}
