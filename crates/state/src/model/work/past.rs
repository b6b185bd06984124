//! When which generation was reached: what is put into a stream afterwards is told of.

use std::collections::VecDeque;

/// Between two that are remembered.
const STEP_NS: u64 = 50_000_000;
const MOST: usize = 64;

/// The last few seconds. Times are CLOCK_MONOTONIC ns.
#[derive(Debug, Default)]
pub struct Past {
    reached: VecDeque<(u64, u64)>,
}

impl Past {
    /// `generation` was reached by then.
    pub fn note(&mut self, at: u64, generation: u64) {
        if self
            .reached
            .back()
            .is_some_and(|(last, _)| at < last.saturating_add(STEP_NS))
        {
            return;
        }
        if self.reached.len() == MOST {
            self.reached.pop_front();
        }
        self.reached.push_back((at, generation));
    }

    /// One that was reached at `at` at the latest; 0: none that is remembered.
    #[must_use]
    pub(crate) fn reached_before(&self, at: u64) -> u64 {
        let past = self.reached.iter().rev();
        past.filter(|(reached, _)| *reached <= at)
            .map(|(_, generation)| *generation)
            .next()
            .unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generation_is_known_from_when_it_was_seen_reached() {
        let mut past = Past::default();
        for step in 0..200 {
            past.note(step * STEP_NS, step);
            past.note(step * STEP_NS + 1, 10_000);
        }
        assert_eq!(past.reached_before(150 * STEP_NS + 7), 150);
        assert_eq!(past.reached_before(199 * STEP_NS), 199);
        assert_eq!(past.reached_before(10 * STEP_NS), 0);
    }
}
