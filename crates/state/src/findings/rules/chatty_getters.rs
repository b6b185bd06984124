//! The same questions over and over: which device, is the stream done, how much memory is free.
//!
//! A question that is answered "not yet" is asked again: what it costs is the time until then, not that of the call, which may be
//! next to nothing. What the program does between two such questions is not seen, so that this is a bound.

use crate::catalog::Class;
use crate::findings::cases::Cases;
use crate::findings::evidence::{End, Evidence};
use crate::findings::seen::{Seen, answers_not_yet};
use crate::findings::table::{Bounded, Grow};
use crate::findings::{Rule, Wants};
use crate::model::finding::Finding;
use crate::model::work::Certainty;
use crate::record::{Kind, Record};
use crate::text::quantity::{duration, form, plural};

const RATE: f64 = 10_000.0;
const PERCENT: u64 = 1;
/// What a getter takes whose time is not taken: a call and a look at the thread's context.
const GETTER_NS: u64 = 10;

/// Who asks again later than this has done something else, for the rest.
const AGAIN_NS: u64 = 100_000;
/// Threads of a process that are told apart.
const THREADS: usize = 64;

/// Questions that were answered "not yet", and the time until the next one.
#[derive(Debug)]
struct Polling {
    times: u64,
    ns: u64,
    /// By thread: when the last such answer came.
    answered: Bounded<i64>,
}

impl Default for Polling {
    fn default() -> Polling {
        Polling {
            times: 0,
            ns: 0,
            answered: Bounded::new(THREADS),
        }
    }
}

impl Polling {
    fn take(&mut self, event: &Record<'_>) {
        let (Some(ns), 0) = (event.ns, event.depth) else {
            return;
        };
        let thread = u64::from(event.tid);
        if let Some(answered) = self.answered.remove(thread) {
            self.ns.grow(
                event
                    .at
                    .saturating_sub(answered)
                    .clamp(0, AGAIN_NS as i64)
                    .unsigned_abs(),
            );
        }
        if !answers_not_yet(event) {
            return;
        }
        self.times.grow(1);
        self.ns.grow(ns);
        if let Some(answered) = self.answered.entry(thread) {
            *answered = event.at.saturating_add_unsigned(ns);
        }
    }

    /// Beside what the calls took.
    fn words(&self) -> String {
        format!(
            "; {} answered \"not yet\": asking again took {} at most",
            form(self.times, "one was", &format!("{} were", self.times)),
            duration(self.ns)
        )
    }
}

/// Of the layers that are never added up: the driver's, and all others.
#[derive(Debug, Default)]
struct Layers {
    driver: Evidence,
    other: Evidence,
    /// Time that was not taken.
    assumed_ns: u64,
    polling: Polling,
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
        if event.kind == Kind::Call {
            layers.polling.take(event);
        }
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
        let polling = Some(&layers.polling).filter(|polling| polling.ns > evidence.ns);
        let cost_ns = polling.map_or(evidence.ns, |polling| polling.ns);
        if end.rate(evidence.count) < RATE || !end.is_share(cost_ns, PERCENT) {
            return None;
        }
        let finding = evidence.finding(self.name(), end);
        let most = finding.moments.first().map_or("?", |moment| moment.name.as_str());
        let assumed = layers.assumed_ns > evidence.ns / 10;
        let each = if assumed { "some 10 ns each" } else { "measured" };
        Some(Finding {
            cost_ns,
            certainty: match (polling, assumed) {
                (Some(_), _) => Certainty::Bound,
                (None, true) => Certainty::Inferred,
                (None, false) => Certainty::Measured,
            },
            title: format!(
                "The same questions are asked {:.0} times a second",
                end.rate(evidence.count)
            ),
            what: format!(
                "{} that only {}, {:.0} a second, {most} above all: {} ({each}){}",
                plural(evidence.count, "call"),
                form(evidence.count, "asks", "ask"),
                end.rate(evidence.count),
                duration(evidence.ns),
                polling.map(Polling::words).unwrap_or_default()
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
    use crate::findings::seen::NOT_READY;

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
    fn who_asks_again_until_it_is_done_loses_the_time_in_between_at_most() {
        let mut fixture = Fixture::of(ChattyGetters::default());
        for _ in 0..100 {
            fixture.launch();
            for question in 0..400 {
                let result = if question < 399 { NOT_READY } else { 0 };
                fixture.call(Class::Query, 100, |event| event.result = Some(result));
                fixture.pass(19_900);
            }
            fixture.launch();
        }
        let finding = fixture.finding();
        assert_eq!((finding.count, finding.cost_ns), (40_000, 100 * 399 * 20_000));
        assert_eq!(finding.certainty, Certainty::Bound);
        assert!(
            finding
                .what
                .contains("4.0 ms (measured); 39900 were answered \"not yet\": asking again took 798.0 ms at most"),
            "{}",
            finding.what
        );
    }

    #[test]
    fn who_does_something_else_after_a_question_does_not_lose_that() {
        let mut fixture = Fixture::of(ChattyGetters::default());
        for _ in 0..100 {
            fixture.launch();
            fixture.call(Class::Query, 100, |event| event.result = Some(NOT_READY));
            fixture.pass(10 * MS);
            fixture.count(Class::Query, 200, None);
            fixture.launch();
        }
        assert_eq!(fixture.findings(), []);
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
