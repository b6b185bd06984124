//! Copies that could run beside kernels and never do: they are in the same stream, or nothing is launched meanwhile.

use crate::catalog::{Class, HostMemory};
use crate::findings::cases::{Phased, Sum};
use crate::findings::evidence::{End, Evidence};
use crate::findings::part::Part;
use crate::findings::seen::Seen;
use crate::findings::table::{Grow, is_percent};
use crate::findings::{Rule, Wants};
use crate::model::finding::Finding;
use crate::model::work::Certainty;
use crate::record::Kind;
use crate::text::quantity::{bytes, count, duration};

/// At 25 GB/s it takes 100 µs.
const BYTES: u64 = 2_500_000;
const AT_LEAST: u64 = 10;
/// Of the time that is copied, of the copies that have launches beside them.
const PERCENT: u64 = 5;
const BESIDE_PERCENT: u64 = 20;

/// Streams that launches went to since the last wait.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Streams {
    #[default]
    None,
    One(Option<u64>),
    Several,
}

impl Streams {
    fn add(&mut self, stream: Option<u64>) {
        *self = match *self {
            Streams::None => Streams::One(stream),
            Streams::One(known) if known == stream => *self,
            _ => Streams::Several,
        };
    }

    fn has_other_than(self, stream: Option<u64>) -> bool {
        match self {
            Streams::None => false,
            // a stream that is not known may be any
            Streams::One(launched) => launched.is_none() || stream.is_none() || launched != stream,
            Streams::Several => true,
        }
    }
}

#[derive(Debug, Default)]
struct Course {
    launched: Streams,
    /// The same between the waits before, for copies between that wait and the next one.
    open: Option<Open>,
    copies: u64,
    beside: u64,
    bytes: u64,
}

impl Sum for Course {
    fn join(&mut self, other: &Course) {
        self.copies += other.copies;
        self.beside += other.beside;
        self.bytes.grow(other.bytes);
    }
}

/// Copies since the last wait: of one stream, or the last one's stream.
#[derive(Debug, Default)]
struct Open {
    stream: Option<u64>,
    evidence: Evidence,
    bytes: u64,
}

/// Copies that could run beside kernels and never do.
#[derive(Debug, Default)]
pub(crate) struct NoOverlap(Phased<Course>);

impl Course {
    /// A wait: what was given before it and what comes after do not meet.
    fn settle(&mut self, alone: &mut Evidence) {
        let launched = std::mem::take(&mut self.launched);
        let Some(open) = self.open.take() else { return };
        self.copies += open.evidence.count;
        if launched.has_other_than(open.stream) {
            self.beside += open.evidence.count;
        } else {
            self.bytes.grow(open.bytes);
            alone.merge(&open.evidence);
        }
    }
}

fn concerns(seen: &Seen<'_>) -> bool {
    let event = seen.event;
    let pinned = event.host == Some(HostMemory::Pinned);
    seen.is_transfer() && pinned && !event.blocking && event.bytes.is_some_and(|bytes| bytes >= BYTES)
}

impl Rule for NoOverlap {
    fn name(&self) -> &'static str {
        "no-overlap"
    }

    fn wants(&self, kind: Kind, class: Class) -> Wants {
        match (kind, class) {
            (Kind::Call, Class::Copy | Class::Launch | Class::Sync) => Wants::Work,
            _ => Wants::Nothing,
        }
    }

    fn take(&mut self, seen: &Seen<'_>) {
        let event = seen.event;
        let is_copy = concerns(seen);
        let is_wait = matches!(seen.part, Part::Sync | Part::Item);
        if event.failed || !(is_copy || is_wait || seen.part == Part::Launch) {
            return;
        }
        let Some((alone, course)) = self.0.of(seen) else {
            return;
        };
        if is_wait {
            course.settle(alone);
        } else if is_copy && seen.process.launches > 0 {
            let open = course.open.get_or_insert_default();
            open.stream = event.stream;
            open.bytes.grow(event.bytes.unwrap_or(0));
            open.evidence.add(seen, event.bytes.unwrap_or(0));
        } else if !is_copy {
            course.launched.add(event.stream);
        }
    }

    fn conclude(&self, end: &End<'_>) -> Option<Finding> {
        // launches that are missing may be those beside
        if end.weakness(&[Class::Launch]).is_some() {
            return None;
        }
        let (alone, course) = self.0.worst(end, |_, course| course.bytes)?;
        let cost_ns = end.pinned.ns(course.bytes);
        let few_beside = !is_percent(course.beside, course.copies, BESIDE_PERCENT);
        if alone.count < AT_LEAST || !few_beside || !end.is_share(cost_ns, PERCENT) {
            return None;
        }
        Some(Finding {
            cost_ns,
            certainty: Certainty::Inferred,
            title: "Copies and kernels take turns".to_owned(),
            what: format!(
                "{} of {} copies ({}, {} at {}) had no launch of another stream beside them: kernels and copies took turns",
                count(alone.count),
                count(course.copies),
                bytes(course.bytes),
                duration(cost_ns),
                end.pinned.words()
            ),
            cure: "copy the next batch in a stream of its own while this one is computed, with events in between"
                .to_owned(),
            thresholds: format!(
                "at least {AT_LEAST} asynchronous copies of pinned memory of {} or more, {PERCENT} % of the time, less than \
                 {BESIDE_PERCENT} % beside launches",
                bytes(BYTES)
            ),
            weakened: end.weakness(&[Class::Copy]),
            ..alone.finding(self.name(), end)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::CopyKind;
    use crate::findings::fixture::{Fixture, MS};

    fn steps(fixture: &mut Fixture, stream: u64) {
        for _ in 0..50 {
            fixture.copy(CopyKind::HtoD, 25_000_000, stream);
            fixture.launch();
            fixture.sync(9 * MS);
        }
    }

    #[test]
    fn copies_in_the_stream_of_the_kernels_cost_the_time_to_move_them() {
        let mut fixture = Fixture::of(NoOverlap::default());
        steps(&mut fixture, 1);
        let finding = fixture.finding();
        // all but the first, which comes before any launch: 1 ms each
        assert_eq!((finding.count, finding.cost_ns), (49, 49 * MS));
        assert_eq!(finding.certainty, Certainty::Inferred);
    }

    #[test]
    fn copies_beside_kernels_of_another_stream_are_none() {
        let mut fixture = Fixture::of(NoOverlap::default());
        steps(&mut fixture, 2);
        assert_eq!(fixture.findings(), []);
    }

    #[test]
    fn where_launches_have_no_rows_nothing_is_said() {
        let mut fixture = Fixture::of(NoOverlap::default());
        steps(&mut fixture, 1);
        let name = "cuLaunchKernel";
        fixture.row(&crate::record::Record {
            name,
            ..crate::record::Record::new(Kind::Lost, 0, 0)
        });
        assert_eq!(fixture.findings(), []);
    }
}
