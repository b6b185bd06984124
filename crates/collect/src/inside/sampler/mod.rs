//! Where threads are while they are outside of CUDA, seen without any right but to look at one's own processes: 99 times a
//! second a thread of ours looks at each of them.
//!
//! ```text
//!  memory of an agent ─► Met: which threads, outside since when ─► look ─┬─ doing: runs, or waits where (/proc)
//!                                                                        ├─ waits: unwinder (.eh_frame), remote memory
//!                                                                        ├─ Python frames
//!                                                                        └─ runs: clock (perf events), if we may
//! ```
//!
//! Owns when is looked, and what that stands for: the time since the last look. A thread that has not run meanwhile is
//! where it was, and its next sample is longer.

mod clock;
mod doing;
mod look;
mod remote;

use super::met::Met;
use super::shared::Shared;
use crate::clock::monotonic_ns;
use crate::engine::samples::TICK_NS;
use crate::engine::{Sample, Seen};
use crate::stack::wire::{BETWEEN, NATIVE_CUT};
use look::Eyes;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Outside CUDA for less, a look at a thread stands for no time.
const OUTSIDE_NS: u64 = 1_000_000;
/// Nobody waits longer for the end of a look: who controls the memory that is read may hold it up.
const PATIENCE: Duration = Duration::from_secs(1);
/// In one call for so long, it is looked at.
const HANGING_NS: u64 = 500_000_000;
/// That is done once in so many looks.
const HANGING_EVERY: u32 = 10;
/// What was learnt of processes and threads is looked through once in so many.
const TIDY_EVERY: u32 = 100;

/// The thread that looks; it ends when this is dropped.
pub(super) struct Sampler {
    shared: Arc<Watched>,
    ended: Receiver<()>,
}

/// What others tell the thread, and it tells them.
#[derive(Default)]
pub(super) struct Watched {
    closing: AtomicBool,
    threads: Mutex<HashSet<u32>>,
    /// Where threads are that hang in a call.
    hanging: Mutex<HashMap<u32, Seen>>,
    notes: Mutex<Vec<String>>,
}

/// A thread is looked at as long as this lives.
pub(super) struct Watch {
    watched: Arc<Watched>,
    tid: u32,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sampler {
    /// # Errors
    /// There is no thread for it.
    pub(super) fn start(members: Arc<Shared>, watched: Arc<Watched>) -> std::io::Result<Sampler> {
        let (ends, ended) = mpsc::channel();
        let shared = Arc::clone(&watched);
        let rounds = move || {
            watch(&members, &watched);
            // whoever listened may have lost patience
            let _ = ends.send(());
        };
        std::thread::Builder::new()
            .name("gpuscope-looks".to_owned())
            .spawn(rounds)?;
        Ok(Sampler { shared, ended })
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::SeqCst);
        let _ = self.ended.recv_timeout(PATIENCE);
    }
}

impl Watched {
    /// Has a thread looked at.
    pub(super) fn begin(self: &Arc<Watched>, tid: u32) -> Watch {
        lock(&self.threads).insert(tid);
        Watch {
            watched: Arc::clone(self),
            tid,
        }
    }

    /// Where a thread was that hangs in a call, the last time.
    pub(super) fn last_stack(&self, tid: u32) -> Option<Seen> {
        lock(&self.hanging).get(&tid).cloned()
    }

    /// What is not seen, not said yet.
    pub(super) fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.notes))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        lock(&self.watched.threads).remove(&self.tid);
    }
}

fn watch(shared: &Shared, watched: &Watched) {
    let mut eyes = Eyes::new();
    let (mut before, mut looks) = (monotonic_ns(), 0_u32);
    while !watched.closing.load(Ordering::SeqCst) {
        std::thread::sleep(Duration::from_nanos(TICK_NS));
        let threads = lock(&watched.threads).clone();
        let met = shared.members().met(&threads);
        let now = monotonic_ns();
        for met in &met {
            look_at(shared, &mut eyes, met, (before, now));
        }
        before = now;
        looks = looks.wrapping_add(1);
        if looks.is_multiple_of(HANGING_EVERY) {
            look_at_hanging(watched, &mut eyes, &met);
        }
        if looks.is_multiple_of(TIDY_EVERY) {
            eyes.keep_only(&met);
        }
        if let Some(why) = eyes.take_refusal() {
            lock(&watched.notes).push(format!("the stacks of native code that runs outside CUDA: {why}"));
        }
    }
}

fn look_at_hanging(watched: &Watched, eyes: &mut Eyes, met: &[Met]) {
    let hangs = |met: &&Met| met.depth > 0 && monotonic_ns().saturating_sub(met.entered) >= HANGING_NS;
    let look = |met: &Met| {
        let mut stack = eyes.look(met)?;
        if stack.native.is_empty() || stack.flags & NATIVE_CUT != 0 {
            eyes.look_at_caller(met, &mut stack);
        }
        let at = monotonic_ns();
        Some((met.tid, Seen { at, stack }))
    };
    *lock(&watched.hanging) = met.iter().filter(hangs).filter_map(look).collect();
}

/// Looks at a thread, for the time from one look to the other.
fn look_at(shared: &Shared, eyes: &mut Eyes, met: &Met, (before, now): (u64, u64)) {
    let outside = now.saturating_sub(met.returned);
    if met.depth != 0 || met.returned == 0 {
        return shared.members().samples.tell(met.tid);
    }
    if outside < OUTSIDE_NS {
        return look_between(shared, eyes, met, (now, outside));
    }
    // we may have stood still ourselves
    let ns = (now - before).min(outside.max(TICK_NS));
    let turns = eyes.turns(met);
    if shared.members().samples.goes_on(met.tid, &turns, (now, ns)) {
        return;
    }
    let Some(stack) = eyes.look(met) else { return };
    let sample = Sample { until: now, ns, stack };
    let mut members = shared.members();
    members.samples.tell(met.tid);
    match sample.running() {
        true => members.samples.push(&sample),
        false => members.samples.wait(met, turns, sample),
    }
}

/// Looks at a thread that has made a call `outside` ns ago. Who waits by then may wait in the next one.
fn look_between(shared: &Shared, eyes: &mut Eyes, met: &Met, (now, outside): (u64, u64)) {
    let seen = eyes.look_between(met, now).map(|mut stack| {
        stack.flags |= BETWEEN;
        Sample {
            until: now,
            ns: outside.max(1),
            stack,
        }
    });
    let mut members = shared.members();
    members.samples.tell(met.tid);
    let is_there = |sample: &Sample| {
        let again = members.met(&HashSet::from([met.tid]));
        sample.running() || again.iter().any(|now| now.depth == 0 && now.returned == met.returned)
    };
    if let Some(sample) = seen.filter(is_there) {
        members.samples.push(&sample);
    }
}
