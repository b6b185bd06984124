//! What devices did lately. CUPTI may hand over a buffer of what was done earlier after one of later, and whoever looks for calls needs
//! the order in which it was done.
//!
//! Owns how long that is waited for, and that nothing is waited for of a process that is gone. What follows is not its business.

use super::in_order::InOrder;
use crate::model::activity::Activity;
use std::collections::{HashMap, HashSet};

/// What began so long ago has come: the library in a process has CUPTI hand over four times meanwhile.
pub(super) const SETTLED_NS: u64 = 400_000_000;

/// What devices did lately.
#[derive(Debug, Default)]
pub(super) struct Lately {
    by_process: HashMap<u32, InOrder<Activity>>,
    /// Nothing of theirs comes late.
    gone: HashSet<u32>,
}

impl Lately {
    /// Keeps an activity; given back at once where its process is gone.
    pub(super) fn keep(&mut self, activity: Activity) -> Option<Activity> {
        if self.gone.contains(&activity.pid) {
            return Some(activity);
        }
        let own = self.by_process.entry(activity.pid).or_default();
        own.push(activity.begin, activity);
        None
    }

    /// Hands out what began before `horizon`, of each process in order.
    pub(super) fn settle(&mut self, horizon: u64, mut take: impl FnMut(Activity)) {
        for own in self.by_process.values_mut() {
            while let Some((_, activity)) = own.next_before(horizon) {
                take(activity);
            }
        }
    }

    /// A process is gone, or (`gone`: false) another one begins with its number: hands out what there is of it.
    pub(super) fn turn(&mut self, pid: u32, gone: bool, mut take: impl FnMut(Activity)) {
        match gone {
            true => self.gone.insert(pid),
            false => self.gone.remove(&pid),
        };
        let mut own = self.by_process.remove(&pid).unwrap_or_default();
        while let Some((_, activity)) = own.next_before(u64::MAX) {
            take(activity);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::activity::What;

    fn activity(pid: u32, begin: u64) -> Activity {
        Activity {
            pid,
            begin,
            end: begin + 5,
            device: 0,
            context: 1,
            stream: 7,
            graph: None,
            call: None,
            what: What::Memset { bytes: 4 },
        }
    }

    fn settled(lately: &mut Lately, horizon: u64) -> Vec<u64> {
        let mut begins = Vec::new();
        lately.settle(horizon, |one| begins.push(one.begin));
        begins
    }

    #[test]
    fn what_comes_behind_later_work_is_handed_out_before_it() {
        let mut lately = Lately::default();
        for begin in [10, 30, 20] {
            assert_eq!(lately.keep(activity(7, begin)), None);
        }
        assert_eq!(settled(&mut lately, 25), [10, 20]);
        assert!(settled(&mut lately, 25).is_empty());
        assert_eq!(settled(&mut lately, u64::MAX), [30]);
    }

    #[test]
    fn of_a_process_that_is_gone_nothing_is_kept_until_its_number_is_anothers() {
        let mut lately = Lately::default();
        assert_eq!(
            (lately.keep(activity(7, 10)), lately.keep(activity(8, 11))),
            (None, None)
        );
        let mut told = Vec::new();
        lately.turn(7, true, |one| told.push((one.pid, one.begin)));
        assert_eq!(told, [(7, 10)]);
        assert_eq!(lately.keep(activity(7, 20)), Some(activity(7, 20)));
        lately.turn(7, false, |one| told.push((one.pid, one.begin)));
        assert_eq!(lately.keep(activity(7, 30)), None);
        assert_eq!((told.len(), settled(&mut lately, u64::MAX).len()), (1, 2));
    }
}
