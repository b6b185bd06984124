//! Numbers calls in order of entry and finds each call's caller.
//!
//! An event is sent when its call returns, so a caller comes after its callees. Events are held for a short
//! window and sorted; a call that outlasts the window comes late but keeps the number its callees announced.

use std::collections::HashMap;

/// A call's number and its caller's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbered {
    pub id: u64,
    pub caller: Option<u64>,
}

/// Hands out numbers, ascending by time of entry as far as the window goes.
#[derive(Debug, Default)]
pub struct Numbers {
    next: u64,
    /// Callers that callees have named before they came themselves, by thread and time of entry.
    announced: HashMap<(u32, u64), u64>,
    /// Last call of each thread and depth: time of entry and number.
    last: HashMap<u32, Vec<(u64, u64)>>,
}

impl Numbers {
    /// Numbers the call of thread `tid` that was entered at `entered`, at nesting `depth`, by the call that was
    /// entered at `caller` (0: none).
    pub fn number(&mut self, tid: u32, depth: u8, entered: u64, caller: u64) -> Numbered {
        let caller = (caller != 0).then(|| self.caller(tid, depth, caller));
        let id = self.announced.remove(&(tid, entered)).unwrap_or_else(|| self.fresh());
        let levels = self.last.entry(tid).or_default();
        // levels below stay: under a call that comes late are its callees, and more of theirs may follow
        let used = levels.len().max(usize::from(depth) + 1);
        levels.resize(used, (0, 0));
        levels[usize::from(depth)] = (entered, id);
        Numbered { id, caller }
    }

    /// The number that an open call will have.
    pub fn announce(&mut self, tid: u32, depth: u8, entered: u64) -> u64 {
        self.caller(tid, depth.saturating_add(1), entered)
    }

    /// The number of its caller, which was entered at `caller` (0: none).
    pub fn caller_of(&mut self, tid: u32, depth: u8, caller: u64) -> Option<u64> {
        (caller != 0).then(|| self.caller(tid, depth, caller))
    }

    fn caller(&mut self, tid: u32, depth: u8, entered: u64) -> u64 {
        let level = usize::from(depth).checked_sub(1);
        let last = level.and_then(|level| self.last.get(&tid)?.get(level));
        match last {
            Some(&(at, id)) if at == entered => id,
            _ => match self.announced.get(&(tid, entered)) {
                Some(&id) => id,
                None => {
                    let id = self.fresh();
                    self.announced.insert((tid, entered), id);
                    id
                }
            },
        }
    }

    fn fresh(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Forgets a thread of an ended process.
    pub fn forget(&mut self, tid: u32) {
        self.last.remove(&tid);
        self.announced.retain(|(thread, _), _| *thread != tid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_callee_names_the_caller_that_came_before() {
        let mut numbers = Numbers::default();
        let outer = numbers.number(7, 0, 100, 0);
        let inner = numbers.number(7, 1, 110, 100);
        assert_eq!((outer.id, inner.id, inner.caller), (1, 2, Some(1)));
    }

    #[test]
    fn a_caller_that_comes_late_gets_the_number_its_callees_named() {
        let mut numbers = Numbers::default();
        let inner = numbers.number(7, 1, 110, 100);
        let again = numbers.number(7, 1, 120, 100);
        let outer = numbers.number(7, 0, 100, 0);
        assert_eq!(inner.caller, Some(outer.id));
        assert_eq!(again.caller, Some(outer.id));
        assert!(outer.id < inner.id);
    }

    #[test]
    fn a_caller_that_comes_late_does_not_hide_its_callees_from_theirs() {
        let mut numbers = Numbers::default();
        let middle = numbers.number(7, 1, 110, 100);
        let outer = numbers.number(7, 0, 100, 0);
        let inner = numbers.number(7, 2, 120, 110);
        assert_eq!((middle.caller, inner.caller), (Some(outer.id), Some(middle.id)));
    }

    #[test]
    fn threads_do_not_mix() {
        let mut numbers = Numbers::default();
        let outer = numbers.number(7, 0, 100, 0);
        let other = numbers.number(8, 1, 110, 100);
        assert_ne!(other.caller, Some(outer.id));
    }

    #[test]
    fn an_open_call_that_was_announced_keeps_its_number() {
        let mut numbers = Numbers::default();
        let outer = numbers.announce(7, 0, 100);
        let inner = numbers.number(7, 1, 110, 100);
        assert_eq!((inner.caller, numbers.caller_of(7, 1, 100)), (Some(outer), Some(outer)));
        assert_eq!(numbers.number(7, 0, 100, 0).id, outer);
    }

    use proptest::prelude::*;

    /// A call of a made-up trace: thread, depth, entry, return, and its caller's entry (0: none).
    #[derive(Debug, Clone, Copy)]
    struct Made {
        tid: u32,
        depth: u8,
        entered: u64,
        returned: u64,
        caller: u64,
    }

    /// Properly nested calls of one thread, from a walk: true enters a call, false returns from the innermost.
    fn calls_of(tid: u32, steps: &[bool]) -> Vec<Made> {
        let (mut open, mut done): (Vec<Made>, Vec<Made>) = (Vec::new(), Vec::new());
        let ends = std::iter::repeat_n(false, steps.len());
        for (now, enter) in (1..).zip(steps.iter().copied().chain(ends)) {
            if enter {
                let caller = open.last().map_or(0, |call| call.entered);
                let depth = open.len() as u8;
                open.push(Made {
                    tid,
                    depth,
                    entered: now,
                    returned: 0,
                    caller,
                });
            } else if let Some(call) = open.pop() {
                done.push(Made { returned: now, ..call });
            }
        }
        done
    }

    /// Order of output: events come at return, and from time to time those entered `window` ago go out sorted.
    fn emitted(mut calls: Vec<Made>, window: u64, rests: &[u64]) -> Vec<Made> {
        calls.sort_by_key(|call| call.returned);
        let (mut held, mut out): (Vec<Made>, Vec<Made>) = (Vec::new(), Vec::new());
        let mut emit = |held: &mut Vec<Made>, horizon: u64| {
            held.sort_by_key(|call| call.entered);
            let ready = held.partition_point(|call| call.entered < horizon);
            out.extend(held.drain(..ready));
        };
        let mut rests = rests.iter().cycle();
        let mut next = 0;
        for call in calls {
            if call.returned >= next {
                emit(&mut held, next.saturating_sub(window));
                next = call.returned + rests.next().copied().unwrap_or(1);
            }
            held.push(call);
        }
        emit(&mut held, u64::MAX);
        out
    }

    fn numbered(calls: &[Made]) -> Vec<Numbered> {
        let mut numbers = Numbers::default();
        let number = |call: &Made| numbers.number(call.tid, call.depth, call.entered, call.caller);
        calls.iter().map(number).collect()
    }

    fn trace() -> impl Strategy<Value = Vec<Made>> {
        let thread = || proptest::collection::vec(any::<bool>(), 0..40);
        (thread(), thread()).prop_map(|(a, b)| [calls_of(7, &a), calls_of(8, &b)].concat())
    }

    proptest! {
        #[test]
        fn whatever_the_window_each_callee_names_its_caller(
            calls in trace(),
            window in 0u64..50,
            rests in proptest::collection::vec(1u64..20, 1..5),
        ) {
            let calls = emitted(calls, window, &rests);
            let numbers = numbered(&calls);
            let by_call: HashMap<(u32, u64), u64> =
                calls.iter().zip(&numbers).map(|(call, number)| ((call.tid, call.entered), number.id)).collect();
            let distinct: std::collections::HashSet<u64> = numbers.iter().map(|number| number.id).collect();
            prop_assert_eq!(distinct.len(), calls.len());
            for (call, number) in calls.iter().zip(&numbers) {
                let caller = (call.caller != 0).then(|| by_call[&(call.tid, call.caller)]);
                prop_assert_eq!(number.caller, caller);
            }
        }

        #[test]
        fn within_the_window_numbers_ascend_by_time_of_entry(calls in trace()) {
            let calls = emitted(calls, u64::MAX, &[1]);
            let numbers = numbered(&calls);
            prop_assert!(calls.is_sorted_by_key(|call| call.entered));
            prop_assert!(numbers.iter().enumerate().all(|(index, number)| number.id == index as u64 + 1));
            prop_assert!(numbers.iter().all(|number| number.caller.is_none_or(|caller| caller < number.id)));
        }

        #[test]
        fn in_any_order_at_all_numbers_are_unique(calls in trace().prop_shuffle()) {
            let numbers = numbered(&calls);
            let distinct: std::collections::HashSet<u64> = numbers.iter().map(|number| number.id).collect();
            prop_assert_eq!(distinct.len(), calls.len());
        }
    }
}
