//! Copies of pageable memory that are called asynchronous and hold their thread up all the same.

use crate::catalog::{Class, HostMemory};
use crate::findings::cases::Phased;
use crate::findings::evidence::End;
use crate::findings::held::{Awaited, Held};
use crate::findings::seen::Seen;
use crate::findings::{Rule, Wants};
use crate::model::finding::Finding;
use crate::record::Kind;
use crate::text::quantity::{bytes, count, duration};

/// Smaller ones are staged at once.
const BYTES: u64 = 1 << 20;
const AT_LEAST: u64 = 5;
const PERCENT: u64 = 1;

/// Such copies by process.
#[derive(Debug, Default)]
pub(crate) struct PageableCopy {
    copies: Phased<Held>,
    awaited: Awaited,
}

impl Rule for PageableCopy {
    fn name(&self) -> &'static str {
        "pageable-copy"
    }

    fn wants(&self, kind: Kind, class: Class) -> Wants {
        match (kind, class) {
            (Kind::Call, Class::Copy) => Wants::Work,
            (Kind::Gpu, _) => Wants::All,
            _ => Wants::Nothing,
        }
    }

    fn take(&mut self, seen: &Seen<'_>) {
        let event = seen.event;
        if event.kind == Kind::Gpu {
            if self.awaited.may_be(event)
                && let Some((_, held)) = self.copies.of(seen)
            {
                self.awaited.began(seen, held);
            }
            return;
        }
        let pageable = event.host == Some(HostMemory::Pageable) && !event.blocking;
        let size = event.bytes.unwrap_or(0);
        // before its first launch a program loads what it works on
        if !seen.is_transfer() || !pageable || size < BYTES || seen.process.launches == 0 {
            return;
        }
        if let Some((evidence, held)) = self.copies.of(seen) {
            evidence.add(seen, seen.ns());
            self.awaited.call(seen, held);
        }
    }

    fn conclude(&self, end: &End<'_>) -> Option<Finding> {
        let (evidence, held) = self
            .copies
            .worst(end, |evidence, held| held.cost_ns(evidence.ns, end))?;
        let cost_ns = held.cost_ns(evidence.ns, end);
        if evidence.count < AT_LEAST || !end.is_share(cost_ns, PERCENT) {
            return None;
        }
        Some(Finding {
            cost_ns,
            certainty: held.certainty(end),
            title: "Asynchronous copies of pageable memory hold their thread up".to_owned(),
            what: format!(
                "{} asynchronous copies of pageable memory ({}) held their thread for {}{}; from pinned memory ({}) they \
                 take {}, beside everything else",
                count(evidence.count),
                bytes(held.bytes),
                duration(evidence.ns),
                held.words(evidence.ns),
                end.pinned.words(),
                duration(end.pinned.ns(held.bytes))
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
    use crate::record::Record;

    fn copies(fixture: &mut Fixture, number: u64, host: HostMemory, blocking: bool) {
        for _ in 0..number {
            fixture.launch();
            fixture.sync(0);
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

    /// Copies of 4 ms behind work, of which the device tells that it took 2.5 ms of them, of the first so many.
    fn behind_work(told: usize) -> Finding {
        let mut fixture = Fixture::of(PageableCopy::default());
        for number in 0..20 {
            fixture.launch();
            let called = fixture.at;
            fixture.call(Class::Copy, 4 * MS, |event| {
                (event.direction, event.bytes) = (Some(CopyKind::DtoH), Some(25_000_000));
                (event.host, event.since_caller) = (Some(HostMemory::Pageable), Some(900));
            });
            // an activity names the outermost call
            let called = called - 900;
            let args = format!(r#"{{"call_tid":7,"call_ts_ns":{called}}}"#);
            if number < told {
                fixture.row(&Record {
                    direction: Some(CopyKind::DtoH),
                    args: Some(&args),
                    ..Record::new(Kind::Gpu, called + 2_500_900, 7)
                });
            }
        }
        fixture.finding()
    }

    #[test]
    fn what_ran_ahead_of_them_has_to_run_whoever_waits_for_it() {
        let finding = behind_work(20);
        assert_eq!((finding.cost_ns, finding.certainty), (20 * MS / 2, Certainty::Inferred));
        assert!(
            finding
                .what
                .contains("80.0 ms, 50.0 ms of that behind work that was ahead"),
            "{}",
            finding.what
        );
    }

    #[test]
    fn where_nobody_tells_what_ran_ahead_of_them_they_cost_that_at_most() {
        let finding = behind_work(8);
        assert_eq!((finding.cost_ns, finding.certainty), (40 * MS, Certainty::Bound));
        assert!(finding.what.contains("12 copies had work ahead"), "{}", finding.what);
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
