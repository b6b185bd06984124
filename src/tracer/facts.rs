//! What the models know of calls, kept until the lines of these calls are written.

use crate::catalog::Verb;
use crate::model::memory;
use crate::model::work::CopyClass;
use crate::sink::Facts;
use crate::wire::WorkCall;
use std::collections::HashMap;

/// Longer than any line is held back.
const KEPT_NS: u64 = 2_000_000_000;

/// By thread and time of entry.
#[derive(Debug, Default)]
pub(super) struct FactBook(Option<HashMap<(u32, u64), Facts>>);

impl FactBook {
    /// Has it keep facts.
    pub(super) fn begin(&mut self) {
        self.0.get_or_insert_default();
    }

    pub(super) fn wanted(&self) -> bool {
        self.0.is_some()
    }

    /// A memory call has been followed; `held`: what its process holds on devices now.
    pub(super) fn note_memory(&mut self, call: &memory::Call<'_>, held: Option<u64>) {
        let (Some(facts), Verb::Alloc | Verb::Free) = (self.0.as_mut(), call.verb) else {
            return;
        };
        let known = facts.entry((call.raw.tid, call.raw.entered)).or_default();
        known.address = Some(call.key()).filter(|key| *key != 0);
        known.held = held;
    }

    /// A call that has to do with work has been followed.
    pub(super) fn note_work(&mut self, raw: &WorkCall, copied: Option<CopyClass>) {
        let Some(facts) = self.0.as_mut() else { return };
        let known = facts.entry((raw.tid, raw.entered)).or_default();
        known.stream = Some(raw.stream);
        if let Some(class) = copied {
            (known.direction, known.host, known.blocking) = (class.direction, class.host, class.blocking);
        }
    }

    /// What is known of the call that thread `tid` entered at `entered`.
    pub(super) fn take(&mut self, tid: u32, entered: u64) -> Facts {
        let known = self.0.as_mut().and_then(|facts| facts.remove(&(tid, entered)));
        known.unwrap_or_default()
    }

    /// To be called each second: calls that become no lines are forgotten.
    pub(super) fn settle(&mut self, now: u64) {
        if let Some(facts) = self.0.as_mut() {
            facts.retain(|(_, entered), _| *entered + KEPT_NS > now);
        }
    }
}
