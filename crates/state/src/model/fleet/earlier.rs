//! Memory that processes had before they were watched: it is no growth of theirs.

use std::collections::HashMap;
use std::sync::Arc;

/// The driver is asked now and then, and what was allocated or given back since is in one of the two figures alone: less
/// than before counts when it has been less for so long.
const SETTLED_NS: u64 = 30_000_000_000;

/// By process and device, what may still be there of it.
#[derive(Debug, Clone, Default)]
pub struct Earlier {
    known: HashMap<(u32, Arc<str>), Known>,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    bytes: u64,
    /// Since when there seems to be less, CLOCK_MONOTONIC ns, and the most that there was since.
    less: Option<(u64, u64)>,
}

impl Earlier {
    /// Takes apart what no allocation of a process that was there before explains at `now`, CLOCK_MONOTONIC ns: what was
    /// there then, at most, and what came since, at least.
    pub fn split(&mut self, pid: u32, device: &Arc<str>, unattributed: u64, now: u64) -> (u64, u64) {
        let first = Known {
            bytes: unattributed,
            less: None,
        };
        let known = self.known.entry((pid, Arc::clone(device))).or_insert(first);
        known.note(unattributed, now);
        let before = known.bytes.min(unattributed);
        (before, unattributed - before)
    }

    /// The process is no more, or another program.
    pub fn forget(&mut self, pid: u32) {
        self.known.retain(|(known, _), _| *known != pid);
    }
}

impl Known {
    fn note(&mut self, unattributed: u64, now: u64) {
        if unattributed >= self.bytes {
            self.less = None;
            return;
        }
        let (since, most) = self.less.unwrap_or((now, 0));
        let most = most.max(unattributed);
        self.less = Some((since, most));
        if now.saturating_sub(since) >= SETTLED_NS {
            *self = Known {
                bytes: most,
                less: None,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seconds(seconds: u64) -> u64 {
        seconds * 1_000_000_000
    }

    #[test]
    fn what_was_there_at_first_is_no_growth_and_what_goes_does_not_come_again() {
        let (mut earlier, device) = (Earlier::default(), Arc::from("GPU-0"));
        let steps = [(0, 2000), (10, 2300), (100, 1500), (131, 1500), (140, 1800)];
        let told = steps.map(|(at, bytes)| earlier.split(7, &device, bytes, seconds(at)));
        assert_eq!(told, [(2000, 0), (2000, 300), (1500, 0), (1500, 0), (1500, 300)]);
    }

    #[test]
    fn an_allocation_that_the_driver_is_asked_of_too_late_takes_nothing_away() {
        let (mut earlier, device) = (Earlier::default(), Arc::from("GPU-0"));
        let told = [(0, 2000), (5, 1000), (10, 2000)].map(|(at, bytes)| earlier.split(7, &device, bytes, seconds(at)));
        assert_eq!(told, [(2000, 0), (1000, 0), (2000, 0)]);
    }

    #[test]
    fn processes_and_devices_stand_alone_and_a_number_may_be_given_again() {
        let mut earlier = Earlier::default();
        let [one, other] = ["GPU-0", "GPU-1"].map(Arc::from);
        assert_eq!(earlier.split(7, &one, 10, 1), (10, 0));
        assert_eq!(earlier.split(7, &other, 20, 1), (20, 0));
        assert_eq!(earlier.split(8, &one, 30, 1), (30, 0));
        earlier.forget(7);
        let again = (earlier.split(7, &one, 50, 1), earlier.split(8, &one, 40, 1));
        assert_eq!(again, ((50, 0), (30, 10)));
    }

    proptest! {
        #[test]
        fn both_parts_add_up_and_the_earlier_one_is_never_more_than_at_first(
            steps in proptest::collection::vec((any::<u64>(), 0u64..100), 1..20),
        ) {
            let (mut earlier, device) = (Earlier::default(), Arc::from("GPU-0"));
            let first = steps[0].0;
            for (bytes, at) in steps {
                let (before, since) = earlier.split(7, &device, bytes, seconds(at));
                prop_assert_eq!(before + since, bytes);
                prop_assert!(before <= first);
            }
        }
    }
}
