//! What calls are told apart by is a number that programs choose: so many of one owner, the others together.
//!
//! Owns that nothing falls by it: what is told apart once is for ever, and what comes too late never is.

use super::Sums;
use std::collections::BTreeSet;

/// Classes and methods that the kernel driver is asked about.
const MOST_VARIANTS: usize = 512;
/// Codes of failures, of all functions together.
const MOST_CODES: usize = 4096;
/// Stands for codes that are too many to be told apart.
pub const OTHER_CODE: i32 = i32::MIN;

/// What calls of one owner are told apart by, as far as there is room.
#[derive(Debug, Default)]
pub(super) struct Distinct {
    variants: BTreeSet<(u32, u64)>,
    codes: BTreeSet<(u32, i32)>,
}

impl Distinct {
    /// Puts together what is too much, of sums that nothing was put together of before.
    pub(super) fn bound(&mut self, sums: &mut Sums) {
        for ((row, variant), asked) in std::mem::take(&mut sums.asked) {
            let told_apart = variant == 0 || admits(&mut self.variants, (row, variant), MOST_VARIANTS);
            let variant = if told_apart { variant } else { 0 };
            sums.asked.entry((row, variant)).or_default().add(asked);
        }
        for ((row, code), count) in std::mem::take(&mut sums.failures) {
            let told_apart = admits(&mut self.codes, (row, code), MOST_CODES);
            let code = if told_apart { code } else { OTHER_CODE };
            *sums.failures.entry((row, code)).or_default() += count;
        }
    }
}

fn admits<K: Ord>(known: &mut BTreeSet<K>, key: K, most: usize) -> bool {
    known.contains(&key) || known.len() < most && known.insert(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::fleet::Asked;
    use crate::wire::DRIVER_SUBJECT;
    use proptest::prelude::*;

    const CALLED: Asked = Asked { calls: 2, ns: 30 };

    fn asking(row: u32, classes: std::ops::Range<u64>) -> Sums {
        let variants = classes.map(|class| ((row, DRIVER_SUBJECT | class), CALLED));
        Sums {
            asked: variants.collect(),
            ..Sums::default()
        }
    }

    #[test]
    fn classes_beyond_the_bound_are_counted_for_their_call_alone() {
        let mut sums = asking(7, 0..MOST_VARIANTS as u64 + 10);
        Distinct::default().bound(&mut sums);
        assert_eq!(sums.asked.len(), MOST_VARIANTS + 1);
        assert_eq!(sums.asked[&(7, 0)], Asked { calls: 20, ns: 300 });
    }

    #[test]
    fn calls_that_are_not_told_apart_take_no_place() {
        let mut distinct = Distinct::default();
        let mut plain = Sums {
            asked: (0..1000).map(|row| ((row, 0), CALLED)).collect(),
            ..Sums::default()
        };
        distinct.bound(&mut plain);
        let mut one = asking(7, 5..6);
        distinct.bound(&mut one);
        assert_eq!(plain.asked.len(), 1000);
        assert_eq!(one.asked.keys().next(), Some(&(7, DRIVER_SUBJECT | 5)));
    }

    #[test]
    fn codes_beyond_the_bound_are_counted_together() {
        let codes = 0..MOST_CODES as i32 + 3;
        let mut sums = Sums {
            failures: codes.map(|code| ((7, code), 5)).collect(),
            ..Sums::default()
        };
        Distinct::default().bound(&mut sums);
        assert_eq!(sums.failures.len(), MOST_CODES + 1);
        assert_eq!(sums.failures[&(7, OTHER_CODE)], 15);
    }

    proptest! {
        #[test]
        fn what_is_told_apart_stays_so_and_nothing_is_lost(
            steps in proptest::collection::vec((0u32..3, 0u64..2000, 1u64..900), 1..20),
        ) {
            let mut distinct = Distinct::default();
            let mut seen: std::collections::HashMap<(u32, u64), bool> = std::collections::HashMap::new();
            for (row, first, count) in steps {
                let given = asking(row, first..first + count);
                let mut bounded = given.clone();
                distinct.bound(&mut bounded);
                let calls = |sums: &Sums| sums.asked.values().map(|asked| asked.calls).sum::<u64>();
                prop_assert_eq!(calls(&given), calls(&bounded));
                for key in given.asked.keys() {
                    let told_apart = bounded.asked.contains_key(key);
                    prop_assert_eq!(*seen.entry(*key).or_insert(told_apart), told_apart);
                }
            }
            prop_assert!(seen.values().filter(|told_apart| **told_apart).count() <= MOST_VARIANTS);
        }
    }
}
