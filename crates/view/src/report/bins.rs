//! What happened over time, in a bounded number of steps of equal length: they grow with the trace.

/// Steps of which there are never more.
pub(crate) const STEPS: usize = 240;
/// The first length of a step, ns.
const SHORTEST: u64 = 1_000_000;

/// Two neighbouring steps become one.
pub(crate) trait Merge: Clone + Default {
    fn merge(&mut self, later: &Self);
}

impl Merge for u64 {
    fn merge(&mut self, later: &u64) {
        *self = self.saturating_add(*later);
    }
}

/// Steps from `origin` on; what is earlier belongs to the first.
#[derive(Debug, Clone)]
pub(super) struct Bins<T> {
    origin: Option<i64>,
    width: u64,
    steps: Vec<T>,
}

impl<T> Default for Bins<T> {
    fn default() -> Bins<T> {
        Bins {
            origin: None,
            width: SHORTEST,
            steps: Vec::new(),
        }
    }
}

impl<T: Merge> Bins<T> {
    /// Steps that begin at `origin`, ns.
    pub(super) fn from(origin: i64) -> Bins<T> {
        Bins {
            origin: Some(origin),
            ..Bins::default()
        }
    }

    /// The step that `at` lies in.
    pub(super) fn at(&mut self, at: i64) -> &mut T {
        let place = self.place(at);
        &mut self.steps[place]
    }

    fn place(&mut self, at: i64) -> usize {
        let origin = *self.origin.get_or_insert(at);
        let since = at.saturating_sub(origin).max(0).unsigned_abs();
        while since / self.width >= STEPS as u64 {
            self.widen();
        }
        let place = (since / self.width) as usize;
        if place >= self.steps.len() {
            self.steps.resize(place + 1, T::default());
        }
        place
    }

    fn widen(&mut self) {
        self.width *= 2;
        let pairs = self.steps.chunks(2).map(|pair| {
            let mut step = pair[0].clone();
            if let Some(later) = pair.get(1) {
                step.merge(later);
            }
            step
        });
        self.steps = pairs.collect();
    }

    /// Hands every step that [at, end] touches, with how much of it in ns, to `add`.
    pub(super) fn spread(&mut self, at: i64, end: i64, mut add: impl FnMut(&mut T, u64)) {
        let last = self.place(end.max(at));
        let first = self.place(at);
        let origin = self.origin.unwrap_or(at);
        for place in first..=last {
            let from = origin.saturating_add_unsigned(self.width * place as u64);
            let to = from.saturating_add_unsigned(self.width);
            let part = to.min(end).saturating_sub(from.max(at)).max(0).unsigned_abs();
            add(&mut self.steps[place], part);
        }
    }

    /// Length of a step, ns.
    pub(super) fn width(&self) -> u64 {
        self.width
    }

    /// The middle of each step, ns, and what is in it.
    pub(super) fn iter(&self) -> impl Iterator<Item = (i64, &T)> {
        let origin = self.origin.unwrap_or(0);
        let middle = move |place: usize| origin.saturating_add_unsigned(self.width * place as u64 + self.width / 2);
        self.steps
            .iter()
            .enumerate()
            .map(move |(place, step)| (middle(place), step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nothing_is_lost_and_steps_are_few(times in proptest::collection::vec(any::<i64>(), 1..300)) {
            let mut bins = Bins::<u64>::default();
            for at in &times {
                *bins.at(*at) += 1;
            }
            prop_assert!(bins.steps.len() <= STEPS);
            prop_assert_eq!(bins.steps.iter().sum::<u64>(), times.len() as u64);
        }

        #[test]
        fn what_is_spread_adds_up(at in 0i64..1 << 40, ns in 0i64..1 << 40) {
            let mut bins = Bins::<u64>::from(0);
            bins.spread(at, at + ns, |step, part| *step += part);
            prop_assert_eq!(bins.steps.iter().sum::<u64>(), ns as u64);
        }
    }

    #[test]
    fn a_moment_stays_in_its_step_when_steps_grow() {
        let mut bins = Bins::<u64>::from(0);
        *bins.at(500_000_000) += 1;
        *bins.at(60_000_000_000) += 1;
        let steps: Vec<(i64, u64)> = bins.iter().filter(|(_, n)| **n > 0).map(|(at, n)| (at, *n)).collect();
        let half = bins.width() as i64;
        assert_eq!(steps.len(), 2);
        assert!((steps[0].0 - 500_000_000).abs() <= half && (steps[1].0 - 60_000_000_000).abs() <= half);
    }
}
