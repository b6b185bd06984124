//! Copies of pageable memory that are called asynchronous and hold their thread up all the same.

use crate::catalog::{Class, HostMemory};
use crate::findings::cases::Phased;
use crate::findings::evidence::{End, Evidence};
use crate::findings::seen::Seen;
use crate::findings::table::Grow;
use crate::findings::{Rule, Wants};
use crate::model::finding::Finding;
use crate::record::Kind;
use crate::text::quantity::{bytes, count, duration};

/// Smaller ones are staged at once.
const BYTES: u64 = 1 << 20;
const AT_LEAST: u64 = 5;
const PERCENT: u64 = 1;

/// Bytes of such copies by process.
#[derive(Debug, Default)]
pub(crate) struct PageableCopy(Phased<u64>);

fn cost_ns(evidence: &Evidence, bytes: u64, end: &End<'_>) -> u64 {
    evidence.ns.saturating_sub(end.pinned.ns(bytes))
}

impl Rule for PageableCopy {
    fn name(&self) -> &'static str {
        "pageable-copy"
    }

    fn wants(&self, kind: Kind, class: Class) -> Wants {
        match (kind, class) {
            (Kind::Call, Class::Copy) => Wants::Work,
            _ => Wants::Nothing,
        }
    }

    fn take(&mut self, seen: &Seen<'_>) {
        let event = seen.event;
        let pageable = event.host == Some(HostMemory::Pageable) && !event.blocking;
        let size = event.bytes.unwrap_or(0);
        // before its first launch a program loads what it works on
        if !seen.is_transfer() || !pageable || size < BYTES || seen.process.launches == 0 {
            return;
        }
        if let Some((evidence, bytes)) = self.0.of(seen) {
            evidence.add(seen, seen.ns());
            bytes.grow(size);
        }
    }

    fn conclude(&self, end: &End<'_>) -> Option<Finding> {
        let (evidence, sum) = self.0.worst(end, |evidence, bytes| cost_ns(evidence, *bytes, end))?;
        let cost_ns = cost_ns(&evidence, sum, end);
        if evidence.count < AT_LEAST || !end.is_share(cost_ns, PERCENT) {
            return None;
        }
        Some(Finding {
            cost_ns,
            certainty: end.pinned.certainty(),
            title: "Asynchronous copies of pageable memory hold their thread up".to_owned(),
            what: format!(
                "{} asynchronous copies of pageable memory ({}) held their thread for {}; from pinned memory ({}) they \
                 take {}, beside everything else",
                count(evidence.count),
                bytes(sum),
                duration(evidence.ns),
                end.pinned.words(),
                duration(end.pinned.ns(sum))
            ),
            cure: "pin the memory: DataLoader(pin_memory=True) with .to(device, non_blocking=True), cudaMallocHost, \
                   cudaHostRegister"
                .to_owned(),
            thresholds: format!(
                "at least {AT_LEAST} copies of {} or more after the first launch, {PERCENT} % of the time more than from \
                 pinned memory",
                bytes(BYTES)
            ),
            weakened: end.weakness(&[Class::Copy]),
            ..evidence.finding(self.name(), end)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::CopyKind;
    use crate::findings::fixture::{Fixture, MS};
    use crate::model::work::Certainty;

    fn copies(fixture: &mut Fixture, number: u64, host: HostMemory, blocking: bool) {
        for _ in 0..number {
            fixture.launch();
            fixture.call(Class::Copy, 4 * MS, |event| {
                (event.direction, event.bytes) = (Some(CopyKind::HtoD), Some(25_000_000));
                (event.host, event.blocking) = (Some(host), blocking);
            });
        }
    }

    #[test]
    fn they_cost_what_they_take_longer_than_from_pinned_memory() {
        let mut fixture = Fixture::of(PageableCopy::default());
        copies(&mut fixture, 20, HostMemory::Pageable, false);
        let finding = fixture.finding();
        // 25 MB at 25 GB/s: 1 ms
        assert_eq!((finding.count, finding.cost_ns), (20, 20 * 3 * MS));
        assert_eq!(finding.certainty, Certainty::Inferred);
        assert!(finding.what.contains("25.0 GB/s, assumed"), "{}", finding.what);
    }

    #[test]
    fn the_bandwidth_of_pinned_memory_is_measured_where_it_can_be() {
        let mut fixture = Fixture::of(PageableCopy::default());
        fixture.call(Class::Copy, MS, |event| {
            (event.direction, event.bytes) = (Some(CopyKind::HtoD), Some(50_000_000));
            (event.host, event.blocking) = (Some(HostMemory::Pinned), true);
        });
        copies(&mut fixture, 20, HostMemory::Pageable, false);
        let finding = fixture.finding();
        assert_eq!((finding.cost_ns, finding.certainty), (70 * MS, Certainty::Measured));
    }

    #[test]
    fn copies_of_pinned_memory_and_those_that_are_asked_to_wait_are_none() {
        for (host, blocking) in [
            (HostMemory::Pinned, false),
            (HostMemory::Pageable, true),
            (HostMemory::Unknown, false),
        ] {
            let mut fixture = Fixture::of(PageableCopy::default());
            copies(&mut fixture, 20, host, blocking);
            assert_eq!(fixture.findings(), []);
        }
    }
}
