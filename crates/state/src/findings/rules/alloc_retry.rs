//! Memory runs out, something is given back, and then there is enough: a cache is emptied, again and again.

use crate::catalog::Class;
use crate::findings::cases::Cases;
use crate::findings::evidence::End;
use crate::findings::part::Part;
use crate::findings::seen::Seen;
use crate::findings::table::Grow;
use crate::findings::{Rule, Wants};
use crate::model::finding::Finding;
use crate::model::work::Certainty;
use crate::record::Kind;
use crate::text::quantity::{bytes, duration, plural};

const AT_LEAST: u64 = 3;
const PERCENT: u64 = 1;

#[derive(Debug, Default)]
struct Retry {
    /// Since memory ran out.
    frees: u64,
    /// Of all retries.
    freed: u64,
    wanted: u64,
}

/// Memory runs out, something is given back.
#[derive(Debug, Default)]
pub(crate) struct AllocRetry(Cases<Retry>);

impl Rule for AllocRetry {
    fn name(&self) -> &'static str {
        "alloc-retry"
    }

    fn wants(&self, kind: Kind, class: Class) -> Wants {
        match (kind, class) {
            (Kind::Call, Class::Alloc | Class::Free) => Wants::Work,
            _ => Wants::Nothing,
        }
    }

    fn take(&mut self, seen: &Seen<'_>) {
        let Some(shortage) = seen.process.short_of else {
            return;
        };
        let (event, Some((evidence, retry))) = (seen.event, self.0.of(seen)) else {
            return;
        };
        match seen.part {
            _ if event.failed => {}
            Part::Free => retry.frees += 1,
            Part::Alloc if event.bytes.is_some_and(|bytes| bytes >= shortage.bytes) => {
                let frees = std::mem::take(&mut retry.frees);
                // without a free it was somebody else who gave back; in pieces, it is fragmentation
                if frees > 0 && !shortage.in_pieces {
                    retry.freed += frees;
                    retry.wanted.grow(shortage.bytes);
                    evidence.add(seen, event.end().saturating_sub(shortage.at).unsigned_abs());
                }
            }
            _ => {}
        }
    }

    fn conclude(&self, end: &End<'_>) -> Option<Finding> {
        let (evidence, retry) = self.0.costliest()?;
        if evidence.count == 0 || evidence.count < AT_LEAST && !end.is_share(evidence.ns, PERCENT) {
            return None;
        }
        Some(Finding {
            // the frees may have waited for work that has to be done anyhow
            certainty: Certainty::Bound,
            title: format!(
                "Memory runs out, room is made and it is tried again, {}",
                plural(evidence.count, "time")
            ),
            what: format!(
                "{} an allocation ({} in mean) found no memory, {} made room, and it was tried again: {} in all",
                plural(evidence.count, "time"),
                bytes(retry.wanted / evidence.count),
                plural(retry.freed, "free"),
                duration(evidence.ns)
            ),
            cure: "need less at once: a smaller batch, activation checkpointing, or a limit on the cache \
                   (PYTORCH_CUDA_ALLOC_CONF=garbage_collection_threshold:0.8,expandable_segments:True)"
                .to_owned(),
            thresholds: format!(
                "out of memory, then a free, then as much is allocated: {AT_LEAST} times, or {PERCENT} % of the time"
            ),
            weakened: end.weakness(&[Class::Alloc, Class::Free]),
            ..evidence.finding(self.name(), end)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::{Fixture, MS, US};
    use crate::findings::seen::OUT_OF_MEMORY;

    fn fail(fixture: &mut Fixture, size: u64) {
        fixture.call(Class::Alloc, 100 * US, |event| {
            (event.bytes, event.failed, event.result) = (Some(size), true, Some(OUT_OF_MEMORY));
        });
    }

    #[test]
    fn an_allocation_that_succeeds_after_frees_costs_the_time_from_its_first_try() {
        let mut fixture = Fixture::of(AllocRetry::default());
        for _ in 0..5 {
            fixture.healthy(2);
            fail(&mut fixture, 1 << 30);
            fixture.free(1, MS);
            fail(&mut fixture, 1 << 30);
            fixture.free(2, MS);
            fixture.alloc(1 << 30, 3, 50 * US);
        }
        let finding = fixture.finding();
        assert_eq!((finding.count, finding.cost_ns), (5, 5 * (2 * MS + 250 * US)));
        assert!(finding.what.contains("10 frees"), "{}", finding.what);
    }

    #[test]
    fn memory_that_stays_short_and_memory_that_never_was_are_none() {
        let mut fixture = Fixture::of(AllocRetry::default());
        fail(&mut fixture, 1 << 30);
        for address in 0..10 {
            fixture.free(address, MS);
            fixture.alloc(1 << 20, address, MS);
        }
        assert_eq!(fixture.findings(), []);
    }
}
