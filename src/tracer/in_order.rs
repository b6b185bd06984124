//! What comes nearly by time, given out by time.
//!
//! Owns the order alone. What comes in order costs no more than its place; of what does not, only as much is moved as it
//! is too late.

use std::collections::VecDeque;

/// Items by time, CLOCK_MONOTONIC ns; those of one moment as they came.
#[derive(Debug)]
pub(super) struct InOrder<T> {
    sorted: VecDeque<(u64, T)>,
    /// Came after something later had come.
    late: Vec<(u64, T)>,
}

impl<T> Default for InOrder<T> {
    fn default() -> InOrder<T> {
        InOrder {
            sorted: VecDeque::new(),
            late: Vec::new(),
        }
    }
}

impl<T> InOrder<T> {
    pub(super) fn push(&mut self, at: u64, item: T) {
        let is_next = self.late.is_empty() && self.sorted.back().is_none_or(|(last, _)| *last <= at);
        match is_next {
            true => self.sorted.push_back((at, item)),
            false => self.late.push((at, item)),
        }
    }

    /// All that was not given out, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &(u64, T)> {
        self.sorted.iter().chain(&self.late)
    }

    /// The first of those before `horizon`.
    pub(super) fn next_before(&mut self, horizon: u64) -> Option<(u64, T)> {
        self.settle();
        let is_due = self.sorted.front().is_some_and(|(at, _)| *at < horizon);
        is_due.then(|| self.sorted.pop_front()).flatten()
    }

    /// Puts what came late where it belongs.
    fn settle(&mut self) {
        let Some(first) = self.late.iter().map(|(at, _)| *at).min() else {
            return;
        };
        let from = self.sorted.partition_point(|(at, _)| *at <= first);
        let mut later: Vec<(u64, T)> = self.sorted.drain(from..).collect();
        later.append(&mut self.late);
        later.sort_by_key(|(at, _)| *at);
        self.sorted.extend(later);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_gives_out_what_sorting_all_that_has_come_would(
            rounds in prop::collection::vec((prop::collection::vec(0u64..50, 0..20), 0u64..60), 1..20)
        ) {
            let (mut ordered, mut model, mut number) = (InOrder::default(), Vec::new(), 0);
            for (times, horizon) in rounds {
                for at in times {
                    ordered.push(at, number);
                    model.push((at, number));
                    number += 1;
                }
                model.sort_by_key(|(at, _)| *at);
                let due = model.partition_point(|(at, _)| *at < horizon);
                let expected: Vec<_> = model.drain(..due).collect();
                let given: Vec<_> = std::iter::from_fn(|| ordered.next_before(horizon)).collect();
                prop_assert_eq!(given, expected);
                prop_assert_eq!(ordered.iter().count(), model.len());
            }
        }
    }
}
