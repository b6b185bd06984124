//! The processes that were asked for, and who descends from them.
//!
//! Owns who of them runs already: a launcher's workers, what the first process of a container has started. Who is born later of one that
//! is traced the engine follows by itself; but from inside, where a process carries an agent of its own, it is looked for.

mod relatives;
mod visits;

pub(super) use relatives::Family;

use super::Tracer;
use super::targets::hidden_name;
use crate::clock::thread_cpu;
use crate::discover;
use crate::engine::Table;
use crate::inside::standby::{self, Standby};
use crate::probe::machine;
use anyhow::Result;
use relatives::{Refusal, Relative, Standing};
use std::io::ErrorKind;
use std::time::{Duration, Instant};

const OFTEN: Duration = Duration::from_secs(1);
/// Looking takes at most one part of so many of a processor's time.
const SELDOM: u32 = 100;
/// Whoever is born between two looks has a parent that is traced from the first one on.
const MOST_LOOKS: usize = 4;

impl Tracer {
    /// Attaches to these processes, and to who descends from them.
    ///
    /// # Errors
    /// One of `pids` does not exist or may not be looked at. Of the others that is said.
    pub(crate) fn add_family(&mut self, pids: &[u32]) -> Result<()> {
        for pid in pids {
            self.family.roots.push(*pid);
            match self.traces_alone().then(|| standby::of(*pid)) {
                None | Some(Standby::Ready) => {
                    let uses_cuda = self.add_process(*pid)?;
                    self.family.join(*pid, uses_cuda);
                    continue;
                }
                // programs below it that carry no agent are told of
                Some(Standby::Unready | Standby::Absent) => self.engine.add_target(*pid)?,
                Some(_) => {}
            }
            let awaited = Relative::of(*pid, Standing::Awaited, false);
            self.family.known.insert(*pid, awaited);
        }
        for _ in 0..MOST_LOOKS {
            if !self.add_descendants() {
                break;
            }
        }
        Ok(())
    }

    /// Nobody else wants to trace that one any more.
    pub(crate) fn take_again(&mut self, pid: u32) {
        self.family.known.remove(&pid);
    }

    /// The processes that were asked for, and those of their descendants that we attached to.
    pub(crate) fn family(&self) -> impl Iterator<Item = u32> {
        self.family.members()
    }

    /// Of those that were found below the processes that were asked for how many use CUDA.
    pub(crate) fn workers(&self) -> usize {
        let using = self.family.known.iter().filter(|(_, one)| one.uses_cuda);
        using.filter(|(pid, _)| !self.family.roots.contains(pid)).count()
    }

    /// Whether all have ended that were asked for, that used CUDA when we came, or have called it since.
    pub(crate) fn family_is_over(&self) -> bool {
        let Family { roots, known, .. } = &self.family;
        let counts = |pid: &u32, one: &Relative| one.uses_cuda || roots.contains(pid);
        let lives = known.iter().any(|(pid, one)| counts(pid, one) && one.lives(*pid));
        !lives && self.callers.iter().all(|pid| discover::has_ended(*pid))
    }

    /// To be called often: it is looked once a second.
    pub(super) fn follow_family(&mut self) {
        if self.finish_look() {
            self.visit_next();
        }
        let is_due = self.family.again.is_none_or(|again| Instant::now() >= again);
        if self.family.known.is_empty() || !is_due {
            return;
        }
        let begun = thread_cpu();
        for pid in self.family.take_ended() {
            // one that has never called is seen by nobody else
            self.engine.let_go(pid);
        }
        if self.traces_alone() {
            self.add_descendants();
        } else if self.gpu.is_some() {
            self.join_born();
        }
        self.visit_next();
        let cost = thread_cpu().saturating_sub(begun);
        self.family.again = Some(Instant::now() + OFTEN.max(cost * SELDOM));
    }

    /// Whom the engine follows by itself, so that they are asked what devices execute.
    fn join_born(&mut self) {
        for pid in self.family.strange() {
            if self.engine.is_target(pid) {
                self.family.join(pid, false);
            }
        }
    }

    /// Whether there was somebody new.
    fn add_descendants(&mut self) -> bool {
        let mut has_new = false;
        for pid in self.family.strange() {
            // what it has done until it was let go of is not all counted yet
            if self.is_leaving(pid) {
                continue;
            }
            if self.engine.is_target(pid) && !self.family.known.contains_key(&pid) {
                self.family.settle(pid);
                continue;
            }
            match self.refusal(pid) {
                Ok(true) => {
                    has_new = true;
                    self.add_descendant(pid);
                }
                Ok(false) => {}
                Err(words) => self.family.refuse(pid, Refusal::Words(words)),
            }
        }
        has_new
    }

    fn add_descendant(&mut self, pid: u32) {
        let added = self.add_process(pid);
        let has_ended = discover::has_ended(pid);
        if !self.traces_alone() && (has_ended || added.is_err()) {
            // nothing else takes it out of whom the kernel programs follow, and its number may be another's
            let _ = self.engine.delete(Table::Targets, &pid.to_ne_bytes());
        }
        match added {
            _ if has_ended => {}
            Ok(uses_cuda) => {
                self.note_width(pid, &discover::comm(pid, pid).unwrap_or_default());
                self.family.join(pid, uses_cuda);
            }
            Err(error) => self.family.refuse(pid, refusal_of(pid, &error)),
        }
    }

    /// Whether it can be traced now; why it cannot, where that is to be said.
    fn refusal(&self, pid: u32) -> Result<bool, String> {
        if !self.traces_alone() {
            return match machine::shadow_stack_in_the_way(pid) {
                Some(why) => Err(why),
                None => Ok(!self.family.refused.contains_key(&pid)),
            };
        }
        match standby::of(pid) {
            Standby::Ready => Ok(true),
            Standby::Unready | Standby::Absent => Ok(false),
            standing => Err(standing.words(pid)),
        }
    }
}

fn refusal_of(pid: u32, error: &anyhow::Error) -> Refusal {
    let error_of_system = error.root_cause().downcast_ref::<std::io::Error>();
    match error_of_system.map(std::io::Error::kind) {
        Some(ErrorKind::PermissionDenied) => Refusal::Hidden(hidden_name(pid)),
        _ => Refusal::Words(format!("{error:#}").replace('\n', "; ")),
    }
}
