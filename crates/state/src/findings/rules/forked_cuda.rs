//! A process that was forked from one that had called CUDA calls it, too: what it inherited does not work there.

use crate::catalog::Class;
use crate::findings::cases::Cases;
use crate::findings::evidence::End;
use crate::findings::seen::Seen;
use crate::findings::table::Bounded;
use crate::findings::{Rule, Wants};
use crate::model::finding::Finding;
use crate::record::{Kind, Record};
use crate::text::quantity::plural;

/// `CUDA_ERROR_NOT_INITIALIZED`, `cudaErrorInitializationError`.
const NOT_INITIALIZED: i64 = 3;
/// Processes that are remembered.
const PROCESSES: usize = 4096;

/// A process.
#[derive(Debug, Default)]
struct Life {
    has_called: bool,
    /// That of which it is a copy, if that had called CUDA.
    parent: Option<u32>,
}

#[derive(Debug)]
struct First {
    parent: u32,
    error: String,
    function: String,
}

/// The first such call of each process.
#[derive(Debug)]
pub(crate) struct ForkedCuda {
    lives: Bounded<Life>,
    cases: Cases<Option<First>>,
}

impl Default for ForkedCuda {
    fn default() -> ForkedCuda {
        ForkedCuda {
            lives: Bounded::new(PROCESSES),
            cases: Cases::default(),
        }
    }
}

fn parent_of(event: &Record<'_>) -> Option<u32> {
    let args: serde_json::Value = serde_json::from_str(event.args?).ok()?;
    args["parent_pid"].as_u64()?.try_into().ok()
}

impl ForkedCuda {
    fn process(&mut self, event: &Record<'_>) {
        self.lives.remove(u64::from(event.pid));
        let parent = parent_of(event).filter(|_| event.name == "fork");
        let inherits = |parent: &u32| {
            let life = self.lives.get_mut(u64::from(*parent));
            life.is_some_and(|life| life.has_called || life.parent.is_some())
        };
        let Some(parent) = parent.filter(inherits) else {
            return;
        };
        if let Some(life) = self.lives.entry(u64::from(event.pid)) {
            life.parent = Some(parent);
        }
    }

    fn call(&mut self, seen: &Seen<'_>) {
        let event = seen.event;
        let Some(life) = self.lives.entry(u64::from(event.pid)) else {
            return;
        };
        life.has_called |= !event.failed && event.class != Class::Error;
        let refused = event.failed && event.depth == 0 && event.result == Some(NOT_INITIALIZED);
        let Some(parent) = life.parent.filter(|_| refused) else {
            return;
        };
        let Some((evidence, first)) = self.cases.of(seen) else {
            return;
        };
        first.get_or_insert_with(|| First {
            parent,
            error: event.error.unwrap_or("?").to_owned(),
            function: event.name.to_owned(),
        });
        evidence.add(seen, 0);
    }
}

impl Rule for ForkedCuda {
    fn name(&self) -> &'static str {
        "forked-cuda"
    }

    fn wants(&self, kind: Kind, _: Class) -> Wants {
        match kind {
            Kind::Call | Kind::Process => Wants::All,
            _ => Wants::Nothing,
        }
    }

    fn take(&mut self, seen: &Seen<'_>) {
        match seen.event.kind {
            Kind::Process => self.process(seen.event),
            _ => self.call(seen),
        }
    }

    fn conclude(&self, end: &End<'_>) -> Option<Finding> {
        let (evidence, first) = self.cases.worst(|evidence, _| evidence.count)?;
        let first = first.as_ref()?;
        Some(Finding {
            grave: true,
            title: format!("{} ({NOT_INITIALIZED}): CUDA in a forked child; use spawn", first.error),
            what: format!(
                "{} failed with {} ({NOT_INITIALIZED}), first {}: the process was forked from {}, which had called CUDA, \
                 and what CUDA had made there does not work in a copy of the process",
                plural(evidence.count, "call"),
                first.error,
                first.function,
                first.parent
            ),
            cure: "start the process with spawn or forkserver instead of fork (multiprocessing.set_start_method(\"spawn\"), \
                   multiprocessing_context=\"spawn\" of a DataLoader), or call CUDA first behind the fork"
                .to_owned(),
            thresholds: "one call that fails so in a process forked, without an exec since, from one that had called CUDA"
                .to_owned(),
            weakened: end.run.weakness(|_| true),
            ..evidence.finding(self.name(), end)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::{Fixture, US};

    const CHILD: u32 = 8;

    fn happens(fixture: &mut Fixture, name: &'static str, args: Option<&'static str>) {
        fixture.row(&Record {
            name,
            args,
            ..Record::new(Kind::Process, fixture.at, CHILD)
        });
    }

    fn child_fails(fixture: &mut Fixture) {
        fixture.call(Class::Alloc, 5 * US, |event| {
            (event.pid, event.tid, event.name) = (CHILD, CHILD, "cudaMalloc");
            (event.failed, event.result) = (true, Some(NOT_INITIALIZED));
            event.error = Some("cudaErrorInitializationError");
        });
    }

    fn forked() -> Fixture {
        let mut fixture = Fixture::of(ForkedCuda::default());
        fixture.launch();
        happens(&mut fixture, "fork", Some(r#"{"parent_pid":7}"#));
        fixture
    }

    #[test]
    fn a_call_that_fails_in_a_copy_of_a_process_that_had_called_cuda_says_what_to_do() {
        let mut fixture = forked();
        child_fails(&mut fixture);
        let finding = fixture.finding();
        let title = "cudaErrorInitializationError (3): CUDA in a forked child; use spawn";
        assert_eq!((finding.title.as_str(), finding.count, finding.grave), (title, 1, true));
        assert!(finding.what.contains("forked from 7"), "{}", finding.what);
        assert_eq!(finding.moments[0].pid, CHILD);
    }

    #[test]
    fn a_program_of_its_own_inherits_nothing() {
        let mut fixture = forked();
        happens(&mut fixture, "exec", None);
        child_fails(&mut fixture);
        assert_eq!(fixture.findings(), []);
    }

    #[test]
    fn a_fork_before_cuda_is_called_is_none_of_it() {
        let mut fixture = Fixture::of(ForkedCuda::default());
        happens(&mut fixture, "fork", Some(r#"{"parent_pid":7}"#));
        fixture.launch();
        child_fails(&mut fixture);
        assert_eq!(fixture.findings(), []);
    }
}
