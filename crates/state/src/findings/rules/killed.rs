//! A process that worked with CUDA is ended by a signal: what its threads did last.

use crate::catalog::Class;
use crate::findings::evidence::End;
use crate::findings::finding::Moments;
use crate::findings::seen::Seen;
use crate::findings::table::Bounded;
use crate::findings::{Rule, Wants};
use crate::model::finding::{Finding, Moment};
use crate::model::work::Certainty;
use crate::record::{Kind, Record};
use crate::text::quantity::{count, duration, plural};

/// Signals that end what went wrong; others are how programs are asked to end.
const SIGNALS: [(u64, &str); 7] = [
    (4, "SIGILL"),
    (6, "SIGABRT"),
    (7, "SIGBUS"),
    (8, "SIGFPE"),
    (9, "SIGKILL"),
    (11, "SIGSEGV"),
    (31, "SIGSYS"),
];
const KILL: u64 = 9;
/// Threads whose last call is remembered.
const THREADS: usize = 4096;
/// Threads that are named.
const NAMED: usize = 3;

/// The last call of a thread that returned, or whose return is not seen, of those that nothing encloses.
#[derive(Debug, Default)]
struct Last {
    pid: u32,
    at: i64,
    /// `None`: its return is not seen.
    ns: Option<u64>,
    name: String,
}

#[derive(Debug)]
struct Death {
    pid: u32,
    comm: String,
    signal: u64,
    at: i64,
    /// By thread, the latest first.
    last: Vec<(u32, Last)>,
    threads: u64,
}

/// A process that worked with CUDA is ended by a signal.
#[derive(Debug)]
pub struct Killed {
    threads: Bounded<Last>,
    /// The first one: others often die of it.
    death: Option<Death>,
    deaths: u64,
}

impl Default for Killed {
    fn default() -> Killed {
        Killed {
            threads: Bounded::new(THREADS),
            death: None,
            deaths: 0,
        }
    }
}

impl Last {
    fn end(&self) -> i64 {
        self.at.saturating_add_unsigned(self.ns.unwrap_or(0))
    }
}

fn signal_of(event: &Record<'_>) -> Option<u64> {
    let args: serde_json::Value = serde_json::from_str(event.args?).ok()?;
    args["signal"].as_u64()
}

fn name_of(signal: u64) -> Option<&'static str> {
    let known = SIGNALS.iter().find(|(number, _)| *number == signal);
    known.map(|(_, name)| *name)
}

impl Killed {
    fn call(&mut self, event: &Record<'_>) {
        let Some(last) = self.threads.entry(u64::from(event.tid)) else {
            return;
        };
        (last.pid, last.at, last.ns) = (event.pid, event.at, event.ns);
        if last.name != event.name {
            last.name.clear();
            last.name.push_str(event.name);
        }
    }

    fn process(&mut self, event: &Record<'_>) {
        if event.name != "exit" {
            return;
        }
        let of_process = self.threads.iter().filter(|(_, last)| last.pid == event.pid);
        let tids: Vec<u32> = of_process.map(|(tid, _)| tid as u32).collect();
        let mut last: Vec<(u32, Last)> = tids
            .iter()
            .filter_map(|tid| Some((*tid, self.threads.remove(u64::from(*tid))?)))
            .collect();
        let Some(signal) = signal_of(event).filter(|signal| name_of(*signal).is_some() && !last.is_empty()) else {
            return;
        };
        last.sort_by_key(|(tid, last)| (std::cmp::Reverse(last.end()), *tid));
        self.deaths += 1;
        self.death.get_or_insert(Death {
            pid: event.pid,
            comm: event.comm.to_owned(),
            signal,
            at: event.at,
            threads: last.len() as u64,
            last,
        });
    }
}

impl Death {
    fn last_calls(&self) -> String {
        let named = self.last.iter().take(NAMED).map(|(tid, last)| {
            let ns = self.at.saturating_sub(last.end()).max(0).unsigned_abs();
            let begun = if last.ns.is_none() { "begun " } else { "" };
            format!("{} of thread {tid}, {begun}{} before", last.name, duration(ns))
        });
        named.collect::<Vec<String>>().join("; ")
    }

    /// Of the calls that are named.
    fn may_be_under_way(&self) -> bool {
        self.last.iter().any(|(_, last)| last.ns.is_none())
    }

    fn moments(&self) -> Moments {
        let mut moments = Moments::default();
        for (tid, last) in &self.last {
            let moment = Moment {
                at: last.at,
                ns: last.ns.unwrap_or(0),
                pid: self.pid,
                tid: *tid,
                name: last.name.clone(),
            };
            moments.note_moment(u64::try_from(last.end()).unwrap_or(0), moment);
        }
        moments
    }
}

/// Calls that never returned, of the whole run.
fn under_way(end: &End<'_>, death: &Death) -> String {
    let calls = end.run.unreturned.iter().take(NAMED);
    let calls: Vec<String> = calls
        .map(|(name, calls)| format!("{name} ({})", count(*calls)))
        .collect();
    match (calls.is_empty(), death.may_be_under_way()) {
        (true, false) => "no call of the run was under way".to_owned(),
        (true, true) => {
            "none was under way of the calls whose return is seen; of others (begun) that is not known".to_owned()
        }
        (false, _) => format!("calls that never returned: {}", calls.join(", ")),
    }
}

impl Rule for Killed {
    fn name(&self) -> &'static str {
        "killed"
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
            _ if seen.event.depth == 0 => self.call(seen.event),
            _ => {}
        }
    }

    fn conclude(&self, end: &End<'_>) -> Option<Finding> {
        let death = self.death.as_ref()?;
        let signal = name_of(death.signal)?;
        let others = match self.deaths - 1 {
            0 => String::new(),
            others => format!("; {} died so after it", plural(others, "other process")),
        };
        let cure = match death.signal {
            KILL => {
                "it came from outside: the kernel for want of memory (dmesg), a limit of the container, a scheduler, or \
                 somebody"
            }
            _ => {
                "a debugger has the stack: gdb on the core (coredumpctl gdb), or python -X faulthandler; \
                 compute-sanitizer CMD if a kernel is suspected"
            }
        };
        Some(Finding {
            rule: self.name(),
            title: format!("Process {} ({}) was ended by {signal}", death.pid, death.comm),
            what: format!(
                "at {:.3} s; last calls of its {} that called: {}; {}{others}",
                death.at as f64 / 1e9,
                plural(death.threads, "thread"),
                death.last_calls(),
                under_way(end, death)
            ),
            cost_ns: 0,
            grave: true,
            certainty: Certainty::Measured,
            count: self.deaths,
            moments: death.moments().list(end.interner),
            site: None,
            places: Vec::new(),
            cure: cure.to_owned(),
            thresholds: format!(
                "a process that called CUDA is ended by {}",
                SIGNALS.map(|(_, name)| name).join(", ")
            ),
            weakened: end.weakness(&[]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::fixture::{Fixture, MS, US};

    fn end(fixture: &mut Fixture, args: Option<&'static str>) {
        fixture.row(&Record {
            name: "exit",
            comm: "python",
            args,
            ..Record::new(Kind::Process, fixture.at, 7)
        });
    }

    #[test]
    fn the_signal_and_the_last_call_of_each_thread_are_said() {
        let mut fixture = Fixture::of(Killed::default());
        fixture.sync(MS);
        fixture.tid = 8;
        fixture.launch();
        fixture.pass(20 * US);
        end(&mut fixture, Some(r#"{"signal":11}"#));
        let finding = fixture.finding();
        assert_eq!(finding.title, "Process 7 (python) was ended by SIGSEGV");
        assert!(
            finding
                .what
                .contains("launch of thread 8, 20.0 µs before; sync of thread 7, 24.0 µs before"),
            "{}",
            finding.what
        );
        assert_eq!((finding.grave, finding.moments.len()), (true, 2));
        assert_eq!(finding.moments[0].name, "launch");
    }

    #[test]
    fn of_a_call_that_is_seen_at_its_entry_alone_nobody_knows_whether_it_had_returned() {
        let mut fixture = Fixture::of(Killed::default());
        fixture.sync(MS);
        fixture.call(Class::Launch, 0, |event| event.ns = None);
        fixture.pass(20 * US);
        end(&mut fixture, Some(r#"{"signal":9}"#));
        let what = fixture.finding().what;
        assert!(what.contains("launch of thread 7, begun 20.0 µs before; "), "{what}");
        assert!(!what.contains("no call of the run"), "{what}");
    }

    #[test]
    fn an_end_by_itself_or_by_request_is_none() {
        for args in [None, Some(r#"{"signal":15}"#), Some(r#"{"signal":2}"#)] {
            let mut fixture = Fixture::of(Killed::default());
            fixture.launch();
            end(&mut fixture, args);
            assert_eq!(fixture.findings(), [], "{args:?}");
        }
    }

    #[test]
    fn who_never_called_cuda_may_die_as_it_likes() {
        let mut fixture = Fixture::of(Killed::default());
        end(&mut fixture, Some(r#"{"signal":9}"#));
        assert_eq!(fixture.findings(), []);
    }
}
