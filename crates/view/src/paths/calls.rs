//! Which call stack an activity belongs to: it names its call by thread and time, and may come before that call's row.
//!
//! Owns calls that may still be named, the newest, and activities whose call has not come.

use super::Map;
use super::frames::Name;
use super::tree::Sum;
use std::collections::VecDeque;

/// Calls that are known. What a device does comes soon after its call: it is given so much ahead at most.
const MOST: usize = 1 << 18;
/// Sums of activities that wait for their call.
const MOST_WAITING: usize = 1 << 16;

/// A call: its thread, and when it was entered.
pub(super) type Key = (u32, i64);
/// Stands for a stack.
pub(super) type Stack = u32;

/// What a device did because of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ran {
    pub pid: u32,
    pub device: u32,
    pub name: Name,
    pub sum: Sum,
}

/// Which call stack an activity belongs to.
#[derive(Debug, Clone, Default)]
pub(super) struct Calls {
    stacks: Map<Key, Stack>,
    order: VecDeque<Key>,
    waiting: Map<Key, Vec<Ran>>,
    waiting_count: usize,
}

impl Calls {
    /// A call has that stack. Gives what has waited for it.
    pub(super) fn note(&mut self, key: Key, stack: Stack) -> Vec<Ran> {
        if self.order.len() == MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.stacks.remove(&oldest);
        }
        if self.stacks.insert(key, stack).is_none() {
            self.order.push_back(key);
        }
        let waited = self.waiting.remove(&key).unwrap_or_default();
        self.waiting_count -= waited.len();
        waited
    }

    /// The stack of a call that has come.
    pub(super) fn stack(&self, key: Key) -> Option<Stack> {
        self.stacks.get(&key).copied()
    }

    /// Its call has not come. `Err`: there is no room to wait for it.
    pub(super) fn wait(&mut self, key: Key, ran: Ran) -> Result<(), Ran> {
        let same = |one: &&mut Ran| (one.pid, one.device, one.name) == (ran.pid, ran.device, ran.name);
        if let Some(known) = self.waiting.get_mut(&key).and_then(|all| all.iter_mut().find(same)) {
            known.sum.add(ran.sum);
            return Ok(());
        }
        if self.waiting_count >= MOST_WAITING {
            return Err(ran);
        }
        self.waiting_count += 1;
        self.waiting.entry(key).or_default().push(ran);
        Ok(())
    }

    /// What waits still.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &Ran> {
        self.waiting.values().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(name: Name, ns: u64) -> Ran {
        Ran {
            pid: 7,
            device: 0,
            name,
            sum: Sum { ns, count: 1 },
        }
    }

    #[test]
    fn what_comes_before_its_call_waits_for_it() {
        let mut calls = Calls::default();
        assert_eq!(calls.stack((7, 100)), None);
        for one in [ran(5, 10), ran(5, 30), ran(6, 1)] {
            assert_eq!(calls.wait((7, 100), one), Ok(()));
        }
        let both = Ran {
            sum: Sum { ns: 40, count: 2 },
            ..ran(5, 0)
        };
        assert_eq!(calls.note((7, 100), 3), [both, ran(6, 1)]);
        assert_eq!((calls.stack((7, 100)), calls.waiting().count()), (Some(3), 0));
    }

    #[test]
    fn only_the_newest_calls_are_known_and_few_activities_wait() {
        let mut calls = Calls::default();
        (0..=MOST as i64).for_each(|at| drop(calls.note((7, at), 1)));
        assert_eq!((calls.stack((7, 0)), calls.stack((7, 1))), (None, Some(1)));
        let refused = (0..=MOST_WAITING as i64).filter(|at| calls.wait((8, *at), ran(5, 1)).is_err());
        assert_eq!(refused.count(), 1);
    }
}
