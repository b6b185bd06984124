//! A call fails, and the program goes on as if it had not: nobody asks for the error, or it comes again and again.

use super::sticky_error::is_sticky;
use crate::catalog::Class;
use crate::findings::cases::Cases;
use crate::findings::evidence::{End, Evidence};
use crate::findings::past::Past;
use crate::findings::seen::{OUT_OF_MEMORY, Seen};
use crate::findings::table::Bounded;
use crate::findings::{Rule, Wants};
use crate::model::finding::Finding;
use crate::model::work::Certainty;
use crate::record::Kind;
use crate::text::quantity::plural;

/// Calls of the same thread behind a failure among which one asks for the error, if anybody does.
const CALLS: u32 = 16;
/// The same failure as often in a row needs no further call.
const REPEATS: u32 = 3;
/// Not initialised by a stub library, an old driver, no device, peer access that is there already, memory that is pinned
/// already, not supported: programs find out that way.
const EXPECTED: [i64; 6] = [34, 35, 100, 704, 712, 801];
const THREADS: usize = 4096;
/// Failures of a process that nobody has asked for yet.
const OPEN: usize = 256;

/// A failure that may still be asked for.
#[derive(Debug, Clone, Copy)]
struct Failure {
    past: Past,
    code: i64,
    calls: u32,
    times: u32,
}

/// Failures of a process that seem to be ignored, since the last row that counts questions for errors.
#[derive(Debug, Default)]
struct Ignored {
    open: Vec<Failure>,
    asked_until: Option<i64>,
}

/// A call fails, and the program goes on as if it had not.
#[derive(Debug)]
pub(crate) struct UncheckedErrors {
    cases: Cases<Ignored>,
    threads: Bounded<Option<Failure>>,
    /// Of threads with a failure.
    watched: usize,
    /// Questions for errors can be seen at all.
    sees_questions: bool,
}

impl Default for UncheckedErrors {
    fn default() -> UncheckedErrors {
        UncheckedErrors {
            cases: Cases::default(),
            threads: Bounded::new(THREADS),
            watched: 0,
            sees_questions: false,
        }
    }
}

fn matters(class: Class) -> bool {
    use Class::{Alloc, Copy, Event, Free, Graph, Launch, Memory, Memset, Prefetch, Stream, Sync};
    matches!(
        class,
        Alloc | Copy | Event | Free | Graph | Launch | Memory | Memset | Prefetch | Stream | Sync
    )
}

/// Memory that is short and errors that stay are other findings.
fn is_failure(seen: &Seen<'_>) -> bool {
    let (event, code) = (seen.event, seen.event.result.unwrap_or(0));
    let short = event.class == Class::Alloc && code == OUT_OF_MEMORY;
    event.failed && matters(event.class) && !short && !is_sticky(Some(code)) && !EXPECTED.contains(&code)
}

impl UncheckedErrors {
    fn question(&mut self, seen: &Seen<'_>) {
        if let Some(Some(_)) = self.threads.remove(u64::from(seen.event.tid)) {
            self.watched -= 1;
        }
    }

    /// Questions that have no rows: any of them may have been for any error since the last such row.
    fn questions(&mut self, seen: &Seen<'_>) {
        let at = seen.event.at;
        if seen.event.pid == 0 {
            return self.cases.all().for_each(|(_, ignored)| ignored.asked(at));
        }
        if let Some((_, ignored)) = self.cases.of(seen) {
            ignored.asked(at);
        }
    }

    fn call(&mut self, seen: &Seen<'_>) {
        let failed = is_failure(seen);
        if self.watched == 0 && !failed {
            return;
        }
        let tid = u64::from(seen.event.tid);
        let done = match self.threads.get_mut(tid) {
            Some(Some(failure)) => failure.another(seen, failed),
            _ => None,
        };
        if let Some(failure) = done {
            if let Some((_, ignored)) = self.cases.of(seen).filter(|(_, ignored)| ignored.open.len() < OPEN) {
                ignored.open.push(failure);
            }
            self.question(seen);
        } else if failed {
            self.watch(seen, tid);
        }
    }

    fn watch(&mut self, seen: &Seen<'_>, tid: u64) {
        let fresh = Failure {
            past: Past::of(seen),
            code: seen.event.result.unwrap_or(0),
            calls: 0,
            times: 1,
        };
        if let Some(place @ None) = self.threads.entry(tid) {
            *place = Some(fresh);
            self.watched += 1;
        }
    }
}

impl Ignored {
    /// Somebody has asked, between the last time and `at`.
    fn asked(&mut self, at: i64) {
        let before = self.asked_until.replace(at).unwrap_or(i64::MIN);
        self.open
            .retain(|failure| failure.past.start <= before || failure.past.start > at);
    }
}

impl Failure {
    /// Another call of the thread; returns itself once it has been ignored.
    fn another(&mut self, seen: &Seen<'_>, failed: bool) -> Option<Failure> {
        self.calls = self.calls.saturating_add(1);
        let again = failed && seen.name == self.past.name && seen.event.result == Some(self.code);
        self.times = self.times.saturating_add(u32::from(again));
        (self.calls >= CALLS || again && self.times >= REPEATS).then_some(*self)
    }
}

impl Rule for UncheckedErrors {
    fn name(&self) -> &'static str {
        "unchecked-errors"
    }

    fn wants(&self, kind: Kind, _: Class) -> Wants {
        match kind {
            Kind::Call | Kind::Count => Wants::All,
            _ => Wants::Nothing,
        }
    }

    fn take(&mut self, seen: &Seen<'_>) {
        let event = seen.event;
        let is_question = event.class == Class::Error;
        match event.kind {
            Kind::Count => {
                self.sees_questions = true;
                if is_question {
                    self.questions(seen);
                }
            }
            _ if is_question => {
                self.sees_questions = true;
                self.question(seen);
            }
            _ if event.depth == 0 => self.call(seen),
            _ => {}
        }
    }

    fn conclude(&self, end: &End<'_>) -> Option<Finding> {
        // questions that are missing may be for these
        if !self.sees_questions || end.run.weakness(|_| true).is_some() {
            return None;
        }
        let times = |ignored: &Ignored| ignored.open.iter().map(|failure| u64::from(failure.times)).sum::<u64>();
        let (_, ignored) = self.cases.worst(|_, ignored| times(ignored))?;
        let first = ignored.open.first()?;
        let mut evidence = Evidence::default();
        for failure in &ignored.open {
            evidence.add_past(&failure.past, u64::from(failure.times));
        }
        Some(Finding {
            grave: true,
            cost_ns: 0,
            count: times(ignored),
            certainty: Certainty::Inferred,
            title: format!("{} failed, and nobody asked", plural(times(ignored), "call")),
            what: format!(
                "{} failed, such as {} with {}, and nobody asked for the error: the thread went on, or failed in the \
                 same way again",
                plural(times(ignored), "call"),
                end.interner.name(first.past.name),
                first.code
            ),
            cure: "check what each call returns, and cudaGetLastError() after launches".to_owned(),
            thresholds: format!(
                "no question for an error within {CALLS} calls of the thread, or the same failure {REPEATS} times in a row"
            ),
            weakened: None,
            ..evidence.finding(self.name(), end)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::{Fixture, MS, US};

    fn fail(fixture: &mut Fixture, code: i64) {
        fixture.call(Class::Copy, 5 * US, |event| {
            (event.failed, event.result) = (true, Some(code))
        });
    }

    fn fixture() -> Fixture {
        let mut fixture = Fixture::of(UncheckedErrors::default());
        fixture.count(Class::Query, 3, None);
        fixture
    }

    #[test]
    fn a_failure_that_nobody_asks_for_within_sixteen_calls_is_ignored() {
        let mut fixture = fixture();
        fail(&mut fixture, 1);
        (0..15).for_each(|_| fixture.launch());
        assert_eq!(fixture.findings(), []);
        fixture.launch();
        let finding = fixture.finding();
        assert_eq!(
            (finding.count, finding.grave, finding.certainty),
            (1, true, Certainty::Inferred)
        );
        assert_eq!(finding.moments.len(), 1);
    }

    #[test]
    fn the_same_failure_three_times_in_a_row_is_ignored() {
        let mut fixture = fixture();
        (0..3).for_each(|_| fail(&mut fixture, 1));
        assert_eq!(fixture.finding().count, 3);
    }

    #[test]
    fn an_error_that_is_asked_for_is_none() {
        let mut fixture = fixture();
        for _ in 0..100 {
            fail(&mut fixture, 1);
            fixture.call(Class::Error, US, |event| event.layer = "runtime");
            fixture.healthy(1);
        }
        assert_eq!(fixture.findings(), []);
    }

    #[test]
    fn so_it_is_where_questions_are_only_counted() {
        let mut fixture = fixture();
        (0..3).for_each(|_| fail(&mut fixture, 1));
        fixture.pass(MS);
        fixture.count(Class::Error, 1, None);
        assert_eq!(fixture.findings(), []);
        (0..3).for_each(|_| fail(&mut fixture, 1));
        assert_eq!(fixture.finding().count, 3);
    }

    #[test]
    fn what_programs_try_on_purpose_and_what_is_lost_say_nothing() {
        let mut fixture = fixture();
        (0..3).for_each(|_| fail(&mut fixture, 704));
        assert_eq!(fixture.findings(), []);
        (0..3).for_each(|_| fail(&mut fixture, 1));
        fixture.row(&crate::record::Record {
            name: "x",
            ..crate::record::Record::new(Kind::Lost, 0, 0)
        });
        assert_eq!(fixture.findings(), []);
    }
}
