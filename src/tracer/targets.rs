//! Whom a run is about: finds what these processes map and has it probed.
//!
//! Owns when a process is looked at. What of a file is probed is [`crate::probe::attach`]'s business; that a process has
//! come or has mapped something is told by [`super::notices`].

use super::{Scope, Tracer};
use crate::clock::monotonic_ns;
use crate::discover;
use crate::engine::{Arrival, Engine, Fresh};
use crate::foreign::ForeignFile;
use crate::output::say;
use crate::probe::attach::News;
use crate::probe::launch::Runner;
use crate::probe::machine::process::debugger_of;
use crate::text::quantity::escaped;
use crate::wire;
use anyhow::{Context, Result};
use std::ffi::{OsStr, OsString};
use std::time::Instant;

/// Of processes that may not be looked at.
const MOST_NAMED: usize = 3;
/// Of handling notices, each of which ends by itself where there are very many.
const MOST_TURNS: usize = 100;
/// Of what a program's dynamic linker loads before all else.
const PRELOAD: &str = "LD_PRELOAD";

impl Tracer {
    /// Adds a process to those traced and attaches to what it maps; whether that includes a library of the catalogue.
    ///
    /// # Errors
    /// It does not exist or may not be looked at.
    pub(crate) fn add_process(&mut self, pid: u32) -> Result<bool> {
        let uses_gpu = self.add_target(pid)?;
        self.warn_once_of_debugger(pid);
        if uses_gpu {
            self.memory.meet(pid);
        } else {
            self.memory.born(pid, monotonic_ns());
        }
        Ok(uses_gpu)
    }

    /// The same of a child of ours that is about to become the program to be traced: what it maps is ours, and it has used no GPU.
    ///
    /// # Errors
    /// It does not exist or may not be looked at.
    pub(crate) fn add_child(&mut self, pid: u32) -> Result<()> {
        self.add_target(pid)?;
        self.memory.born(pid, monotonic_ns());
        Ok(())
    }

    /// Whether it maps a library of the catalogue.
    fn add_target(&mut self, pid: u32) -> Result<bool> {
        self.engine.add_target(pid)?;
        self.look_at(pid)
            .with_context(|| format!("failed to look at process {pid}"))
    }

    /// Leaves a process that runs on to another gpuscope: what it has done so far counts as if it had ended. False: it was not
    /// traced.
    pub(crate) fn leave_to_others(&mut self, pid: u32) -> bool {
        let is_traced = self.engine.is_target(pid);
        self.family.settle(pid);
        if is_traced {
            self.engine.let_go(pid);
        }
        // its end is among what is told now
        for _ in 0..MOST_TURNS {
            if !is_traced || self.ended.contains(&pid) {
                break;
            }
            self.handle_notices();
        }
        is_traced
    }

    /// What a process has done until it was let go of is not all counted yet: what it does from now on would be taken for that.
    pub(crate) fn is_leaving(&self, pid: u32) -> bool {
        self.ended.contains(&pid)
    }

    /// Whether a process may be traced by nobody else as long as we trace it.
    pub(crate) fn traces_alone(&self) -> bool {
        self.engine.is_inside().is_some()
    }

    /// Attaches to everything that running processes map. Processes that may not be looked at are reported.
    pub(crate) fn add_running(&mut self) {
        let own = std::process::id();
        let mut hidden = Vec::new();
        for pid in discover::processes().into_iter().filter(|pid| *pid != own) {
            self.note_width(pid, "");
            match self.look_at(pid) {
                Ok(true) => {
                    self.memory.meet(pid);
                    self.warn_once_of_debugger(pid);
                }
                // of a process that has ended, asked for or not, nothing may be read
                Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied && !discover::has_ended(pid) => {
                    hidden.push(hidden_name(pid));
                }
                _ => {}
            }
        }
        if !hidden.is_empty() {
            self.attacher.gap(hidden_words(&hidden));
        }
    }

    /// Has calls count from now on, where [`crate::probe::Setup::paused`] has kept them from it until all is attached, and
    /// loads of libraries wait for the next step.
    pub(crate) fn begin_counting(&mut self) {
        self.memory.begin();
        self.started = Instant::now();
        self.engine.count_calls(true);
        self.arrivals.ring();
    }

    /// Processes that stood by and have made no call since we knocked: what they call next is seen.
    #[must_use]
    pub(crate) fn awaited(&self) -> Vec<u32> {
        self.engine.awaited()
    }

    /// Attaches to the libraries that are installed, so that the first process that maps one misses nothing.
    pub(crate) fn add_installed(&mut self) {
        self.attacher.attach_installed(self.engine.as_ref(), &mut self.rows);
    }

    /// What `program`, which is started, needs in its environment, to be traced.
    ///
    /// # Errors
    /// It could not reach us.
    pub(crate) fn environment_of(
        &mut self,
        program: Option<&OsStr>,
        runner: Option<&Runner>,
    ) -> Result<Vec<(OsString, OsString)>> {
        let preloaded = match runner {
            Some(runner) => runner.environment.get(OsStr::new(PRELOAD)).cloned(),
            None => std::env::var_os(PRELOAD),
        };
        let mut all = self
            .engine
            .environment(preloaded, runner.map(|runner| runner.user.uid))?;
        self.leave_ranges(&mut all, runner);
        all.extend(self.environment_of_gpu(program, runner)?);
        Ok(all)
    }

    /// Attaches to a program before it is started.
    pub(crate) fn add_program(&mut self, path: &std::path::Path) {
        let Ok(file) = ForeignFile::find(path) else {
            return;
        };
        if let Err(error) = self
            .attacher
            .attach_file(self.engine.as_ref(), &mut self.rows, file, path.to_owned())
        {
            // scripts are no ELF files; what they start is looked at when it is mapped
            drop(error);
        }
    }

    /// Says where a debugger follows a process that is traced; whether one does.
    pub(super) fn warn_of_debugger(&mut self, pid: u32) -> bool {
        let words = debugger_of(pid);
        if let Some(words) = &words {
            say(format!("gpuscope: {words}"));
            self.attacher.gap(words.clone());
        }
        words.is_some()
    }

    /// Attaches to what a process maps; whether that includes a library of the catalogue.
    fn look_at(&mut self, pid: u32) -> std::io::Result<bool> {
        let news = self.attacher.news(&self.rows.catalog, pid, u64::MAX, &[])?;
        if news.has_library && self.rows.takes_stacks() {
            self.memory.sites.look_at(self.engine.as_ref(), pid);
        }
        for mapping in &news.mappings {
            self.attacher
                .consider(self.engine.as_ref(), &mut self.rows, pid, mapping);
        }
        if news.has_library {
            self.watch.meet(pid);
        }
        Ok(news.has_library)
    }

    /// Attaches to what a thread has newly mapped, while it waits.
    pub(super) fn prepare_for(&mut self, arrival: Arrival) {
        let notice = arrival.notice;
        if notice.kind == wire::NOTICE_LIBRARY {
            self.early.heard_of(&notice);
        }
        if let Some(until) = self.prepare(arrival) {
            self.burden.stood_still(&notice, until);
        }
    }

    /// When the thread went on, CLOCK_MONOTONIC ns, if it stood still until then.
    fn prepare(&mut self, arrival: Arrival) -> Option<u64> {
        let notice = arrival.notice;
        let fresh = self.engine.fresh_files(&notice);
        let addresses: Vec<u64> = fresh.addresses().collect();
        let news = self
            .attacher
            .news(&self.rows.catalog, notice.tgid, notice.at, &addresses);
        let news = news.and_then(News::of_living);
        // it may have called what was probed already, while that did not count
        if !self.memory.has_begun(notice.at) && news.as_ref().is_ok_and(|news| news.has_library) {
            self.memory.meet(notice.tgid);
        }
        self.note_unread(&news);
        let is_read = news.is_ok();
        if !is_read {
            self.note_gone(&notice);
        }
        let mut news = news.unwrap_or_else(|_| News::unread());
        if news.has_library {
            self.watch.meet(notice.tgid);
        }
        let looks = self.looks_at_stacks(notice.tgid, &news);
        let passes = news.mappings.is_empty() && !looks || !is_read && self.fleet.is_some();
        let linkers = self.attacher.linkers_met();
        let until = if passes {
            settle(self.engine.as_ref(), &fresh, is_read);
            self.arrivals.pass(&arrival)
        } else {
            self.attach_while_held(arrival, &mut news, looks, &fresh, is_read)
        };
        if self.waits_itself(&notice) {
            return until;
        }
        let is_met_late = until.is_none() && self.attacher.linkers_met() > linkers;
        // where it stops at its linker, that tells what it had loaded by then
        let tells = notice.kind == wire::NOTICE_EXEC && news.is_met_at_linker;
        match (is_met_late, tells) {
            (true, _) => self.early.look_again(&notice),
            (false, true) => self.early.await_linker(&notice),
            (false, false) => {}
        }
        if news.is_behind && (is_met_late || !tells) {
            self.judge(&notice, until);
        }
        until
    }

    /// Whether the stacks of process `pid` have to be made readable for the first time.
    fn looks_at_stacks(&self, pid: u32, news: &News) -> bool {
        self.rows.takes_stacks() && news.has_library && !self.memory.sites.has_looked_at(pid)
    }

    /// `fresh`: what is known afterwards, if all of it could be looked at. `is_read`: what the process maps could be told.
    fn attach_while_held(
        &mut self,
        arrival: Arrival,
        news: &mut News,
        looks: bool,
        fresh: &Fresh,
        is_read: bool,
    ) -> Option<u64> {
        let notice = arrival.notice;
        let stacks = self.rows.takes_stacks();
        self.arrivals.during(arrival, &mut || {
            for mapping in &news.mappings {
                news.is_behind |= self
                    .attacher
                    .consider(self.engine.as_ref(), &mut self.rows, notice.tgid, mapping);
            }
            let is_known = is_read && self.attacher.is_done_with(&news.mappings);
            settle(self.engine.as_ref(), fresh, is_known);
            // last: a thread that waits no longer must not miss the probes
            if looks || stacks && self.memory.sites.has_looked_at(notice.tgid) {
                self.memory.sites.look_at(self.engine.as_ref(), notice.tgid);
            }
        })
    }

    /// What a process maps could not be told, although it is there.
    fn note_unread(&mut self, news: &std::io::Result<News>) {
        let Err(error) = news else { return };
        let is_gone = error.kind() == std::io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH);
        // those that may not be looked at are counted where all are
        if !is_gone && error.kind() != std::io::ErrorKind::PermissionDenied {
            self.attacher.gap(format!(
                "what a process maps could not be told: {error}: calls of libraries that it has loaded may be missing"
            ));
        }
    }

    /// Neither the libraries of 32-bit programs nor their system calls are seen.
    pub(super) fn note_width(&mut self, pid: u32, comm: &str) {
        if !discover::is_32_bit(pid) {
            return;
        }
        let unseen = "are not seen, neither of CUDA nor of the kernel driver";
        self.attacher.gap(match self.scope {
            Scope::Processes(_) => format!("{comm} {pid} is a 32-bit program: its calls {unseen}"),
            Scope::All => format!("32-bit programs run: their calls {unseen}"),
        });
    }
}

/// These were looked at. `known`: all of them, so that nobody has to wait for them again.
fn settle(engine: &dyn Engine, fresh: &Fresh, known: bool) {
    // whoever maps a file that is not known waits once more
    let _ = engine.settle_files(fresh, known);
}

/// As it is named there.
pub(super) fn hidden_name(pid: u32) -> String {
    let comm = discover::comm(pid, pid).unwrap_or_default();
    format!("{pid} {}", escaped(comm.trim_end()))
}

/// Of processes that may not be looked at; the first are named.
pub(super) fn hidden_words(hidden: &[String]) -> String {
    let mut named: Vec<String> = hidden.iter().take(MOST_NAMED).cloned().collect();
    if hidden.len() > MOST_NAMED {
        named.push("…".to_owned());
    }
    let (count, named) = (hidden.len(), named.join(", "));
    format!(
        "{count} of the running processes may not be looked at ({named}); hint: run as root of the host, or with cap_sys_ptrace"
    )
}
