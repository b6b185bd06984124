//! The same questions over and over: which device, is the stream done, how much memory is free.
//!
//! A question that is answered "not yet" is asked again: what it costs is the time until then, not that of the call, which may be
//! next to nothing. What the program does between two such questions is not seen, so that this is a bound.

use crate::catalog::Class;
use crate::findings::cases::Cases;
use crate::findings::evidence::{End, Evidence};
use crate::findings::seen::{Seen, answers_not_yet};
use crate::findings::table::{Bounded, Grow, is_percent};
use crate::findings::{Rule, Wants};
use crate::model::finding::Finding;
use crate::model::work::Certainty;
use crate::record::{Kind, Record};
use crate::text::quantity::{duration, form, plural};
use std::collections::BTreeMap;

const RATE: f64 = 10_000.0;
/// Fewer say nothing of how many it is a second.
const AT_LEAST: u64 = 10_000;
const PERCENT: u64 = 1;
/// What a getter takes whose time is not taken: a call and a look at the thread's context.
const GETTER_NS: u64 = 10;

/// Who asks again later than this has done something else, for the rest.
const AGAIN_NS: u64 = 100_000;
/// Threads of a process that are told apart.
const THREADS: usize = 64;
/// Functions that are told apart.
const NAMES: usize = 64;
/// Calls without rows are counted so often.
const READING_NS: i64 = 1_000_000_000;

/// When counters were read: calls without rows were made between two readings.
#[derive(Debug, Default)]
struct Readings {
    latest: Option<i64>,
    before: Option<i64>,
}

impl Readings {
    /// From when on those calls are that a reading at `at` counts.
    fn since(&mut self, at: i64) -> i64 {
        if self.latest.is_none_or(|latest| at > latest) {
            self.before = self.latest.replace(at);
        }
        self.before
            .unwrap_or_else(|| at.saturating_sub(READING_NS).max(0))
            .min(at)
    }
}

/// How often which question was asked.
#[derive(Debug, Default)]
struct Names(BTreeMap<String, u64>);

impl Names {
    fn add(&mut self, name: &str, count: u64) {
        if let Some(known) = self.0.get_mut(name) {
            known.grow(count);
        } else if self.0.len() < NAMES {
            self.0.insert(name.to_owned(), count);
        }
    }

    fn most(&self) -> &str {
        let most = self.0.iter().max_by_key(|(_, count)| **count);
        most.map_or("?", |(name, _)| name)
    }
}

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

/// What one layer was asked.
#[derive(Debug, Default)]
struct Asked {
    evidence: Evidence,
    names: Names,
    /// From the first question to the last one, as far as that is known.
    window: Option<(i64, i64)>,
}

impl Asked {
    fn take(&mut self, seen: &Seen<'_>, ns: u64, from: i64) {
        let event = seen.event;
        match event.kind {
            // nothing says when these calls were, or of which thread
            Kind::Count => {
                self.evidence.count.grow(event.count);
                self.evidence.ns.grow(ns);
            }
            _ => {
                self.evidence.add(seen, ns);
                self.evidence.count.grow(event.count.saturating_sub(1));
            }
        }
        self.names.add(event.name, event.count);
        let (first, last) = self.window.get_or_insert((from, event.end()));
        (*first, *last) = ((*first).min(from), (*last).max(event.end()));
    }

    /// The time that its questions are of: all of the steady part, and that of the questions where it is longer.
    fn window_ns(&self, end: &End<'_>) -> u64 {
        let window = self
            .window
            .map_or(0, |(from, to)| to.saturating_sub(from).max(0).unsigned_abs());
        window.max(end.run.steady_ns)
    }
}

/// Of the layers that are never added up: the driver's, and all others.
#[derive(Debug, Default)]
struct Layers {
    driver: Asked,
    other: Asked,
    /// Time that was not taken.
    assumed_ns: u64,
    polling: Polling,
}

impl Layers {
    fn busier(&self) -> &Asked {
        match self.driver.evidence.count > self.other.evidence.count {
            true => &self.driver,
            false => &self.other,
        }
    }
}

/// The same questions over and over.
#[derive(Debug, Default)]
pub(crate) struct ChattyGetters {
    cases: Cases<Layers>,
    readings: Readings,
}

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
        let from = match event.kind {
            Kind::Count => self.readings.since(event.at),
            _ => event.at,
        };
        let Some((_, layers)) = self.cases.of(seen) else {
            return;
        };
        if event.kind == Kind::Call {
            layers.polling.take(event);
        }
        let assumed_ns = event.count.saturating_mul(GETTER_NS);
        let ns = event.ns.filter(|ns| *ns > 0);
        layers.assumed_ns.grow(if ns.is_none() { assumed_ns } else { 0 });
        let asked = match event.layer {
            "driver" => &mut layers.driver,
            _ => &mut layers.other,
        };
        asked.take(seen, ns.unwrap_or(assumed_ns), from);
    }

    fn conclude(&self, end: &End<'_>) -> Option<Finding> {
        let (_, layers) = self.cases.worst(|_, layers| layers.busier().evidence.count)?;
        let asked = layers.busier();
        let evidence = &asked.evidence;
        let polling = Some(&layers.polling).filter(|polling| polling.ns > evidence.ns);
        let cost_ns = polling.map_or(evidence.ns, |polling| polling.ns);
        let window_ns = asked.window_ns(end);
        let rate = evidence.count as f64 * 1e9 / window_ns.max(1) as f64;
        if evidence.count < AT_LEAST || rate < RATE || !is_percent(cost_ns, window_ns, PERCENT) {
            return None;
        }
        let most = asked.names.most();
        let assumed = layers.assumed_ns > evidence.ns / 10;
        let each = if assumed { "some 10 ns each" } else { "measured" };
        let weakened = end.weakness(&[Class::Query]);
        let at_least = if weakened.is_some() { "at least " } else { "" };
        Some(Finding {
            cost_ns,
            certainty: match (polling, assumed) {
                (Some(_), _) => Certainty::Bound,
                (None, true) => Certainty::Inferred,
                (None, false) => Certainty::Measured,
            },
            title: format!("The same questions are asked {at_least}{rate:.0} times a second"),
            what: format!(
                "{} that only {}, {at_least}{rate:.0} a second, {most} above all: {} ({each}){}",
                plural(evidence.count, "call"),
                form(evidence.count, "asks", "ask"),
                duration(evidence.ns),
                polling.map(Polling::words).unwrap_or_default()
            ),
            cure: "ask once and remember the answer; wait (cudaEventSynchronize) instead of polling".to_owned(),
            thresholds: format!(
                "at least {} of class query, {RATE:.0} calls/s, {PERCENT} % of the time",
                plural(AT_LEAST, "call")
            ),
            weakened,
            ..evidence.finding(self.name(), end)
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
    fn what_a_short_program_asked_while_it_started_is_no_rate() {
        let mut fixture = Fixture::of(ChattyGetters::default());
        fixture.pass(400 * MS);
        fixture.launch();
        fixture.launch();
        fixture.count(Class::Query, 20_000, None);
        assert_eq!(fixture.findings(), []);
    }

    #[test]
    fn the_rate_is_of_the_time_in_which_was_asked_also_where_other_calls_have_no_rows() {
        let mut fixture = Fixture::of(ChattyGetters::default());
        fixture.launch();
        fixture.launch();
        for _ in 0..4 {
            fixture.pass(1000 * MS);
            fixture.count(Class::Query, 2_000_000, None);
        }
        let finding = fixture.finding();
        assert!(finding.title.contains("asked 2000000 times"), "{}", finding.title);
        assert_eq!(finding.moments, []);
    }

    #[test]
    fn more_calls_than_a_number_holds_are_as_many_as_it_holds() {
        let mut fixture = Fixture::of(ChattyGetters::default());
        fixture.healthy(10);
        (0..2).for_each(|_| fixture.count(Class::Query, u64::MAX, None));
        assert_eq!(fixture.finding().count, u64::MAX);
    }
}
