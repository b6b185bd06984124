//! Processes that already run: which are there, and attaching to them.

use super::rights;
use crate::elf::{ElfError, ElfFile};
use crate::foreign::ForeignFile;
use crate::output::say;
use crate::probe::machine;
use crate::tracer::{Scope, Tracer};
use anyhow::{Result, bail};
use std::path::Path;
use std::time::{Duration, Instant};

/// These processes, or every one.
pub(crate) struct Running<'a> {
    pub pids: &'a [u32],
    pub all: bool,
}

impl Running<'_> {
    /// Who is traced, after a look whether that can be.
    ///
    /// # Errors
    /// A process is not there or cannot be traced, and why.
    pub(crate) fn scope(&self) -> Result<Scope> {
        self.pids.iter().try_for_each(|pid| check_process(*pid))?;
        Ok(match self.all {
            true => Scope::All,
            false => Scope::Processes(self.pids.to_vec()),
        })
    }

    /// Attaches, and says so.
    ///
    /// # Errors
    /// A process may not be looked at.
    pub(crate) fn attach(&self, tracer: &mut Tracer) -> Result<()> {
        self.attach_and(tracer, |_| Ok(()))
    }

    /// The same, and what else needs the rights that are given up then.
    ///
    /// # Errors
    /// A process may not be looked at, or that fails.
    pub(crate) fn attach_and(&self, tracer: &mut Tracer, also: impl FnOnce(&mut Tracer) -> Result<()>) -> Result<()> {
        tracer.add_family(self.pids)?;
        if self.all {
            tracer.add_running();
        }
        tracer.begin_counting();
        await_agents(tracer)?;
        also(tracer)?;
        rights::after_attaching(tracer);
        tracer.write_aside();
        let workers = match tracer.workers() {
            0 => String::new(),
            1 => ", also of 1 descendant that uses CUDA".to_owned(),
            number => format!(", also of {number} descendants that use CUDA"),
        };
        say(format_args!(
            "gpuscope: tracing {} functions by {}{workers}; Ctrl-C ends it",
            tracer.functions(),
            tracer.tier()
        ));
        Ok(())
    }

    /// Whether there is nobody left to trace.
    pub(crate) fn are_over(&self, tracer: &Tracer) -> bool {
        !self.all && tracer.family_is_over()
    }
}

/// How long a program that calls CUDA takes to make its next call, mostly.
const NEXT_CALL: Duration = Duration::from_millis(500);

/// Agents follow with the next call of their programs.
fn await_agents(tracer: &mut Tracer) -> Result<()> {
    let until = Instant::now() + NEXT_CALL;
    while !tracer.awaited().is_empty() && Instant::now() < until {
        tracer.step()?;
    }
    for pid in tracer.awaited() {
        say(format_args!(
            "gpuscope: process {pid} makes no call of CUDA now: what it calls next is seen"
        ));
    }
    Ok(())
}

fn check_process(pid: u32) -> Result<()> {
    if !is_alive(pid) {
        bail!("there is no process {pid}\nhint: pgrep -a python; nvidia-smi also lists processes that use a GPU");
    }
    machine::process::check_is_process(pid)?;
    if let Some(why) = machine::shadow_stack_in_the_way(pid) {
        bail!("{why}\nhint: use Linux 6.11 or newer");
    }
    let exe = Path::new("/proc").join(pid.to_string()).join("exe");
    let exe = ForeignFile::find(&exe).map_err(ElfError::from);
    let file = match exe.and_then(|exe| ElfFile::of_foreign(&exe)) {
        Ok(_) => return Ok(()),
        Err(_) if !is_alive(pid) => bail!("process {pid} has ended meanwhile"),
        Err(error) => error,
    };
    let (error, what) = (anyhow::Error::new(file), format!("process {pid} cannot be traced"));
    match machine::programs_refused() {
        Some(_) => {
            bail!("{what}: {error:#}\nhint: sudo; without root it has to be yours, started by gpuscope preload -- CMD")
        }
        None => Err(error.context(what)),
    }
}

/// Whether it is there and has not ended.
pub(super) fn is_alive(pid: u32) -> bool {
    !crate::discover::has_ended(pid)
}
