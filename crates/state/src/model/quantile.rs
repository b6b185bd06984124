//! Percentiles of the times of calls, of which only how many fell into each bucket is known.

use crate::wire::Total;

/// The upper edge of the bucket that holds the call at `share` of all, at most the maximum.
pub(super) fn quantile_ns(total: &Total, share: f64) -> u64 {
    let calls: u64 = total.bucket.iter().sum();
    let rank = (calls as f64 * share).ceil().max(1.0) as u64;
    let mut seen = 0;
    for (index, count) in total.bucket.iter().enumerate() {
        seen += count;
        if seen >= rank {
            return bucket_end_ns(index).min(total.max_ns);
        }
    }
    total.max_ns
}

/// Where bucket `index` ends; `bucket_of` in `crates/collect/src/bpf/calls.bpf.c` is its counterpart.
pub(super) fn bucket_end_ns(index: usize) -> u64 {
    let (octave, quarter) = (5 + index / 4, (index % 4) as u64);
    (1u64 << octave) + ((quarter + 1) << (octave - 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::BUCKETS;

    #[test]
    fn buckets_are_contiguous_and_a_quarter_octave_wide() {
        assert_eq!(bucket_end_ns(0), 40);
        assert_eq!(bucket_end_ns(3), 64);
        assert_eq!(bucket_end_ns(4), 80);
    }

    #[test]
    fn a_quantile_never_exceeds_the_maximum() {
        let mut total = Total {
            untimed: 0,
            errors: 0,
            total_ns: 300,
            max_ns: 101,
            bytes: 0,
            bucket: [0; BUCKETS],
        };
        total.bucket[6] = 3;
        assert_eq!(quantile_ns(&total, 0.99), 101);
    }
}
