//! How long calls took: four buckets for each power of two, whatever they took.

/// Four for each power of two of 64 bits.
const BUCKETS: usize = 256;

/// How long calls took.
#[derive(Debug, Clone)]
pub(super) struct Histogram {
    counts: Box<[u64; BUCKETS]>,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram {
            counts: Box::new([0; BUCKETS]),
        }
    }
}

impl Histogram {
    pub(super) fn add(&mut self, ns: u64) {
        self.counts[bucket(ns)] += 1;
    }

    /// At most a quarter more than what `share` of all took no longer than; never above `max`. `None`: of nothing.
    pub(super) fn quantile(&self, share: f64, max: u64) -> Option<u64> {
        let all: u64 = self.counts.iter().sum();
        let rank = (all as f64 * share).ceil().max(1.0) as u64;
        let mut seen = 0;
        let place = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        });
        place.map(|index| end_of(index).min(max))
    }

    /// Buckets that hold something: where each begins and ends, ns, and how many.
    pub(super) fn buckets(&self) -> Vec<Bucket> {
        let all = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        all.map(|(index, count)| Bucket {
            from_ns: start_of(index),
            to_ns: end_of(index),
            count: *count,
        })
        .collect()
    }
}

/// Calls that took from `from_ns` to less than `to_ns`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Bucket {
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
    pub count: u64,
}

fn bucket(ns: u64) -> usize {
    if ns < 4 {
        return ns as usize;
    }
    let octave = ns.ilog2() as usize;
    octave * 4 + (ns >> (octave - 2) & 3) as usize
}

fn start_of(index: usize) -> u64 {
    if index < 8 {
        return index.min(4) as u64;
    }
    let (octave, quarter) = (index / 4, (index % 4) as u64);
    (1u64 << octave) + (quarter << (octave - 2))
}

fn end_of(index: usize) -> u64 {
    if index < 8 {
        return index as u64 + 1;
    }
    let (octave, quarter) = (index / 4, (index % 4) as u64);
    (1u64 << octave).saturating_add((quarter + 1) << (octave - 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_time_lies_in_its_bucket(ns: u64) {
            let index = bucket(ns);
            prop_assert!(index < BUCKETS);
            prop_assert!(start_of(index) <= ns && (ns < end_of(index) || end_of(index) == u64::MAX));
        }

        #[test]
        fn a_quantile_is_at_most_a_quarter_too_high(mut times in proptest::collection::vec(0u64..1 << 50, 1..200)) {
            let mut histogram = Histogram::default();
            times.iter().for_each(|ns| histogram.add(*ns));
            times.sort_unstable();
            let max = *times.last().unwrap();
            for share in [0.5, 0.99] {
                let exact = times[(times.len() as f64 * share).ceil() as usize - 1];
                let said = histogram.quantile(share, max).unwrap();
                prop_assert!(said >= exact && said as f64 <= exact as f64 * 1.25 + 1.0, "{said} for {exact}");
            }
        }
    }

    #[test]
    fn of_nothing_there_is_no_quantile() {
        assert_eq!(Histogram::default().quantile(0.5, 0), None);
    }
}
