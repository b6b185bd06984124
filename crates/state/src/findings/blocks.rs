//! When the kernels of one device had fewer blocks than it has multiprocessors, as devices tell of kernels.
//!
//! Owns the time in which each number of blocks ran: kernels that run at the same time share the multiprocessors, so theirs are
//! added up. What that costs, is a rule's business.

use super::seen::Stretch;
use super::table::Grow;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A kernel is told of when it is over: others that began so much later may come before it.
const LATE_NS: i64 = 1_000_000_000;
/// Kernels that wait for those that come late; of more the oldest wait no longer.
const MOST_WAITING: usize = 1 << 16;
/// Kernels at a time; a device runs no more.
const MOST_RUNNING: usize = 1024;

/// A kernel of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kernel {
    pub begin: i64,
    pub end: i64,
    pub blocks: u64,
    /// Of its process's life.
    pub stretch: Stretch,
}

/// Time of a stretch in which kernels ran, ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Filled {
    pub busy_ns: u64,
    /// With fewer blocks than multiprocessors.
    pub few_ns: u64,
    /// The same by the share of multiprocessors that can have had none.
    pub empty_ns: u64,
}

impl Filled {
    pub(super) fn join(&mut self, other: &Filled) {
        self.busy_ns.grow(other.busy_ns);
        self.few_ns.grow(other.few_ns);
        self.empty_ns.grow(other.empty_ns);
    }

    fn add(&mut self, ns: u64, blocks: u64, multiprocessors: u64) {
        self.busy_ns.grow(ns);
        if blocks < multiprocessors {
            self.few_ns.grow(ns);
            let empty = u128::from(ns) * u128::from(multiprocessors - blocks) / u128::from(multiprocessors);
            self.empty_ns.grow(empty as u64);
        }
    }
}

/// Kernels of one device, one after the other.
#[derive(Debug, Clone, Default)]
pub(super) struct Blocks {
    waiting: BinaryHeap<Reverse<Kernel>>,
    running: Vec<Kernel>,
    /// Up to when time was added up.
    now: i64,
    newest: i64,
    by_stretch: Vec<(Stretch, Filled)>,
}

impl Blocks {
    /// A kernel, of a device with so many multiprocessors; 0: that is not known yet.
    pub(super) fn add(&mut self, kernel: Kernel, multiprocessors: u64) {
        self.newest = self.newest.max(kernel.begin);
        self.waiting.push(Reverse(kernel));
        let due = self.newest.saturating_sub(LATE_NS);
        while let Some(Reverse(next)) = self.waiting.peek().copied() {
            if next.begin > due && self.waiting.len() <= MOST_WAITING {
                break;
            }
            self.waiting.pop();
            self.run(next, multiprocessors);
        }
    }

    /// By stretch, all that has come.
    pub(super) fn filled(&self, multiprocessors: u64) -> Vec<(Stretch, Filled)> {
        let mut all = self.clone();
        while let Some(Reverse(next)) = all.waiting.pop() {
            all.run(next, multiprocessors);
        }
        all.pass(i64::MAX, multiprocessors);
        all.by_stretch
    }

    fn run(&mut self, kernel: Kernel, multiprocessors: u64) {
        self.pass(kernel.begin, multiprocessors);
        if self.running.len() < MOST_RUNNING && kernel.end > self.now {
            self.running.push(kernel);
        }
    }

    /// Up to `until` nothing else begins.
    fn pass(&mut self, until: i64, multiprocessors: u64) {
        while let Some(first) = self.running.iter().map(|kernel| kernel.end).min() {
            let end = first.min(until);
            if end > self.now {
                self.fill(end.abs_diff(self.now), multiprocessors);
                self.now = end;
            }
            if first > until {
                return;
            }
            self.running.retain(|kernel| kernel.end > first);
        }
        self.now = self.now.max(until);
    }

    fn fill(&mut self, ns: u64, multiprocessors: u64) {
        let Some(stretch) = self.running.last().map(|kernel| kernel.stretch) else {
            return;
        };
        let blocks = self
            .running
            .iter()
            .fold(0u64, |sum, one| sum.saturating_add(one.blocks));
        if multiprocessors == 0 {
            return;
        }
        let place = match self.by_stretch.iter().rposition(|(one, _)| *one == stretch) {
            Some(place) => place,
            None => {
                self.by_stretch.push((stretch, Filled::default()));
                self.by_stretch.len() - 1
            }
        };
        self.by_stretch[place].1.add(ns, blocks, multiprocessors);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn kernel(begin: i64, end: i64, blocks: u64) -> Kernel {
        Kernel {
            begin,
            end,
            blocks,
            stretch: 0,
        }
    }

    fn filled(kernels: &[Kernel]) -> Filled {
        let mut blocks = Blocks::default();
        kernels.iter().for_each(|kernel| blocks.add(*kernel, 100));
        let mut sum = Filled::default();
        blocks.filled(100).iter().for_each(|(_, one)| sum.join(one));
        sum
    }

    #[test]
    fn kernels_that_run_at_the_same_time_share_the_multiprocessors() {
        let alone = filled(&[kernel(1000, 2000, 25)]);
        assert_eq!((alone.busy_ns, alone.few_ns, alone.empty_ns), (1000, 1000, 750));
        let beside = filled(&[kernel(1000, 2000, 25), kernel(1500, 2500, 75)]);
        assert_eq!(
            (beside.busy_ns, beside.few_ns, beside.empty_ns),
            (1500, 1000, 375 + 125)
        );
    }

    #[test]
    fn a_grid_that_fills_the_device_costs_nothing() {
        assert_eq!(filled(&[kernel(0, 1000, 100)]).few_ns, 0);
    }

    #[test]
    fn where_the_number_of_multiprocessors_is_not_known_nothing_is_said() {
        let mut blocks = Blocks::default();
        blocks.add(kernel(0, 1000, 1), 0);
        assert_eq!(blocks.filled(0), []);
    }

    proptest! {
        #[test]
        fn time_is_added_up_once_in_whatever_order(kernels in vec((0..300i64, 1..60i64, 1..130u64), 1..40)) {
            let kernels: Vec<Kernel> = kernels.into_iter().map(|(begin, ns, blocks)| kernel(begin, begin + ns, blocks)).collect();
            let (mut busy, mut few) = (0, 0);
            for at in 0..400 {
                let running = kernels.iter().filter(|one| one.begin <= at && at < one.end);
                let blocks: u64 = running.clone().map(|one| one.blocks).sum();
                busy += u64::from(running.count() > 0);
                few += u64::from(blocks > 0 && blocks < 100);
            }
            let told = filled(&kernels);
            prop_assert_eq!((told.busy_ns, told.few_ns), (busy, few));
        }
    }
}
