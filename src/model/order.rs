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
        levels.truncate(usize::from(depth));
        levels.resize(usize::from(depth), (0, 0));
        levels.push((entered, id));
        Numbered { id, caller }
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
    fn threads_do_not_mix() {
        let mut numbers = Numbers::default();
        let outer = numbers.number(7, 0, 100, 0);
        let other = numbers.number(8, 1, 110, 100);
        assert_ne!(other.caller, Some(outer.id));
    }
}
