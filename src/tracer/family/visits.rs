//! Asking members what devices execute for them, one at a time.
//!
//! CUPTI, asked for the first time in a program that runs, has the program wait until all that its devices run has ended. So nobody is
//! asked whose devices are never idle, as a kernel may wait for the program, nor while another one waits: what that runs may wait for
//! what this one would launch. How a process is asked is [`activity`]'s business.

use super::Tracer;
use super::relatives::{Asking, Standing};
use crate::activity;
use crate::device::Looking;
use crate::output::say;
use crate::refusal::message;
use crate::tracer::gpu::say_not_recorded;
use anyhow::Result;
use std::time::{Duration, Instant};

/// One that does not answer while the run goes on is asked so often.
const MOST_VISITS: u32 = 5;
/// And is waited for so long: nothing else is done meanwhile. Before, there is time.
const PATIENCE: Duration = Duration::from_millis(200);
const PATIENCE_AT_FIRST: Duration = Duration::from_secs(2);
/// How long it is looked whether a device is ever idle, but for what NVML takes.
const LOOK: Duration = Duration::from_secs(2);
/// What a look has found does not hold for longer.
const HOLDS: Duration = Duration::from_secs(10);

impl Tracer {
    /// Members that wait to be asked: they do from when they have initialised CUDA on.
    fn unasked(&self) -> Vec<u32> {
        let unasked = self.family.known.iter().filter(|(pid, one)| {
            let is_due = one.is == Standing::Member && matches!(one.asking, Asking::Due { .. });
            self.gpu.is_some() && is_due && activity::is_waiting(**pid)
        });
        unasked.map(|(pid, _)| *pid).collect()
    }

    /// Asks members, as far as they wait for that.
    ///
    /// # Errors
    /// They must tell, and one does not answer.
    pub(crate) fn visit_family(&mut self) -> Result<()> {
        let (mut until, mut failed) = (Instant::now() + LOOK + PATIENCE_AT_FIRST, Ok(()));
        while (!self.unasked().is_empty() || self.is_cupti_asked()) && Instant::now() < until {
            let Some((pid, visited)) = self.visit_one(PATIENCE_AT_FIRST) else {
                self.step()?;
                continue;
            };
            until = Instant::now() + PATIENCE_AT_FIRST;
            self.settle_visit(pid);
            match visited {
                Err(error) if self.must_watch_gpu() => failed = failed.and(Err(error)),
                Err(error) => self.not_recorded(&message(&error).replace('\n', "; ")),
                Ok(()) => {}
            }
        }
        for pid in self.asked() {
            say(format_args!(
                "gpuscope: process {pid} waits for CUPTI, which waits until all that runs on its device has ended"
            ));
        }
        failed
    }

    /// One of those that wait by now.
    pub(super) fn visit_next(&mut self) {
        let Some((pid, visited)) = self.visit_one(PATIENCE) else {
            return;
        };
        let Some(one) = self.family.known.get_mut(&pid) else {
            return;
        };
        let visits = one.asking.visits() + 1;
        let again = visited.is_err() && visits < MOST_VISITS;
        one.asking = match again {
            true => Asking::Due { visits, at_rest: None },
            false => Asking::Settled,
        };
        if let (Err(error), false) = (visited, again) {
            self.attacher
                .gap(format!("what the GPU executes: {error:#}").replace('\n', "; "));
        }
    }

    /// Asks one that may be asked now; what came of it.
    fn visit_one(&mut self, patience: Duration) -> Option<(u32, Result<()>)> {
        self.finish_look();
        let unasked = self.unasked();
        if unasked.is_empty() || self.is_cupti_asked() {
            return None;
        }
        let must = self.must_watch_gpu();
        let comes_to_rest = |pid: &&u32| {
            self.family
                .known
                .get(*pid)
                .is_some_and(|one| one.asking.comes_to_rest(HOLDS))
        };
        let ready = unasked.iter().find(|pid| must || comes_to_rest(pid)).copied();
        if let Some(pid) = ready {
            return Some((pid, self.visit_gpu(pid, patience)));
        }
        if self.family.looking.is_none() {
            match Looking::begin(LOOK) {
                Ok(looking) => self.family.looking = Some((unasked, looking)),
                Err(_) => unasked.into_iter().for_each(|pid| self.note_rest(pid)),
            }
        }
        None
    }

    /// Notes what a look at devices has found; false: none has just ended.
    pub(super) fn finish_look(&mut self) -> bool {
        let Some((of, looking)) = self.family.looking.take() else {
            return false;
        };
        let Some(found) = looking.found() else {
            self.family.looking = Some((of, looking));
            return false;
        };
        for pid in of {
            match found.get(&pid) {
                Some(device) => self.leave_alone(pid, *device),
                None => self.note_rest(pid),
            }
        }
        true
    }

    fn note_rest(&mut self, pid: u32) {
        self.family.known.entry(pid).and_modify(|one| one.asking.note_rest());
    }

    fn settle_visit(&mut self, pid: u32) {
        self.family
            .known
            .entry(pid)
            .and_modify(|one| one.asking = Asking::Settled);
    }

    /// CUPTI would keep it waiting for as long as what it runs.
    fn leave_alone(&mut self, pid: u32, device: u32) {
        self.settle_visit(pid);
        self.not_recorded(&format!(
            "device {device} of process {pid} was never idle for two seconds, and CUPTI has a program that runs wait until all that runs there has \
             ended: for ever, where that waits for the program; hint: --gpu on asks all the same"
        ));
    }

    /// Says so at once, and in the summary.
    fn not_recorded(&mut self, why: &str) {
        say_not_recorded(why);
        self.attacher.gap(format!("what the GPU executes: {why}"));
    }

    /// Who has not been asked, at the end.
    pub(in crate::tracer) fn never_asked(&self) -> Vec<String> {
        let others = self.is_cupti_asked();
        let looks = self.family.looking.is_some();
        let unasked = self.unasked().into_iter();
        let words = |pid: u32| {
            let visits = self.family.known.get(&pid).map_or(0, |one| one.asking.visits());
            let why = match (others, visits) {
                (true, _) => "it was not asked, as CUPTI of another process has not answered",
                (false, 0) if looks => "NVML had not said yet whether its device is ever idle; hint: --gpu on",
                (false, 0) => "the end came before it could be asked",
                (false, _) => "it did not answer",
            };
            format!("what the GPU executes for process {pid}: {why}")
        };
        unasked.map(words).collect()
    }
}
