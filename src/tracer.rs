//! Drives a trace: notices and events come in from the kernel, lines and a summary go out.
//!
//! Owns what a run consists of, and the order of things within it: `step` by step, and once a second. How it begins is
//! `start`'s, how it ends `report`'s; what is attached is `probe`'s business, what a line looks like an encoder's.

mod aside;
mod budget;
mod burden;
mod closeup;
mod devices;
mod driver;
mod early;
mod ends;
mod facts;
mod family;
mod findings;
mod fleet;
mod fold;
mod gpu;
mod hanging;
mod in_order;
mod intact;
mod late;
mod lately;
mod let_go;
mod lines;
mod measures;
mod memory;
mod missed;
mod notices;
mod ranges;
#[cfg(test)]
mod replay_tests;
mod report;
mod room;
mod samples;
mod sites;
mod snapshots;
mod start;
mod stubs;
mod tape;
mod targets;
mod threads;
mod waiting;
mod work;
mod xids;

pub(crate) use budget::Spending;
#[cfg(feature = "top")]
pub(crate) use closeup::Closeup;
pub(crate) use fleet::Census;
pub(crate) use gpu::Demand;
pub(crate) use report::own_usage;

use crate::catalog::{Catalog, Row};
use crate::clock::{WallClock, monotonic_ns};
use crate::confine::{self, Keep};
use crate::device::telemetry::Sampler;
use crate::engine::{Arrivals, Engine, Events, Hooks};
use crate::foreign;
use crate::model::aggregate;
use crate::model::launches::Launches;
use crate::model::open::OpenCalls;
use crate::model::order::Numbers;
use crate::model::summary::{Chosen, Tally};
use crate::model::window::Window;
use crate::model::xid::Report;
use crate::output::{Output, say};
use crate::probe::attach::{Attached, Attacher};
use crate::record::{Encoder, Maker, Meta};
use crate::rows::RunRows;
use anyhow::Result;
use burden::Burden;
use driver::DriverPlane;
use early::Early;
use fleet::FleetPlane;
use let_go::LetGo;
use measures::MeasurePlane;
use memory::MemoryPlane;
use samples::SamplePlane;
use snapshots::SnapshotPlane;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use work::WorkPlane;
use xids::XidPlane;

const SECOND: Duration = Duration::from_secs(1);
/// Names of processes may be that old.
const NAME_EVERY: Duration = Duration::from_secs(5);
const LONGEST_WAIT: Duration = Duration::from_millis(50);

/// Who is traced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Every process, now and later.
    All,
    /// These processes, and who descends from them now and later.
    Processes(Vec<u32>),
}

/// A running trace.
pub struct Tracer {
    /// Dropped before the engine whose memory they use.
    arrivals: Box<dyn Arrivals>,
    /// `None`: nobody asks, or this kernel does not let us.
    samples: Option<SamplePlane>,
    engine: Box<dyn Engine>,
    events: Events,
    memory: MemoryPlane,
    work: WorkPlane,
    xids: Option<XidPlane>,
    /// `None`: nobody asks for it.
    measures: Option<MeasurePlane>,
    /// Or why it is not there; `None`: nobody asks.
    findings: findings::Plane,
    /// `None`: nobody has said which engine it is, and why.
    chosen: Option<Chosen>,
    /// Those that somebody will ask for.
    reports: Vec<Report>,
    driver: Option<DriverPlane>,
    fleet: Option<FleetPlane>,
    /// Readable when somebody wants something of us; -1: nobody does.
    bell: i32,
    rows: RunRows,
    attacher: Attacher,
    scope: Scope,
    family: family::Family,
    lifecycle: Hooks,
    encoder: Option<Box<dyn Encoder>>,
    maker: Maker,
    output: Output,
    buffer: Vec<u8>,
    /// Of what is written.
    wall: Option<WallClock>,
    window: Window,
    numbers: Numbers,
    comms: HashMap<u32, String>,
    ended: HashSet<u32>,
    threads: threads::Threads,
    /// Processes that were born of those that are traced and have not ended, with their names.
    descendants: BTreeMap<u32, String>,
    /// Processes that have made calls.
    callers: HashSet<u32>,
    notices_lost: u64,
    early: Early,
    tally: Tally,
    burden: Burden,
    open: OpenCalls,
    aggregates: aggregate::Tally,
    launches: Launches,
    full_names: bool,
    malformed: u64,
    lost: Vec<u64>,
    lost_in_all: u64,
    lost_since: u64,
    last_second: Instant,
    /// When it was looked for idle devices.
    idle_followed: Instant,
    /// When processes were asked for their names.
    named: Instant,
    started: Instant,
    wait: Duration,
    shown: bool,
    let_go: LetGo,
    watch: intact::Watch,
    snapshots: SnapshotPlane,
    /// `None`: nobody asks what programs call their phases, or the engine does not tell.
    ranges: Option<ranges::RangePlane>,
    /// `None`: nobody asks what devices execute.
    gpu: Option<gpu::GpuPlane>,
    /// `None`: probes may take whatever they take.
    budget: Option<budget::BudgetPlane>,
}

impl Tracer {
    /// The name of the way in which functions are probed.
    pub fn tier(&self) -> &'static str {
        self.engine.way()
    }

    /// Processes that were born of those that are traced and have not ended, as far as was told, with their names.
    pub(crate) fn descendants(&self) -> impl Iterator<Item = (u32, &str)> {
        self.descendants.iter().map(|(pid, comm)| (*pid, comm.as_str()))
    }

    /// Processes that run now and carry an agent, whether they have called or not.
    #[must_use]
    pub(crate) fn carriers(&self) -> Vec<u32> {
        self.engine.carriers()
    }

    /// Whether functions that are still to come are probed by perf events of their own, one for each.
    pub(crate) fn makes_single_events(&self) -> bool {
        let in_kernel = |row: &Row| row.site.is_in_kernel();
        self.engine.makes_single_events() || self.driver.is_some() || self.rows.catalog.rows.iter().any(in_kernel)
    }

    /// What does not answer now, in words: files and memory of others.
    #[must_use]
    pub(crate) fn stuck(&self) -> Vec<String> {
        foreign::stuck()
    }

    /// Probed files that nothing protects from who overwrites them, in words.
    #[must_use]
    pub(crate) fn unguarded(&self) -> Vec<String> {
        self.attacher.unguarded()
    }

    /// Has a step end early when `bell` is readable.
    pub(crate) fn listen_to(&mut self, bell: std::os::fd::RawFd) {
        self.bell = bell;
    }

    /// What the functions that are traced mean.
    pub fn catalog(&self) -> &Catalog {
        &self.rows.catalog
    }

    /// Sets who takes calls; without, they are only counted. `meta`: also where times begin.
    pub(crate) fn write_to(&mut self, mut encoder: Box<dyn Encoder>, meta: &Meta) {
        encoder.start(meta, &mut self.buffer);
        self.maker = Maker::new(meta.clock);
        self.work.facts.begin(false);
        if encoder.measures() {
            self.begin_measures();
        }
        self.wall = Some(WallClock::new(meta.clock));
        self.encoder = Some(encoder);
    }

    /// Has reports of memory say what the driver counts, too.
    pub(crate) fn ask_devices(&mut self) {
        self.memory.ask_devices();
    }

    /// As [`Self::ask_devices`], of what `sampler` was told last: this thread never waits for NVML. Then reports say it
    /// of living processes alone.
    pub(crate) fn devices_from(&mut self, sampler: Arc<Sampler>) {
        self.memory.devices_from(sampler);
    }

    /// Has lines of calls that allocate show where they were called from.
    pub(crate) fn show_stacks(&mut self) {
        self.memory.sites.keep_recent();
    }

    /// Has kernels called as in the source, with namespaces, parameters and all template arguments.
    pub(crate) fn show_full_names(&mut self) {
        self.full_names = true;
    }

    /// Has the summary say which engine this is, and why.
    pub(crate) fn declare_engine(&mut self, chosen: Chosen) {
        self.chosen = Some(chosen);
    }

    /// Has the summary say that something is not seen.
    pub(crate) fn declare_unseen(&mut self, what: String) {
        self.attacher.gap(what);
    }

    fn declare_callers_unseen(&mut self) {
        for note in self.memory.sites.take_notes() {
            self.attacher.gap(note);
        }
    }

    /// Functions probed now.
    pub fn functions(&self) -> usize {
        self.attacher.attached().map(Attached::functions).sum::<usize>() + self.attacher.kernel_functions()
    }

    /// From now on lines wait for whoever reads them, and nothing else does: programs that start meanwhile want their probes.
    pub(crate) fn write_aside(&mut self) {
        if self.encoder.is_some() {
            self.output.write_aside(|| confine::this_thread(Keep::NoCapability));
        }
    }

    /// Handles what has come in, after waiting for it for a moment.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn step(&mut self) -> Result<()> {
        self.engine.alive(monotonic_ns());
        // before calls: those that have caused them must not come later
        self.take_activities();
        self.take_ranges();
        let [log, tracepoint] = self.xids.as_ref().map_or([-1; 2], XidPlane::bells);
        let (memory, work) = (self.memory.bell(), self.work.bell());
        let bells = [self.arrivals.bell(), memory, work, log, tracepoint, self.bell];
        let drained = self.events.wait(self.wait, bells);
        self.handle_notices();
        self.take_xids(monotonic_ns(), false);
        let followed = monotonic_ns();
        self.follow(followed);
        let came = self.events.pending_bytes();
        self.adapt(came);
        self.hold();
        let now = monotonic_ns();
        self.measure_threads(now);
        self.take_samples(samples::Wanted::Named);
        self.take_totals();
        if self.encoder.is_some() {
            self.memory.late.settle(&mut self.launches);
        }
        // until then all calls were taken out and the models know what their lines need; attaching may take long in between
        self.emit(self.horizon(drained));
        if self.last_second.elapsed() >= SECOND {
            self.each_second(now, followed);
        }
        self.flush()
    }

    /// Takes in memory calls and work that ended before `now`, CLOCK_MONOTONIC ns.
    fn follow(&mut self, now: u64) {
        self.work.take_in(&mut self.memory);
        if let Some(driver) = self.driver.as_mut() {
            driver.take_in(self.encoder.as_ref().map(|_| self.events.inbox()));
        }
        self.memory.follow(
            self.engine.as_ref(),
            &self.rows.catalog,
            &mut self.launches,
            self.arrivals.as_ref(),
            &mut |call, ledgers, freed| self.work.remember(call, ledgers, freed),
        );
        self.work
            .follow(self.engine.as_ref(), &self.rows.catalog, &self.memory, now);
    }

    /// Wakes up rarely when little happens.
    fn adapt(&mut self, came: usize) {
        self.wait = match came {
            0 => (self.wait * 2).min(LONGEST_WAIT),
            1..=65_535 => Duration::from_millis(10),
            _ => Duration::from_millis(2),
        };
    }

    /// `followed`: until then the models have been told everything, CLOCK_MONOTONIC ns.
    fn each_second(&mut self, now: u64, followed: u64) {
        self.last_second = Instant::now();
        self.report_lost(now);
        self.measure_all(followed, false);
        if let Some(encoder) = self.encoder.as_mut() {
            encoder.tick(&mut self.buffer);
        }
        if let Some(wall) = self.wall.as_mut() {
            wall.refresh();
        }
        if let Some(xids) = self.xids.as_mut() {
            xids.look_for_driver(self.engine.as_ref());
        }
        self.settle_samples();
        self.look_for_hanging(now);
        self.look_for_ended();
        self.follow_family();
        // whoever takes a census each second has done so
        if self.fleet.is_some() && self.idle_followed.elapsed() >= SECOND {
            // what a program does not tell any more must be known when it ends
            self.follow_idle();
        }
        self.fold_ended();
        self.forget_threads();
        self.memory.settle(self.engine.as_ref(), now);
        if self.named.elapsed() >= NAME_EVERY {
            self.named = Instant::now();
            self.memory.name_all();
            self.work.name_all();
        }
        self.work.facts.settle(now);
        self.declare_callers_unseen();
        if self.driver.is_some() {
            self.engine.look_up_uvm();
        }
        self.attacher.follow_modules(self.engine.as_ref(), &mut self.rows);
        for waiter in self.attacher.retry(self.engine.as_ref(), &mut self.rows) {
            self.judge_waiter(&waiter);
        }
        self.look_at_budget();
        self.look_at_code();
        self.look_at_unsure();
        let released = self.attacher.release_wanted(self.engine.as_ref());
        self.let_go.lines(&released, Instant::now()).iter().for_each(say);
        if matches!(self.scope, Scope::All) {
            // what nobody names later need not be kept for that
            let keeps_files = self.fleet.is_some() && self.memory.sites.keeps_files();
            let mapped = self
                .attacher
                .release_unmapped(self.engine.as_ref(), &self.callers, keeps_files);
            if let (Some(mapped), true) = (mapped, keeps_files) {
                self.memory.sites.keep_only(&mapped);
            }
        }
    }
}
