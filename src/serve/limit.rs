//! No more series of a metric than a hard limit, and how many were left out.
//!
//! Which stay does not flap: those that were there at the last scrape stay, then others come in the order of the
//! samples. A histogram is one series here, however many buckets it has.

use super::metric::{Metric, Sample, Value};
use super::metrics;
use super::metrics::own::{SERIES, SERIES_DROPPED};
use crate::owner::Owner;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, LazyLock};

/// Which series of a metric stay within its hard limit.
#[derive(Debug)]
pub(crate) struct Limit {
    most: usize,
    hashes: RandomState,
    /// Series of the last scrape by metric, as hashes of their labels.
    shown: HashMap<&'static str, HashSet<u64>>,
}

/// How many series of a metric stayed, and how many did not.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    shown: u64,
    dropped: u64,
}

impl Limit {
    /// At most `most` series of each metric.
    #[must_use]
    pub(crate) fn new(most: usize) -> Limit {
        Limit {
            most,
            hashes: RandomState::new(),
            shown: HashMap::new(),
        }
    }

    /// Another limit from the next scrape on.
    pub(crate) fn set(&mut self, most: usize) {
        self.most = most;
    }

    /// Takes out what is too much, adds `gpuscope_series` and `gpuscope_series_dropped` of every metric that is there
    /// (these two not counted), and puts all in the order of the table of metrics. Once per scrape.
    pub(crate) fn apply(&mut self, samples: &mut Vec<Sample>) {
        samples.sort_by_cached_key(|sample| rank(sample.metric));
        let hashes = self.hash_all(samples);
        let mut counts = Vec::new();
        let mut stays = Vec::with_capacity(samples.len());
        let mut shown = HashMap::new();
        for group in samples.chunk_by(|one, other| one.metric.name == other.metric.name) {
            let hashes = &hashes[stays.len()..stays.len() + group.len()];
            let metric = group[0].metric;
            let chosen = self.choose(metric, hashes);
            stays.extend(hashes.iter().map(|hash| chosen.contains(hash)));
            let distinct = hashes.iter().collect::<HashSet<_>>().len();
            let dropped = (distinct - chosen.len()) as u64;
            let stay = chosen.len() as u64;
            counts.push((metric, Count { shown: stay, dropped }));
            shown.insert(metric.name, chosen);
        }
        self.shown = shown;
        let mut stays = stays.into_iter();
        samples.retain(|_| stays.next().unwrap_or(true));
        tell(samples, &counts);
    }

    /// The hashes of those that stay.
    fn choose(&self, metric: &Metric, hashes: &[u64]) -> HashSet<u64> {
        let nothing = HashSet::new();
        let before = self.shown.get(metric.name).unwrap_or(&nothing);
        let (known, new): (Vec<u64>, Vec<u64>) = hashes.iter().partition(|hash| before.contains(hash));
        let mut chosen = HashSet::with_capacity(hashes.len().min(self.most));
        for hash in known.into_iter().chain(new) {
            if chosen.len() >= self.most {
                break;
            }
            chosen.insert(hash);
        }
        chosen
    }

    fn hash_all(&self, samples: &[Sample]) -> Vec<u64> {
        let mut owners: HashMap<*const Owner, u64> = HashMap::new();
        let mut hash = |sample: &Sample| {
            let owner = sample.owner.as_ref().map(|owner| {
                let seen = owners.entry(Arc::as_ptr(owner));
                *seen.or_insert_with(|| self.hashes.hash_one(owner))
            });
            self.hashes.hash_one((&sample.values, owner))
        };
        samples.iter().map(&mut hash).collect()
    }
}

/// Where a metric stands in the table.
fn rank(metric: &Metric) -> usize {
    static RANKS: LazyLock<HashMap<&str, usize>> = LazyLock::new(|| {
        metrics::all()
            .enumerate()
            .map(|(rank, metric)| (metric.name, rank))
            .collect()
    });
    RANKS.get(metric.name).copied().unwrap_or(usize::MAX)
}

/// Adds the samples that say so.
fn tell(samples: &mut Vec<Sample>, counts: &[(&'static Metric, Count)]) {
    let counts = || {
        counts
            .iter()
            .filter(|(metric, _)| ![&SERIES, &SERIES_DROPPED].contains(metric))
    };
    let sample = |of: &'static Metric, metric: &'static Metric, number| {
        Sample::new(of, vec![metric.name.into()], Value::Integer(number))
    };
    let shown = counts().map(|(metric, count)| sample(&SERIES, metric, count.shown));
    let dropped = counts().map(|(metric, count)| sample(&SERIES_DROPPED, metric, count.dropped));
    let told: Vec<Sample> = shown.chain(dropped).collect();
    let place = samples.partition_point(|before| rank(before.metric) <= rank(&SERIES));
    samples.splice(place..place, told);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::fixture::{of_every_metric, owner};
    use crate::serve::metrics::{api, own};

    fn errors(names: &[u32]) -> Vec<Sample> {
        let owner = owner(&[("comm", "train")]);
        let sample = |name: &u32| {
            let values = vec!["driver".into(), "cuMemAlloc_v2".into(), name.to_string().into()];
            Sample::new(&api::API_ERRORS, values, Value::Integer(1)).of(&owner)
        };
        names.iter().map(sample).collect()
    }

    fn shown(samples: &[Sample]) -> Vec<&str> {
        let of_errors = samples.iter().filter(|sample| sample.metric == &api::API_ERRORS);
        of_errors.map(|sample| sample.values[2].as_ref()).collect()
    }

    fn told(samples: &[Sample], by: &Metric, metric: &Metric) -> Option<Value> {
        let found = samples
            .iter()
            .find(|sample| sample.metric == by && sample.values[0] == metric.name);
        found.map(|sample| sample.value.clone())
    }

    #[test]
    fn what_is_too_much_is_left_out_and_told() {
        let mut samples = errors(&[1, 2, 3, 4, 5]);
        Limit::new(3).apply(&mut samples);
        assert_eq!(shown(&samples), ["1", "2", "3"]);
        assert_eq!(told(&samples, &own::SERIES, &api::API_ERRORS), Some(Value::Integer(3)));
        assert_eq!(
            told(&samples, &own::SERIES_DROPPED, &api::API_ERRORS),
            Some(Value::Integer(2))
        );
    }

    #[test]
    fn who_was_there_before_stays() {
        let mut limit = Limit::new(3);
        limit.apply(&mut errors(&[3, 4]));
        for _ in 0..3 {
            let mut samples = errors(&[1, 2, 3, 4, 5]);
            limit.apply(&mut samples);
            assert_eq!(shown(&samples), ["1", "3", "4"]);
        }
        let mut samples = errors(&[5, 4, 2]);
        limit.apply(&mut samples);
        assert_eq!(shown(&samples), ["5", "4", "2"], "there is room again");
    }

    #[test]
    fn a_new_limit_holds_from_the_next_scrape_on() {
        let mut limit = Limit::new(3);
        limit.apply(&mut errors(&[1, 2, 3]));
        limit.set(1);
        let mut samples = errors(&[1, 2, 3]);
        limit.apply(&mut samples);
        assert_eq!(shown(&samples).len(), 1);
        assert_eq!(
            told(&samples, &own::SERIES_DROPPED, &api::API_ERRORS),
            Some(Value::Integer(2))
        );
    }

    #[test]
    fn doubles_are_one_series() {
        let mut samples = errors(&[1, 1, 2, 1]);
        Limit::new(2).apply(&mut samples);
        assert_eq!(shown(&samples), ["1", "1", "2", "1"]);
        assert_eq!(told(&samples, &own::SERIES, &api::API_ERRORS), Some(Value::Integer(2)));
    }

    #[test]
    fn samples_come_in_the_order_of_the_table() {
        let mut samples = of_every_metric();
        samples.retain(|sample| ![&SERIES, &SERIES_DROPPED].contains(&sample.metric));
        let before = samples.len();
        samples.reverse();
        Limit::new(10).apply(&mut samples);
        let ranks: Vec<usize> = samples.iter().map(|sample| rank(sample.metric)).collect();
        assert!(ranks.is_sorted());
        let metrics = metrics::all().count() - 2;
        assert_eq!(samples.len(), before + 2 * metrics);
    }

    #[test]
    fn without_samples_nothing_is_told() {
        let mut samples = Vec::new();
        Limit::new(10).apply(&mut samples);
        assert_eq!(samples, []);
    }
}
