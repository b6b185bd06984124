//! What the models know of calls, kept until the lines of these calls are written.

use crate::catalog::{Class, Verb};
use crate::model::memory;
use crate::model::work::CopyClass;
use crate::record::Facts;
use crate::wire::{CallHeader, WorkCall};
use std::collections::BTreeMap;

/// Longer than any line is held back.
const KEPT_NS: u64 = 2_000_000_000;

/// By thread and time of entry.
#[derive(Debug, Default)]
pub(super) struct PendingFacts {
    /// `None`: nobody asks.
    facts: Option<BTreeMap<(u32, u64), Facts>>,
    /// Also those that only a recording has room for.
    all: bool,
}

impl PendingFacts {
    /// Has it keep facts; `all`: of every call that has to do with work.
    pub(super) fn begin(&mut self, all: bool) {
        self.facts.get_or_insert_default();
        self.all |= all;
    }

    pub(super) fn wanted(&self) -> bool {
        self.facts.is_some()
    }

    pub(super) fn all_wanted(&self) -> bool {
        self.all
    }

    /// A memory call has been followed; `held`: what its process holds on devices now, `freed`: what it gave back.
    pub(super) fn note_memory(&mut self, call: &memory::Call<'_>, held: Option<u64>, freed: Option<u64>) {
        let (Some(facts), Verb::Alloc | Verb::Free) = (self.facts.as_mut(), call.verb) else {
            return;
        };
        let known = facts.entry((call.raw.tid, call.raw.entered)).or_default();
        known.address = Some(call.key()).filter(|key| *key != 0);
        known.held = held;
        known.freed = freed.filter(|_| call.verb == Verb::Free);
    }

    /// A call that has to do with work has been followed.
    pub(super) fn note_work(&mut self, raw: &WorkCall, copied: Option<CopyClass>) {
        let Some(facts) = self.facts.as_mut().filter(|_| self.all || copied.is_some()) else {
            return;
        };
        let known = facts.entry((raw.tid, raw.entered)).or_default();
        known.stream = Some(raw.stream);
        if let Some(class) = copied {
            (known.direction, known.host, known.blocking) = (class.direction, class.host, class.blocking);
        }
    }

    /// What is known of a call. The models follow one of two functions that do the same for the program: what they know of
    /// the driver's call is true of the runtime's around it.
    pub(super) fn take(&mut self, header: &CallHeader, class: Class) -> Facts {
        let Some(facts) = self.facts.as_mut().filter(|facts| !facts.is_empty()) else {
            return Facts::default();
        };
        if let Some(own) = facts.remove(&(header.tid, header.entered)) {
            return own;
        }
        let end = header.entered.saturating_add(header.duration);
        let inside = facts
            .range((header.tid, header.entered)..=(header.tid, end))
            .map(|(_, facts)| facts);
        match class {
            Class::Free => Facts {
                freed: inside
                    .filter_map(|inner| inner.freed)
                    .reduce(|sum, bytes| sum.saturating_add(bytes)),
                ..Facts::default()
            },
            Class::Copy => Facts {
                around_blocking: inside
                    .filter(|inner| inner.direction.is_some())
                    .any(|inner| inner.blocking),
                ..Facts::default()
            },
            _ => Facts::default(),
        }
    }

    /// To be called each second: calls that become no lines are forgotten.
    pub(super) fn settle(&mut self, now: u64) {
        if let Some(facts) = self.facts.as_mut() {
            facts.retain(|(_, entered), _| *entered + KEPT_NS > now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> PendingFacts {
        let freed = |bytes| Facts {
            freed: Some(bytes),
            ..Facts::default()
        };
        PendingFacts {
            facts: Some(BTreeMap::from([
                ((7, 110), freed(64)),
                ((7, 120), freed(8)),
                ((8, 115), freed(1)),
            ])),
            all: false,
        }
    }

    fn call(tid: u32, entered: u64, duration: u64) -> CallHeader {
        CallHeader {
            tid,
            entered,
            duration,
            ..CallHeader::default()
        }
    }

    #[test]
    fn a_free_around_others_has_given_back_what_these_have() {
        assert_eq!(facts().take(&call(7, 100, 50), Class::Free).freed, Some(72));
        assert_eq!(facts().take(&call(7, 100, 15), Class::Free).freed, Some(64));
        assert_eq!(facts().take(&call(7, 121, 50), Class::Free).freed, None);
        assert_eq!(facts().take(&call(7, 100, 50), Class::Sync).freed, None);
    }

    #[test]
    fn what_is_known_of_a_call_itself_comes_first_and_is_told_once() {
        let mut pending = facts();
        assert_eq!(pending.take(&call(7, 110, 50), Class::Free).freed, Some(64));
        assert_eq!(pending.take(&call(7, 110, 5), Class::Free).freed, None);
    }
}
