//! The busiest kernels of one owner by name, the others together.
//!
//! Every figure shown only grows: a kernel that comes among the busiest counts from then on, what it did before stays
//! with the others, and what one did that leaves them is shown no more, not even with the others.

use std::collections::HashMap;
use std::sync::Arc;

/// How much busier another one must be to take a place.
const MARGIN: f64 = 2.0;
/// Of the rate, what is left after a reading.
const DECAY: f64 = 0.7;

#[derive(Debug, Clone)]
struct Named {
    /// What it had done when it came among the busiest.
    base: u64,
    rate: f64,
}

/// The busiest kernels of one owner by name, the others together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Top {
    named: HashMap<Arc<str>, Named>,
    /// By name, as of the last reading.
    before: HashMap<Arc<str>, u64>,
    rates: HashMap<Arc<str>, f64>,
    gone: u64,
    other: u64,
    /// Kernels that had to make room.
    pub evicted: u64,
}

/// What is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shown {
    /// Most launches first.
    pub named: Vec<(Arc<str>, u64)>,
    /// Of all others.
    pub other: u64,
}

impl Top {
    /// Takes in what was counted until now, `total` of it in all, and chooses `places` of them.
    pub(crate) fn read(&mut self, counts: &HashMap<Arc<str>, u64>, total: u64, places: usize) -> Shown {
        self.note_rates(counts);
        self.choose(counts, places);
        let mut named: Vec<(Arc<str>, u64)> = self
            .named
            .iter()
            .map(|(name, known)| (Arc::clone(name), shown(counts, name, known)))
            .collect();
        named.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
        let by_name: u64 = named.iter().map(|(_, count)| count).sum();
        // a name that comes late takes nothing away from what was shown without it
        self.other = self.other.max(total.saturating_sub(by_name).saturating_sub(self.gone));
        self.before.clone_from(counts);
        Shown {
            named,
            other: self.other,
        }
    }

    fn note_rates(&mut self, counts: &HashMap<Arc<str>, u64>) {
        self.rates.clear();
        for (name, count) in counts {
            let more = count.saturating_sub(self.before.get(name).copied().unwrap_or(0)) as f64;
            match self.named.get_mut(name) {
                Some(known) => known.rate = known.rate * DECAY + more,
                None => drop(self.rates.insert(Arc::clone(name), more)),
            }
        }
    }

    fn choose(&mut self, counts: &HashMap<Arc<str>, u64>, places: usize) {
        while self.named.len() > places {
            self.evict(counts);
        }
        let mut candidates: Vec<(Arc<str>, f64)> = self.rates.drain().filter(|(_, rate)| *rate > 0.0).collect();
        candidates.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        for (name, rate) in candidates {
            if self.named.len() >= places {
                let least = self
                    .named
                    .values()
                    .map(|known| known.rate)
                    .fold(f64::INFINITY, f64::min);
                if places == 0 || rate <= least * MARGIN {
                    break;
                }
                self.evict(counts);
            }
            let base = self.before.get(&name).copied().unwrap_or(0);
            self.named.insert(name, Named { base, rate });
        }
    }

    /// The one with the least to do leaves.
    fn evict(&mut self, counts: &HashMap<Arc<str>, u64>) {
        let least = self
            .named
            .iter()
            .min_by(|a, b| a.1.rate.total_cmp(&b.1.rate).then_with(|| b.0.cmp(a.0)))
            .map(|(name, _)| Arc::clone(name));
        if let Some((name, known)) = least.and_then(|name| self.named.remove_entry(&name)) {
            self.gone += shown(counts, &name, &known);
            self.evicted += 1;
        }
    }
}

fn shown(counts: &HashMap<Arc<str>, u64>, name: &str, known: &Named) -> u64 {
    counts.get(name).copied().unwrap_or(0).saturating_sub(known.base)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counts(of: &[(&str, u64)]) -> HashMap<Arc<str>, u64> {
        of.iter().map(|(name, count)| (Arc::from(*name), *count)).collect()
    }

    fn named(shown: &Shown) -> Vec<(&str, u64)> {
        shown.named.iter().map(|(name, count)| (&**name, *count)).collect()
    }

    #[test]
    fn as_many_kernels_as_there_are_places_are_shown_exactly() {
        let mut top = Top::default();
        let first = top.read(&counts(&[("a", 5), ("b", 9)]), 20, 2);
        assert_eq!((named(&first), first.other), (vec![("b", 9), ("a", 5)], 6));
    }

    #[test]
    fn a_kernel_that_becomes_busy_takes_a_place_and_counts_from_then_on() {
        let mut top = Top::default();
        top.read(&counts(&[("a", 100), ("b", 1)]), 101, 1);
        let busy = top.read(&counts(&[("a", 100), ("b", 501)]), 601, 1);
        assert_eq!((named(&busy), busy.other, top.evicted), (vec![("b", 500)], 1, 1));
    }

    #[test]
    fn without_places_all_are_others() {
        let shown = Top::default().read(&counts(&[("a", 100)]), 100, 0);
        assert_eq!((shown.named.len(), shown.other), (0, 100));
    }

    proptest! {
        #[test]
        fn nothing_that_is_shown_ever_falls(
            steps in proptest::collection::vec(proptest::collection::vec((0usize..12, 0u64..1000), 0..8), 1..40),
            places in 0usize..6,
        ) {
            let names: Vec<Arc<str>> = (0..12).map(|n| Arc::from(format!("k{n}"))).collect();
            let (mut top, mut all) = (Top::default(), HashMap::new());
            let mut last = Shown::default();
            for step in steps {
                for (name, more) in step {
                    *all.entry(Arc::clone(&names[name])).or_default() += more;
                }
                let total: u64 = all.values().sum();
                let shown = top.read(&all, total, places);
                prop_assert!(shown.named.len() <= places);
                prop_assert!(shown.other >= last.other);
                for (name, count) in &shown.named {
                    let before = last.named.iter().find(|(known, _)| known == name);
                    prop_assert!(before.is_none_or(|(_, before)| count >= before));
                }
                let sum: u64 = shown.named.iter().map(|(_, count)| count).sum();
                prop_assert!(sum + shown.other <= total);
                if top.evicted == 0 {
                    prop_assert_eq!(sum + shown.other, total);
                }
                last = shown;
            }
        }
    }
}
