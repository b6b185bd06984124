//! How much work of which kind, in so few numbers that it can be kept for each of thousands of calls.

const BUCKETS: usize = 16;
/// Two parts of a sequence are alike when no more than one in so many pieces of their work differs.
const ALIKE: u64 = 10;

/// Pieces of work, counted by a hash of what they are. As a sum from a beginning on, the difference of two is what lies
/// between.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sketch([u32; BUCKETS]);

impl Sketch {
    pub(super) fn add(&mut self, symbol: u64) {
        let bucket = &mut self.0[(symbol >> 60) as usize % BUCKETS];
        *bucket = bucket.wrapping_add(1);
    }

    /// What came behind `earlier`.
    pub(super) fn since(&self, earlier: &Sketch) -> Sketch {
        let mut between = *self;
        for (now, then) in between.0.iter_mut().zip(earlier.0) {
            *now = now.wrapping_sub(then);
        }
        between
    }

    pub(super) fn pieces(&self) -> u64 {
        self.0.iter().map(|count| u64::from(*count)).sum()
    }

    /// Whether both are about the same work. Few pieces have to be the same altogether.
    pub(super) fn is_like(&self, other: &Sketch) -> bool {
        let pairs = self.0.iter().zip(other.0);
        let differing: u64 = pairs.map(|(one, other)| u64::from(one.abs_diff(other))).sum();
        differing * ALIKE <= self.pieces().max(other.pieces())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(symbols: &[u64]) -> Sketch {
        let mut sketch = Sketch::default();
        symbols.iter().for_each(|symbol| sketch.add(symbol << 60));
        sketch
    }

    #[test]
    fn the_same_work_in_any_order_is_alike_and_a_tenth_may_differ() {
        assert!(of(&[1, 2, 2, 3]).is_like(&of(&[2, 1, 3, 2])));
        assert!(!of(&[1, 2, 2, 3]).is_like(&of(&[1, 2, 2, 4])));
        let (mut many, mut more) = (vec![1; 40], vec![1; 40]);
        more.extend([2; 4]);
        assert!(of(&many).is_like(&of(&more)));
        many.extend([3; 4]);
        assert!(!of(&many).is_like(&of(&more)), "as many pieces, but others");
    }

    #[test]
    fn what_lies_between_two_sums_is_known_also_where_they_overflowed() {
        let (mut begin, mut end) = (Sketch([u32::MAX; BUCKETS]), Sketch([u32::MAX; BUCKETS]));
        begin.add(0);
        [0, 0, 5 << 60].iter().for_each(|symbol| end.add(*symbol));
        assert_eq!(end.since(&begin), of(&[0, 5]));
    }
}
