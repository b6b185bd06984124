//! The same questions over and over: which device, is the stream done, how much memory is free.

use crate::catalog::Class;
use crate::findings::cases::Cases;
use crate::findings::evidence::{End, Evidence};
use crate::findings::scene::Seen;
use crate::findings::table::Grow;
use crate::findings::{Rule, Wants};
use crate::model::finding::Finding;
use crate::model::work::Certainty;
use crate::record::Kind;
use crate::text::quantity::{duration, form, plural};

const RATE: f64 = 10_000.0;
const PERCENT: u64 = 1;
/// What a getter takes whose time is not taken: a call and a look at the thread's context.
const GETTER_NS: u64 = 10;

/// Of the layers that are never added up: the driver's, and all others.
#[derive(Debug, Default)]
struct Layers {
    driver: Evidence,
    other: Evidence,
    /// Time that was not taken.
    assumed_ns: u64,
}

impl Layers {
    fn busier(&self) -> &Evidence {
        match self.driver.count > self.other.count {
            true => &self.driver,
            false => &self.other,
        }
    }
}

/// The same questions over and over.
#[derive(Debug, Default)]
pub(crate) struct ChattyGetters(Cases<Layers>);

impl Rule for ChattyGetters {
    fn name(&self) -> &'static str {
        "chatty-getters"
    }

    fn wants(&self, kind: Kind, class: Class) -> Wants {
        match (kind, class) {
            (Kind::Call | Kind::Count, Class::Query) => Wants::All,
            _ => Wants::Nothing,
        }
    }

    fn take(&mut self, seen: &Seen<'_>) {
        let event = seen.event;
        let Some((_, layers)) = self.0.of(seen) else {
            return;
        };
        let assumed_ns = event.count.saturating_mul(GETTER_NS);
        let ns = event.ns.filter(|ns| *ns > 0);
        layers.assumed_ns.grow(if ns.is_none() { assumed_ns } else { 0 });
        let evidence = match event.layer {
            "driver" => &mut layers.driver,
            _ => &mut layers.other,
        };
        evidence.add(seen, ns.unwrap_or(assumed_ns));
        evidence.count.grow(event.count.saturating_sub(1));
    }

    fn conclude(&self, end: &End<'_>) -> Option<Finding> {
        let (_, layers) = self.0.worst(|_, layers| layers.busier().count)?;
        let evidence = layers.busier();
        if end.rate(evidence.count) < RATE || !end.is_share(evidence.ns, PERCENT) {
            return None;
        }
        let finding = evidence.finding(self.name(), end);
        let most = finding.moments.first().map_or("?", |moment| moment.name.as_str());
        let assumed = layers.assumed_ns > evidence.ns / 10;
        let each = if assumed { "some 10 ns each" } else { "measured" };
        Some(Finding {
            certainty: match assumed {
                true => Certainty::Inferred,
                false => Certainty::Measured,
            },
            title: format!(
                "The same questions are asked {:.0} times a second",
                end.rate(evidence.count)
            ),
            what: format!(
                "{} that only {}, {:.0} a second, {most} above all: {} ({each})",
                plural(evidence.count, "call"),
                form(evidence.count, "asks", "ask"),
                end.rate(evidence.count),
                duration(evidence.ns)
            ),
            cure: "ask once and remember the answer; wait (cudaEventSynchronize) instead of polling".to_owned(),
            thresholds: format!("{RATE:.0} calls/s of class query, {PERCENT} % of the time"),
            weakened: end.weakness(&[Class::Query]),
            ..finding
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::{Fixture, MS};

    fn seconds(fixture: &mut Fixture, each: u64, ns: Option<u64>) {
        for _ in 0..3 {
            fixture.launch();
            fixture.pass(1000 * MS);
            fixture.count(Class::Query, each, ns);
            fixture.launch();
        }
    }

    #[test]
    fn questions_without_rows_count_with_an_assumed_time() {
        let mut fixture = Fixture::of(ChattyGetters::default());
        seconds(&mut fixture, 1_200_000, None);
        let finding = fixture.finding();
        assert_eq!((finding.count, finding.cost_ns), (3_600_000, 36 * MS));
        assert_eq!(finding.certainty, Certainty::Inferred);
        assert!(finding.what.contains("getter above all"), "{}", finding.what);
    }

    #[test]
    fn a_time_that_was_taken_is_measured() {
        let mut fixture = Fixture::of(ChattyGetters::default());
        seconds(&mut fixture, 50_000, Some(100 * MS));
        assert_eq!(
            (fixture.finding().cost_ns, fixture.finding().certainty),
            (300 * MS, Certainty::Measured)
        );
    }

    #[test]
    fn questions_that_are_few_or_cost_little_are_none() {
        for each in [5_000, 100_000] {
            let mut fixture = Fixture::of(ChattyGetters::default());
            seconds(&mut fixture, each, None);
            assert_eq!(fixture.findings(), []);
        }
    }

    #[test]
    fn more_calls_than_a_number_holds_are_as_many_as_it_holds() {
        let mut fixture = Fixture::of(ChattyGetters::default());
        fixture.healthy(10);
        (0..2).for_each(|_| fixture.count(Class::Query, u64::MAX, None));
        assert_eq!(fixture.finding().count, u64::MAX);
    }
}
