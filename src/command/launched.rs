//! A command that is started under a trace: its start, its end, and the exit status that follows from both.

use super::prepare::{self, StopFlag};
use super::rights;
use super::running::is_alive;
use crate::cli::Start;
use crate::discover;
use crate::output::say;
use crate::probe::launch::{Held, shell_status};
use crate::refusal::message;
use crate::rule::Rule;
use crate::text::quantity::escaped;
use crate::tracer::Tracer;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::{Child, ExitCode, ExitStatus};
use std::time::{Duration, Instant};

/// gpuscope itself failed; every other status may be the command's.
pub const FAILED: u8 = 125;

/// The exit status of `work`. Its failure is said here, because its status differs from that of other failures.
pub(crate) fn status_of(work: impl FnOnce() -> Result<u8>) -> ExitCode {
    ExitCode::from(work().unwrap_or_else(|error| {
        say(format_args!("gpuscope: {}", message(&error)));
        FAILED
    }))
}

/// A command at work, and what traces it.
pub(crate) struct Launched {
    pub tracer: Tracer,
    child: Child,
    stop: StopFlag,
    /// Whether processes that outlive the command are waited for.
    follow: bool,
    ended: Option<Ended>,
}

/// The command is over.
struct Ended {
    status: ExitStatus,
    since: Instant,
}

/// How long processes that the command has left behind may take to end: a shell's children are often a moment late.
const LATE: Duration = Duration::from_millis(200);

/// Why tracing stopped.
pub(crate) enum End {
    /// The command ended.
    Ended(ExitStatus),
    /// We were told to end, by this signal; process `pid` lives on.
    Signalled { signal: i32, pid: u32 },
}

impl Launched {
    /// Starts `command` with its probes in place; `Err` holds the exit status where it does not exist or cannot be
    /// executed, which has been said.
    ///
    /// # Errors
    /// What we could not do.
    pub(crate) fn start(mut tracer: Tracer, command: &[OsString], how: &Start) -> Result<Result<Launched, u8>> {
        let runner = prepare::runner(how)?;
        let path = prepare::search_path(runner.as_ref());
        if let Some(program) = command
            .first()
            .and_then(|name| prepare::find_program(name, path.as_deref()))
        {
            tracer.add_program(&program);
        }
        let whose = runner.as_ref().map(|runner| runner.user.words());
        let environment = tracer.environment_of(command.first().map(OsString::as_os_str), runner.as_ref())?;
        let held = Held::fork(command, runner, &environment)?;
        // only now: the command inherits which signals are ignored, and would not inherit a handler
        let stop = prepare::stop_flag()?;
        tracer.add_child(held.pid())?;
        tracer.step()?;
        Ok(match held.release() {
            Ok(child) => {
                rights::after_attaching(&tracer);
                tracer.write_aside();
                Ok(Launched {
                    tracer,
                    child,
                    stop,
                    follow: how.follow,
                    ended: None,
                })
            }
            Err(error) => {
                let hint = whose.map(|user| format!("\nhint: it runs as {user}; --as-root runs it as root"));
                say(format_args!("gpuscope: {error}{}", hint.unwrap_or_default()));
                Err(error.exit_status())
            }
        })
    }

    /// Traces until the command ends or we are told to end, with `each` after every step. What fails meanwhile is
    /// returned at the end: a broken output ends no trace.
    ///
    /// # Errors
    /// The command cannot be waited for.
    pub(crate) fn follow(&mut self, mut each: impl FnMut(&mut Tracer)) -> Result<(End, Result<()>)> {
        loop {
            let (end, outcome) = self.follow_while(|tracer| {
                each(tracer);
                true
            })?;
            if let Some(end) = end {
                return Ok((end, outcome));
            }
        }
    }

    /// The same, for as long as `goes_on` says so after each step. An end of `None`: the command lives on.
    ///
    /// # Errors
    /// The command cannot be waited for.
    pub(crate) fn follow_while(
        &mut self,
        mut goes_on: impl FnMut(&mut Tracer) -> bool,
    ) -> Result<(Option<End>, Result<()>)> {
        let mut outcome = Ok(());
        loop {
            let step = self.tracer.step();
            outcome = outcome.and(step);
            let enough = !goes_on(&mut self.tracer);
            let end = self.end()?;
            if end.is_some() || enough {
                return Ok((end, outcome));
            }
        }
    }

    fn end(&mut self) -> Result<Option<End>> {
        let Some(Ended { status, since }) = &self.ended else {
            match end_of(&self.child, &self.stop)? {
                Some(End::Ended(status)) => {
                    self.ended = Some(Ended {
                        status,
                        since: Instant::now(),
                    });
                }
                end => return Ok(end),
            }
            return self.end();
        };
        let left = self.left_behind();
        let goes_on = self.follow || since.elapsed() < LATE;
        if !left.is_empty() && goes_on && !self.stop.is_set() {
            return Ok(None);
        }
        let end = End::Ended(*status);
        left.into_iter().for_each(|(pid, comm)| self.leave(pid, &comm));
        Ok(Some(end))
    }

    /// Processes that the command has started, or that those have, and that live on.
    fn left_behind(&self) -> Vec<(u32, String)> {
        let own = self.child.id();
        let told = self.tracer.descendants().map(|(pid, comm)| (pid, comm.to_owned()));
        let mut left: BTreeMap<u32, String> = told.filter(|(pid, _)| is_alive(*pid)).collect();
        for pid in self.tracer.carriers() {
            let comm = || discover::comm(pid, pid).unwrap_or_default();
            left.entry(pid).or_insert_with(comm);
        }
        left.remove(&own);
        left.into_iter().collect()
    }

    /// Says that a process is traced no longer.
    fn leave(&mut self, pid: u32, comm: &str) {
        let hint = if self.follow {
            ""
        } else {
            "\nhint: --follow waits for it"
        };
        let who = format!("process {pid} ({})", escaped(comm));
        say(format_args!(
            "gpuscope: {who} outlives the command and is traced no longer{hint}"
        ));
        self.tracer
            .declare_unseen(format!("{who} outlives the command: what it calls from then on"));
    }

    /// The tracer, and the command without it.
    #[must_use]
    pub(crate) fn part(self) -> (Tracer, Untraced) {
        let Launched {
            tracer, child, stop, ..
        } = self;
        (tracer, Untraced { child, stop })
    }
}

/// A command that goes on without being traced.
pub(crate) struct Untraced {
    child: Child,
    stop: StopFlag,
}

impl Untraced {
    /// Waits until the command ends or we are told to end.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub(crate) fn wait(&self) -> Result<End> {
        loop {
            if let Some(end) = end_of(&self.child, &self.stop)? {
                return Ok(end);
            }
            std::thread::sleep(POLL);
        }
    }
}

/// How often an untraced command is asked whether it is over.
const POLL: Duration = Duration::from_millis(20);

fn end_of(child: &Child, stop: &StopFlag) -> Result<Option<End>> {
    // what the kernel has counted of it can be asked until we end: whoever traces it looks when the end is seen there
    if let Some(status) = discover::ended(child.id()).context("failed to wait for the command")? {
        return Ok(Some(End::Ended(status)));
    }
    let signal = stop.signal().filter(|signal| !reaches_command(*signal));
    Ok(signal.map(|signal| End::Signalled {
        signal,
        pid: child.id(),
    }))
}

impl End {
    /// The exit status, after what there is to say about it: that of the command, unless it succeeded and
    /// something else did not.
    pub(crate) fn conclude(&self, outcome: Result<()>, matches: &[String]) -> u8 {
        let status = match self {
            End::Ended(status) => shell_status(*status),
            End::Signalled { signal, pid } => {
                say(format_args!(
                    "gpuscope: ended by signal {signal}; process {pid} goes on untraced"
                ));
                u8::try_from(128 + signal).unwrap_or(FAILED)
            }
        };
        prepare::say_matches(matches);
        let ours = match outcome {
            Ok(()) if matches.is_empty() => 0,
            Ok(()) => Rule::STATUS,
            Err(error) => {
                say(format_args!("gpuscope: {}", message(&error)));
                FAILED
            }
        };
        if status == 0 { ours } else { status }
    }
}

/// A terminal's Ctrl-C goes to the command as well: what it does on its way out is part of the trace.
fn reaches_command(signal: i32) -> bool {
    // SAFETY: asks about an open descriptor
    signal == libc::SIGINT && unsafe { libc::isatty(0) } == 1
}
