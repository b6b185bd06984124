//! Where threads are that call CUDA, by samples of their stacks.
//!
//! Owns which threads have a clock, and samples until their stacks are named: that is done for all new ones together, once a
//! second or less often, as it may take a while. How stacks are taken is `crates/collect/src/bpf/sample.bpf.h`'s business, how they are named that of
//! [`super::sites`].

mod beside;

use super::Tracer;
use super::sites::SitePlane;
use crate::clock::monotonic_ns;
use crate::engine::{Engine, Hook, Hooks, Records, Sample, Stream, TICK_NS};
use crate::frame::Frame;
use crate::frame::json::frames_json;
use crate::frame::lines::frame_place;
use crate::model::beside::{Measure, Measured};
use crate::model::outside::{LOOK_NS, Outside};
use crate::stack::wire::PYTHON_THREAD;
use beside::{Beside, Stay};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::time::Instant;

/// Threads that have a clock: each takes a descriptor.
const CLOCKS: usize = 512;
/// Different stacks that are named; samples beyond have none.
const STACKS: usize = 8192;
/// Samples that wait for names.
const PENDING: usize = 1 << 16;
/// Names take one part of so many of our time, at most: who names waits, and events with it.
const NAMING_SHARE: u32 = 20;

const _: () = assert!(LOOK_NS == TICK_NS, "a look stands for the time to the next");

/// What is shown of a stack.
struct Known {
    /// As rows have it.
    stack: Rc<str>,
    place: Option<String>,
}

impl Known {
    fn of(frames: &[Frame]) -> Known {
        Known {
            stack: frames_json(frames).into(),
            place: frame_place(frames),
        }
    }
}

/// A sample whose stack has no name yet.
#[derive(Debug)]
struct Pending {
    site: u64,
    until: u64,
    ns: u64,
    running: bool,
    between: bool,
    /// Its thread runs beside the program's Python: it is named by that, and by who waits for it.
    beside: bool,
    /// It stands for no time of its own, and is not told: its stack is named for looks at others.
    waited: bool,
    thread: (u32, u32),
}

/// Which samples are to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Those whose stacks have names.
    Named,
    /// All, if new stacks have not just been named.
    Due,
    All,
}

/// Where threads are that call CUDA.
pub(super) struct SamplePlane {
    /// Dropped before the rings that its programs write to.
    _switches: Hooks,
    clocks: HashMap<u32, Box<dyn Hook>>,
    /// Threads that are ours within programs.
    ours: HashSet<u32>,
    records: Records,
    known: HashMap<u64, Known>,
    beside: Beside,
    pending: Vec<Pending>,
    outside: Outside,
    /// New stacks are named from then on.
    due: Instant,
    /// What of threads is not sampled, not said yet.
    notes: Vec<String>,
    full: bool,
    pub(super) malformed: u64,
}

impl SamplePlane {
    /// Begins to sample.
    ///
    /// # Errors
    /// In words: why that cannot be done here.
    pub(super) fn open(engine: &dyn Engine) -> Result<SamplePlane, String> {
        let words = |error: anyhow::Error| format!("{error:#}");
        let records = Records::open(engine, Stream::Samples).map_err(words)?;
        Ok(SamplePlane {
            _switches: engine.attach_samples().map_err(words)?,
            clocks: HashMap::new(),
            ours: HashSet::new(),
            records,
            known: HashMap::new(),
            beside: Beside::default(),
            pending: Vec::new(),
            outside: Outside::default(),
            due: Instant::now(),
            notes: Vec::new(),
            full: false,
            malformed: 0,
        })
    }

    /// A thread has called for the first time.
    fn meet(&mut self, engine: &dyn Engine, tid: u32) {
        if self.clocks.len() >= CLOCKS {
            if !std::mem::replace(&mut self.full, true) {
                let words = format!("what threads beyond {CLOCKS} do on their CPU outside CUDA: only that they wait");
                self.notes.push(words);
            }
            return;
        }
        // it may have ended
        if let Ok(clock) = engine.attach_clock(tid) {
            self.clocks.insert(tid, clock);
        }
    }

    /// Lets go of threads that have ended.
    fn keep_only(&mut self, living: impl Fn(u32) -> bool) {
        self.clocks.retain(|tid, _| living(*tid));
        let untold = self.pending.iter().filter(|sample| sample.beside);
        let untold: HashSet<u32> = untold.map(|sample| sample.thread.1).collect();
        self.beside.keep_only(|tid| living(tid) || untold.contains(&tid));
    }

    /// Takes in what has come.
    fn take_in(&mut self, sites: &mut SitePlane) {
        let inbox = Rc::clone(self.records.drain());
        for record in inbox.borrow().records() {
            match Sample::parse(record) {
                Some(sample) => self.take(sample, sites),
                None => self.malformed += 1,
            }
        }
        inbox.borrow_mut().clear();
    }

    fn take(&mut self, sample: Sample, sites: &mut SitePlane) {
        if self.ours.contains(&sample.stack.tid) {
            return;
        }
        let thread = (sample.stack.tgid, sample.stack.tid);
        let (running, between) = (sample.running(), sample.is_between());
        let has_no_python = sample.stack.python == PYTHON_THREAD;
        let beside = between && running && has_no_python;
        let waited = sample.waited();
        let runs_python = !sample.stack.frames.is_empty();
        let stack = coarse(sample.stack, running);
        // of what has no room the time counts
        let room = self.known.len() + self.pending.len() < STACKS;
        let site = match !beside && (room || self.known.contains_key(&stack.id)) {
            true => sites.keep_sampled(&stack),
            false => 0,
        };
        if runs_python && site != 0 {
            let (pid, tid) = thread;
            let (from, until) = (sample.until.saturating_sub(sample.ns), sample.until);
            let stay = Stay { tid, from, until, site };
            match running {
                true => self.beside.worked(pid, stay),
                false => self.beside.slept(pid, stay),
            }
        }
        let pending = Pending {
            site,
            until: sample.until,
            ns: sample.ns,
            running,
            between,
            beside,
            waited,
            thread,
        };
        match beside || has_no_python && !running {
            true => self.beside.looked(pending),
            false => self.pending.push(pending),
        }
    }

    /// Samples with their stacks; those whose stacks have no names yet stay, unless all are wanted.
    fn reported(&mut self, sites: &mut SitePlane, wanted: Wanted) -> Vec<Measure> {
        let settled = self.beside.settled(monotonic_ns(), wanted == Wanted::All);
        self.pending.extend(settled);
        let full = self.pending.len() >= PENDING;
        let all = full || wanted == Wanted::All || wanted == Wanted::Due && Instant::now() >= self.due;
        if all {
            self.name(sites);
        }
        let known = &self.known;
        let is_named = |sample: &Pending| known.contains_key(&sample.site) || sample.beside && sample.site == 0;
        let due = self.pending.extract_if(.., |sample| all || is_named(sample));
        let due: Vec<Pending> = due.filter(|sample| !sample.waited).collect();
        due.into_iter().map(|sample| self.tell(&sample, sites)).collect()
    }

    fn name(&mut self, sites: &mut SitePlane) {
        let begun = Instant::now();
        let fresh = self.pending.iter().map(|sample| sample.site);
        let fresh: Vec<u64> = fresh.filter(|site| !self.known.contains_key(site)).collect();
        for (site, frames) in sites.name_sampled(fresh) {
            self.known.insert(site, Known::of(&frames));
        }
        self.due = Instant::now() + begun.elapsed() * NAMING_SHARE;
    }

    fn tell(&mut self, sample: &Pending, sites: &mut SitePlane) -> Measure {
        let known = match sample.beside {
            true => Some(self.beside.shown(sample, sites)),
            false => self.known.get(&sample.site),
        };
        let (pid, tid) = sample.thread;
        let place = known.and_then(|known| known.place.as_deref());
        let stack = known.map_or_else(|| "".into(), |known| Rc::clone(&known.stack));
        let (ns, running) = (sample.ns, sample.running);
        let what = match sample.between {
            true => {
                self.outside.look(pid, place);
                Measured::Between { ns, stack }
            }
            false => {
                self.outside.add(pid, place, ns);
                Measured::Outside { ns, running, stack }
            }
        };
        Measure {
            at: sample.until.saturating_sub(ns),
            pid,
            tid,
            what,
        }
    }
}

/// A thread that works is at another instruction each time: where it runs Python, its line says enough.
fn coarse(mut stack: crate::stack::wire::SiteEvent, running: bool) -> crate::stack::wire::SiteEvent {
    if running && !stack.frames.is_empty() {
        stack.native.clear();
        let words = stack.frames.iter().flat_map(|frame| [frame.code, frame.instruction]);
        let mix = |sum: u64, word: u64| (sum.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        stack.id = words.fold(u64::from(stack.tgid), mix);
    }
    stack
}

impl Tracer {
    /// This thread is ours: where it is says nothing of the program.
    pub(super) fn leave_out(&mut self, tid: u32) {
        if let Some(samples) = self.samples.as_mut() {
            samples.ours.insert(tid);
        }
    }

    /// Where this thread is will be sampled from now on.
    pub(super) fn begin_clock(&mut self, tid: u32) {
        if let Some(samples) = self.samples.as_mut() {
            samples.meet(self.engine.as_ref(), tid);
        }
    }

    /// Takes in what has come, and tells what is wanted.
    pub(super) fn take_samples(&mut self, wanted: Wanted) {
        let Some(samples) = self.samples.as_mut() else { return };
        let sites = &mut self.memory.sites;
        samples.take_in(sites);
        for measure in samples.reported(sites, wanted) {
            if self.measures.is_some() {
                self.window.measure(measure);
            }
        }
    }

    /// To be called each second.
    pub(super) fn settle_samples(&mut self) {
        self.take_samples(Wanted::Due);
        let Some(samples) = self.samples.as_mut() else { return };
        samples.keep_only(|tid| self.open.knows(tid));
        let mut notes = std::mem::take(&mut samples.notes);
        notes.extend(self.engine.unsampled());
        for note in notes {
            self.attacher.gap(note);
        }
    }

    /// Where threads were outside CUDA, and what is missing there.
    pub(super) fn report_samples(&self, unseen: &mut Vec<String>) -> Option<Outside> {
        let samples = self.samples.as_ref()?;
        let lost = self.engine.counters().samples_lost;
        if lost > 0 {
            unseen.push(format!(
                "{lost} samples of threads outside CUDA did not fit into their ring"
            ));
        }
        Some(samples.outside.clone())
    }
}
