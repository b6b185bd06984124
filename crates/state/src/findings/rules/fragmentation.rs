//! An allocation fails though the process has held as much before: what is free lies in pieces.

use crate::catalog::Class;
use crate::findings::cases::Cases;
use crate::findings::evidence::End;
use crate::findings::seen::{OUT_OF_MEMORY, Seen};
use crate::findings::{Rule, Wants};
use crate::model::finding::Finding;
use crate::model::work::Certainty;
use crate::record::Kind;
use crate::text::quantity::{bytes, plural};

#[derive(Debug, Default)]
struct Worst {
    wanted: u64,
    held: u64,
    peak: u64,
}

/// An allocation fails though the process has held as much before.
#[derive(Debug, Default)]
pub(crate) struct Fragmentation(Cases<Worst>);

impl Rule for Fragmentation {
    fn name(&self) -> &'static str {
        "fragmentation"
    }

    fn wants(&self, kind: Kind, class: Class) -> Wants {
        match (kind, class) {
            (Kind::Call, Class::Alloc) => Wants::Work,
            _ => Wants::Nothing,
        }
    }

    fn take(&mut self, seen: &Seen<'_>) {
        let (event, process) = (seen.event, &seen.process);
        let wanted = event.bytes.unwrap_or(0);
        let failed = event.failed && event.result == Some(OUT_OF_MEMORY);
        if !failed || !process.would_fit(wanted) {
            return;
        }
        if let Some((evidence, worst)) = self.0.of(seen) {
            evidence.add(seen, seen.ns());
            if wanted > worst.wanted {
                (worst.wanted, worst.held, worst.peak) = (wanted, process.held, process.peak);
            }
        }
    }

    fn conclude(&self, end: &End<'_>) -> Option<Finding> {
        let (evidence, worst) = self.0.worst(|evidence, _| evidence.count)?;
        if evidence.count == 0 {
            return None;
        }
        Some(Finding {
            grave: true,
            certainty: Certainty::Inferred,
            title: format!(
                "{} found no memory though more was held before",
                plural(evidence.count, "allocation")
            ),
            what: format!(
                "{} found no memory though the process has held more: such as {} while it held {}, of {} at \
                 its peak (unless another process has taken the rest since, or some of it is on another device)",
                plural(evidence.count, "allocation"),
                bytes(worst.wanted),
                bytes(worst.held),
                bytes(worst.peak)
            ),
            cure: "allocate large blocks first and keep them, round sizes up to a few, or map memory in pages \
                   (PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True)"
                .to_owned(),
            thresholds: "out of memory with held + size at most what was held before".to_owned(),
            weakened: end.weakness(&[Class::Alloc, Class::Free]),
            ..evidence.finding(self.name(), end)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::{Fixture, US};

    const GIB: u64 = 1 << 30;

    fn fail(fixture: &mut Fixture, size: u64, result: i64) {
        fixture.call(Class::Alloc, 100 * US, |event| {
            (event.bytes, event.failed, event.result) = (Some(size), true, Some(result));
        });
    }

    fn hold(fixture: &mut Fixture, held: u64) {
        fixture.call(Class::Alloc, 100 * US, |event| event.held = Some(held));
    }

    #[test]
    fn what_fitted_before_and_fails_now_is_in_pieces() {
        let mut fixture = Fixture::of(Fragmentation::default());
        hold(&mut fixture, 8 * GIB);
        hold(&mut fixture, 5 * GIB);
        fail(&mut fixture, 2 * GIB, OUT_OF_MEMORY);
        let finding = fixture.finding();
        assert_eq!((finding.count, finding.grave), (1, true));
        assert!(finding.what.starts_with("1 allocation found"), "{}", finding.what);
        assert!(
            finding.what.contains("2.0 GiB while it held 5.0 GiB, of 8.0 GiB"),
            "{}",
            finding.what
        );
    }

    #[test]
    fn more_than_ever_fitted_and_other_failures_are_none() {
        let mut fixture = Fixture::of(Fragmentation::default());
        hold(&mut fixture, 8 * GIB);
        hold(&mut fixture, 7 * GIB);
        fail(&mut fixture, 2 * GIB, OUT_OF_MEMORY);
        fail(&mut fixture, GIB, 999);
        assert_eq!(fixture.findings(), []);
    }
}
