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

pub(super) use look::Met;

use super::attendant::Shared;
use crate::clock::monotonic_ns;
use crate::engine::samples::TICK_NS;
use crate::engine::{Sample, Seen, Stream};
use crate::stack::wire::NATIVE_CUT;
use look::Eyes;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Outside CUDA for so long, a thread is sampled.
const OUTSIDE_NS: u64 = 1_000_000;
/// A sample of a thread that waits stands for so long at most.
const LONGEST_NS: u64 = 200_000_000;
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

/// A thread that waited when it was looked at, and is told of when it does not any more.
#[derive(Debug)]
pub(super) struct Waiting {
    tgid: u32,
    turns: Option<String>,
    sample: Sample,
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
    if met.depth != 0 || met.returned == 0 || outside < OUTSIDE_NS {
        return shared.members().samples.tell(met.tid);
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

/// Samples that are not told yet.
#[derive(Default)]
pub(super) struct Samples {
    waiting: HashMap<u32, Waiting>,
    records: Vec<Vec<u8>>,
}

impl Samples {
    fn push(&mut self, sample: &Sample) {
        if sample.ns > 0 {
            self.records.push(sample.record());
        }
    }

    /// The thread is elsewhere now.
    fn tell(&mut self, tid: u32) {
        if let Some(waiting) = self.waiting.remove(&tid) {
            self.push(&waiting.sample);
        }
    }

    fn wait(&mut self, met: &Met, turns: Option<String>, sample: Sample) {
        let tgid = met.tgid;
        self.waiting.insert(met.tid, Waiting { tgid, turns, sample });
    }

    /// Whether the thread has not run since it was looked at: then its sample is longer.
    fn goes_on(&mut self, tid: u32, turns: &Option<String>, (now, ns): (u64, u64)) -> bool {
        let Some(waiting) = self.waiting.get_mut(&tid) else {
            return false;
        };
        if turns.is_none() || waiting.turns != *turns {
            return false;
        }
        waiting.sample.ns += ns;
        waiting.sample.until = now;
        if waiting.sample.ns >= LONGEST_NS {
            let told = waiting.sample.record();
            waiting.sample.ns = 0;
            self.records.push(told);
        }
        true
    }

    /// A process is no more: all that is known of its threads is told.
    pub(super) fn end(&mut self, tgid: u32) {
        let ended = self.waiting.extract_if(|_, waiting| waiting.tgid == tgid);
        let samples: Vec<Sample> = ended.map(|(_, waiting)| waiting.sample).collect();
        samples.iter().for_each(|sample| self.push(sample));
    }

    /// All records of [`Stream::Samples`].
    pub(super) fn take(&mut self, stream: Stream) -> Vec<Vec<u8>> {
        match stream {
            Stream::Samples => std::mem::take(&mut self.records),
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::wire::SiteEvent;

    const MET: Met = Met {
        tgid: 1,
        tid: 2,
        pointer: 0,
        depth: 0,
        returned: 1,
        entered: 0,
        called_at: 0,
        python: None,
    };

    fn sample(until: u64) -> Sample {
        Sample {
            until,
            ns: 10,
            stack: SiteEvent::default(),
        }
    }

    fn told(samples: &mut Samples) -> Vec<(u64, u64)> {
        let records = samples.take(Stream::Samples).into_iter();
        let read = records.map(|record| Sample::parse(&record).expect("a sample"));
        read.map(|sample| (sample.until, sample.ns)).collect()
    }

    #[test]
    fn a_thread_that_has_not_run_has_one_sample_for_all_that_time() {
        let mut samples = Samples::default();
        let turns = Some("5 0 1".to_owned());
        samples.wait(&MET, turns.clone(), sample(100));
        assert!(samples.goes_on(2, &turns, (110, 10)));
        assert!(!samples.goes_on(2, &Some("9 0 2".to_owned()), (120, 10)));
        assert_eq!(told(&mut samples), []);
        samples.tell(2);
        assert_eq!(told(&mut samples), [(110, 20)]);
    }

    #[test]
    fn what_a_thread_waits_for_is_told_while_it_waits_and_when_its_process_ends() {
        let mut samples = Samples::default();
        let turns = Some(String::new());
        samples.wait(&MET, turns.clone(), sample(100));
        assert!(samples.goes_on(2, &turns, (300, LONGEST_NS)));
        assert_eq!(told(&mut samples), [(300, LONGEST_NS + 10)]);
        assert!(samples.goes_on(2, &turns, (310, 10)));
        samples.end(3);
        assert_eq!(told(&mut samples), []);
        samples.end(1);
        assert_eq!(told(&mut samples), [(310, 10)]);
    }

    #[test]
    fn where_the_kernel_does_not_tell_whether_it_has_run_each_look_is_a_sample() {
        let mut samples = Samples::default();
        samples.wait(&MET, None, sample(100));
        assert!(!samples.goes_on(2, &None, (110, 10)));
    }
}
