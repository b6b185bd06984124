//! Some of very many values, evenly: each of the first, then every second, every fourth.

/// Some of very many values, evenly.
#[derive(Debug, Clone)]
pub(super) struct Sample<T> {
    most: usize,
    /// One of so many is kept.
    pub every: u64,
    seen: u64,
    pub kept: Vec<T>,
}

impl<T> Sample<T> {
    /// Of at most `most` values, at least 2.
    pub(super) fn new(most: usize) -> Sample<T> {
        Sample {
            most: most.max(2),
            every: 1,
            seen: 0,
            kept: Vec::new(),
        }
    }

    /// One more. `value` is asked for where it is kept.
    pub(super) fn push(&mut self, value: impl FnOnce() -> T) {
        let number = self.seen;
        self.seen += 1;
        if !number.is_multiple_of(self.every) {
            return;
        }
        if self.kept.len() == self.most {
            let mut index = 0;
            self.kept.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.every *= 2;
        }
        if number.is_multiple_of(self.every) {
            self.kept.push(value());
        }
    }
}

/// The value that so many hundredths of all are at most as large as.
pub(super) fn percentile(sorted: &[u64], hundredths: usize) -> u64 {
    let rank = (sorted.len() * hundredths).div_ceil(100).max(1) - 1;
    sorted.get(rank).copied().unwrap_or(0)
}

/// The middle one.
pub(super) fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    percentile(&values, 50)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_many_there_are_those_kept_are_evenly_spread() {
        let mut sample = Sample::new(8);
        (0..100u64).for_each(|number| sample.push(|| number));
        assert_eq!(sample.every, 16);
        assert_eq!(sample.kept, [0, 16, 32, 48, 64, 80, 96]);
    }

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let values: Vec<u64> = (1..=200).collect();
        assert_eq!([50, 99, 100].map(|part| percentile(&values, part)), [100, 198, 200]);
        assert_eq!(
            (percentile(&[7], 99), percentile(&[], 50), median(vec![3, 1, 2])),
            (7, 0, 2)
        );
    }
}
