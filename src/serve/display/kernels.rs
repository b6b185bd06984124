//! The busiest kernels, of all owners together.

use super::pace::Rates;
use super::reading::{label, number};
use super::units::count;
use super::{Line, Look};
use crate::serve::metric::Sample;
use crate::text::quantity::escaped;
use std::collections::BTreeMap;

/// What all kernels without a place of their own are called.
const OTHER: &str = "other";

/// In all, and each second where that is known.
type Launches = (f64, Option<f64>);

/// At most `most` lines below a heading; nothing where no kernel is known by name.
pub(crate) fn lines(scrape: &[Sample], rates: &Rates, most: usize) -> Vec<Line> {
    let busiest = busiest(scrape, |sample| rates.per_second(sample));
    if busiest.is_empty() || most == 0 {
        return Vec::new();
    }
    let heading = (Look::Heading, row(["launch/s", "launches", "kernel"]));
    let told = |(name, (all, speed)): (&str, Launches)| {
        let speed = speed.map_or_else(|| "-".to_owned(), count);
        (Look::Plain, row([&speed, &count(all), &escaped(name)]))
    };
    std::iter::once(heading)
        .chain(busiest.into_iter().take(most).map(told))
        .collect()
}

fn row([speed, all, name]: [&str; 3]) -> String {
    format!("{speed:>8} {all:>8} {name}")
}

/// Those that are launched most often now come first, then those that were; without those that have no name of their own.
pub(crate) fn busiest(scrape: &[Sample], speed_of: impl Fn(&Sample) -> Option<f64>) -> Vec<(&str, Launches)> {
    let mut by_name: BTreeMap<&str, Launches> = BTreeMap::new();
    let of_kernels = scrape
        .iter()
        .filter(|sample| sample.metric.name == "gpuscope_kernel_launches_total");
    for sample in of_kernels.filter(|sample| label(sample, "kernel") != OTHER) {
        let (all, speed) = by_name.entry(label(sample, "kernel")).or_default();
        *all += number(sample);
        *speed = match (*speed, speed_of(sample)) {
            (Some(sum), Some(more)) => Some(sum + more),
            (sum, more) => sum.or(more),
        };
    }
    let mut all: Vec<(&str, Launches)> = by_name.into_iter().collect();
    all.sort_by(|(_, (left, left_speed)), (_, (right, right_speed))| {
        let by_speed = right_speed.unwrap_or(0.0).total_cmp(&left_speed.unwrap_or(0.0));
        by_speed.then(right.total_cmp(left))
    });
    all
}
