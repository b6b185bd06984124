//! Drives a trace: notices and events come in from the kernel, lines and a summary go out.
//!
//! Owns the order of things in one run. What is attached is `probe`'s business, what a line looks like a sink's.

mod clock;
mod devices;
mod driver;
mod facts;
mod findings;
mod fleet;
mod measures;
mod memory;
mod report;
mod sites;
mod stubs;
mod work;
mod xids;

pub use clock::{clock_now, monotonic_ns};
pub use fleet::Census;
pub use report::own_usage;

use crate::catalog::{Catalog, SiteKind};
use crate::decode::Call;
use crate::device::telemetry::Sampler;
use crate::driver::Record;
use crate::model::aggregate;
use crate::model::launches::Launches;
use crate::model::order::Numbers;
use crate::model::summary::Tally;
use crate::model::window::{Due, Happened, Window};
use crate::model::xid::Report;
use crate::output::{Output, say};
use crate::probe::attach::{Attacher, News};
use crate::probe::gate::{Arrival, Gate};
use crate::probe::hold::Holder;
use crate::probe::kernel::{Types, Way, Ways};
use crate::probe::ring::Events;
use crate::probe::{KernelUse, Links, Session, Setup, discover};
use crate::refusal;
use crate::rows::RunRows;
use crate::sink::{Asked, Clock, Entry, Facts, Happening, Measure, Sink};
use crate::wire::{self, Notice};
use anyhow::{Context, Result};
use driver::DriverPlane;
use findings::FindingPlane;
use fleet::FleetPlane;
use measures::MeasurePlane;
use memory::MemoryPlane;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use work::WorkPlane;
use xids::XidPlane;

/// Events younger than this are held back to be sorted.
const WINDOW_NS: u64 = 100_000_000;
/// Held back events beyond this go out unsorted rather than take memory.
const HELD_BYTES: usize = 8 << 20;
/// How long notices are handled before something else has its turn.
const NOTICES_FOR: Duration = Duration::from_millis(100);
/// In place of a thread: whoever is current has nothing to do with it.
const NOBODY: u32 = 0;
const SECOND: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_millis(50);

/// Who is traced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Every process, now and later.
    All,
    /// These processes and their children from now on.
    Processes(Vec<u32>),
}

/// A running trace.
pub struct Tracer {
    /// Dropped before the session whose memory it uses.
    gate: Gate,
    session: Session,
    events: Events,
    memory: MemoryPlane,
    work: WorkPlane,
    xids: Option<XidPlane>,
    /// `None`: nobody asks for it.
    measures: Option<MeasurePlane>,
    /// Or why it is not there; `None`: nobody asks.
    findings: Result<Box<FindingPlane>, Option<String>>,
    /// Those that somebody will ask for.
    reports: Vec<Report>,
    driver: Option<DriverPlane>,
    fleet: Option<FleetPlane>,
    /// Readable when somebody wants something of us; -1: nobody does.
    bell: i32,
    rows: RunRows,
    attacher: Attacher,
    scope: Scope,
    lifecycle: Links,
    sink: Option<Box<dyn Sink>>,
    output: Output,
    buffer: Vec<u8>,
    window: Window,
    numbers: Numbers,
    comms: HashMap<u32, String>,
    ended: HashSet<u32>,
    /// Processes that have made calls.
    callers: HashSet<u32>,
    notices_lost: u64,
    tally: Tally,
    aggregates: aggregate::Tally,
    launches: Launches,
    full_names: bool,
    malformed: u64,
    lost: Vec<u64>,
    lost_in_all: u64,
    lost_since: u64,
    last_second: Instant,
    started: Instant,
    wait: Duration,
    shown: bool,
}

/// How functions of the kernel can be hooked here.
fn kernel_ways() -> Result<Ways> {
    Ok(Ways::here(Way::forced()?, &Types::read()))
}

impl Tracer {
    /// Loads the kernel programs and hooks process life and the dynamic linkers.
    ///
    /// # Errors
    /// The kernel or our privileges do not allow it.
    pub fn start(mut rows: RunRows, mut setup: Setup, scope: Scope, output: Output) -> Result<Tracer> {
        setup.specs = rows.specs();
        setup.driver = rows.driver();
        setup.driver_left_out = rows.driver_left_out();
        let names = |kind| rows.catalog.rows.iter().any(|row| row.site == kind);
        setup.static_probes =
            names(SiteKind::StaticProbe) || rows.catalog.rows.iter().any(|row| row.hook.offset.is_some());
        setup.aggregates = rows.catalog.rows.iter().any(|row| row.hook.sums_up());
        setup.kernel = KernelUse {
            functions: names(SiteKind::KernelFunction).then(kernel_ways).transpose()?,
            tracepoints: names(SiteKind::Tracepoint),
        };
        let holder = setup.wait_for_attach.then(Holder::fork).transpose()?;
        let session = Session::load(&setup)?;
        let (events, gate) = (Events::open(&session)?, Gate::open(&session, holder)?);
        let memory = MemoryPlane::open(&session, &scope)?;
        let work = WorkPlane::open(&session, rows.follows_work())?;
        let mut attacher = Attacher::default();
        let lifecycle = session.attach_lifecycle().unwrap_or_else(|error| {
            attacher.gap(format!("new processes are not followed: {error:#}"));
            Vec::new()
        });
        let driver = match driver_plane(&session, &rows, &setup) {
            // there is more to be counted
            Err(error) if setup.driver_counted => {
                attacher.gap(refusal::message(&error).replace('\n', "; "));
                None
            }
            driver => driver?,
        };
        attacher.watch_system_linkers(&session);
        attacher.attach_kernel(&session, &mut rows);
        let lost = vec![0; session.row_capacity()];
        Ok(Tracer {
            gate,
            session,
            events,
            memory,
            work,
            xids: None,
            measures: None,
            findings: Err(None),
            reports: Vec::new(),
            driver,
            fleet: None,
            bell: -1,
            rows,
            attacher,
            scope,
            lifecycle,
            sink: None,
            output,
            buffer: Vec::with_capacity(1 << 16),
            window: Window::default(),
            numbers: Numbers::default(),
            comms: HashMap::from([(NOBODY, "kernel".to_owned())]),
            ended: HashSet::new(),
            callers: HashSet::new(),
            notices_lost: 0,
            tally: Tally::default(),
            aggregates: aggregate::Tally::default(),
            launches: Launches::default(),
            full_names: false,
            malformed: 0,
            lost,
            lost_in_all: 0,
            lost_since: monotonic_ns(),
            last_second: Instant::now(),
            started: Instant::now(),
            wait: Duration::from_millis(1),
            shown: false,
        })
    }

    /// The name of the way in which functions are probed.
    pub fn tier(&self) -> &'static str {
        self.session.tier.name()
    }

    /// Has a step end early when `bell` is readable.
    pub fn listen_to(&mut self, bell: std::os::fd::RawFd) {
        self.bell = bell;
    }

    /// What the functions that are traced mean.
    pub fn catalog(&self) -> &Catalog {
        &self.rows.catalog
    }

    /// Sets where calls are written to; without, they are only counted. `clock`: where times begin there.
    pub fn write_to(&mut self, mut sink: Box<dyn Sink>, clock: Clock) {
        sink.start(&mut self.buffer);
        if let Ok(findings) = self.findings.as_mut() {
            findings.begin(clock);
        }
        if sink.measures() {
            self.begin_measures(true);
        }
        self.sink = Some(sink);
    }

    /// Adds a process to those traced and attaches to what it maps.
    ///
    /// # Errors
    /// It does not exist or may not be looked at.
    pub fn add_process(&mut self, pid: u32) -> Result<()> {
        self.session.add_target(pid)?;
        let uses_gpu = self
            .look_at(pid)
            .with_context(|| format!("failed to look at process {pid}"))?;
        if uses_gpu {
            self.memory.meet(pid);
        } else {
            self.memory.born(pid);
        }
        Ok(())
    }

    /// Attaches to everything that running processes map. Processes that may not be looked at are reported.
    pub fn add_running(&mut self) {
        let own = std::process::id();
        let mut hidden = 0;
        for pid in discover::processes().into_iter().filter(|pid| *pid != own) {
            self.note_width(pid, "");
            match self.look_at(pid) {
                Ok(true) => self.memory.meet(pid),
                Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => hidden += 1,
                _ => {}
            }
        }
        if hidden > 0 {
            self.attacher.gap(format!(
                "{hidden} of the running processes may not be looked at; hint: run as root of the host, or with cap_sys_ptrace"
            ));
        }
    }

    /// Attaches to the libraries that are installed, so that the first process that maps one misses nothing.
    pub fn add_installed(&mut self) {
        self.attacher.attach_installed(&self.session, &mut self.rows);
    }

    /// Attaches to a program before it is started.
    pub fn add_program(&mut self, path: &std::path::Path) {
        let Ok(file) = discover::open_readable(path) else {
            return;
        };
        if let Err(error) = self
            .attacher
            .attach_file(&self.session, &mut self.rows, file, path.to_owned())
        {
            // scripts are no ELF files; what they start is looked at when it is mapped
            drop(error);
        }
    }

    /// Has reports of memory say what the driver counts, too.
    pub fn ask_devices(&mut self) {
        self.memory.ask_devices();
    }

    /// As [`Self::ask_devices`], of what `sampler` was told last: this thread never waits for NVML. Then reports say it
    /// of living processes alone.
    pub fn devices_from(&mut self, sampler: Arc<Sampler>) {
        self.memory.devices_from(sampler);
    }

    /// Has lines of calls that allocate show where they were called from.
    pub fn show_stacks(&mut self) {
        self.memory.sites.keep_recent();
    }

    /// Has kernels called as in the source, with namespaces, parameters and all template arguments.
    pub fn show_full_names(&mut self) {
        self.full_names = true;
    }

    /// Has the summary say that something is not seen.
    pub fn declare_unseen(&mut self, what: String) {
        self.attacher.gap(what);
    }

    fn declare_callers_unseen(&mut self) {
        for note in self.memory.sites.take_notes() {
            self.attacher.gap(note);
        }
    }

    /// Functions probed now.
    pub fn functions(&self) -> usize {
        self.attacher.attached().map(|file| file.functions).sum::<usize>() + self.attacher.kernel_functions()
    }

    /// Handles what has come in, after waiting for it for a moment.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn step(&mut self) -> Result<()> {
        self.session.alive(monotonic_ns());
        let [log, tracepoint] = self.xids.as_ref().map_or([-1; 2], XidPlane::bells);
        let (memory, work) = (self.memory.bell(), self.work.bell());
        let bells = [self.gate.bell(), memory, work, log, tracepoint, self.bell];
        self.events.wait(self.wait, bells);
        self.handle_notices();
        self.take_xids(monotonic_ns(), false);
        let followed = monotonic_ns();
        self.follow(followed);
        let came = self.events.pending_bytes();
        self.adapt(came);
        self.hold();
        let now = monotonic_ns();
        self.measure_threads(now);
        let horizon = if self.window.held_bytes() > HELD_BYTES {
            u64::MAX
        } else {
            now.saturating_sub(WINDOW_NS)
        };
        self.emit(horizon);
        if self.last_second.elapsed() >= SECOND {
            self.each_second(now, followed);
        }
        self.flush()
    }

    /// Takes in memory calls and work that ended before `now`, CLOCK_MONOTONIC ns.
    fn follow(&mut self, now: u64) {
        self.work.take_in(&mut self.memory);
        if let Some(driver) = self.driver.as_mut() {
            driver.take_in(self.sink.as_ref().map(|_| self.events.inbox()));
        }
        self.memory
            .follow(&self.session, &self.rows.catalog, &mut self.launches, &mut self.work);
        self.work.follow(&self.session, &self.rows.catalog, &self.memory, now);
    }

    /// Wakes up rarely when little happens.
    fn adapt(&mut self, came: usize) {
        self.wait = match came {
            0 => (self.wait * 2).min(LONGEST_WAIT),
            1..=65_535 => Duration::from_millis(10),
            _ => Duration::from_millis(2),
        };
    }

    fn handle_notices(&mut self) {
        self.gate.silence();
        let begun = Instant::now();
        while let Some(arrival) = self.gate.next_arrival() {
            self.handle(arrival);
            // a storm of processes must not keep the rings, signals and questions waiting
            if self.fleet.is_some() && begun.elapsed() > NOTICES_FOR {
                self.gate.ring();
                break;
            }
        }
        self.malformed += self.gate.take_malformed();
    }

    fn handle(&mut self, arrival: Arrival) {
        let notice = &arrival.notice;
        let comm = wire::text_of(&notice.comm);
        self.note_life(notice, &comm);
        match notice.kind {
            wire::NOTICE_THREAD => {
                self.callers.insert(notice.tgid);
                if let Some(measures) = self.measures.as_mut() {
                    measures.meet(notice.tgid, notice.tid);
                }
                if self.rows.names_processes() {
                    let of_process = || discover::comm(notice.tgid, notice.tgid).unwrap_or_else(|| comm.clone());
                    self.comms.entry(notice.tgid).or_insert_with(of_process);
                }
                if self.sink.is_some() {
                    self.comms.insert(notice.tid, comm);
                }
            }
            wire::NOTICE_FORK => {
                self.memory.born(notice.tgid);
                self.happened(notice, &comm, Happening::Forked { parent: notice.parent });
            }
            wire::NOTICE_EXEC => {
                self.comms.remove(&notice.tgid);
                self.memory.executed(notice);
                self.work.ended(notice);
                self.leave_driver(notice);
                self.fold_image(notice.tgid);
                self.happened(notice, &comm, Happening::Executed);
                self.note_width(notice.tgid, &comm);
                self.prepare_for(arrival);
            }
            wire::NOTICE_EXIT => {
                self.memory.exited(notice);
                self.work.ended(notice);
                self.leave_driver(notice);
                self.happened(notice, &comm, Happening::Exited);
                self.ended.insert(notice.tgid);
            }
            wire::NOTICE_LIBRARY => self.prepare_for(arrival),
            _ => self.malformed += 1,
        }
    }

    /// Neither the libraries of 32-bit programs nor their system calls are seen.
    fn note_width(&mut self, pid: u32, comm: &str) {
        if !discover::is_32_bit(pid) {
            return;
        }
        let unseen = "are not seen, neither of CUDA nor of the kernel driver";
        self.attacher.gap(match self.scope {
            Scope::Processes(_) => format!("{comm} {pid} is a 32-bit program: its calls {unseen}"),
            Scope::All => format!("32-bit programs run: their calls {unseen}"),
        });
    }

    fn leave_driver(&mut self, notice: &Notice) {
        if let Some(driver) = self.driver.as_mut() {
            driver.ended(notice);
        }
    }

    fn happened(&mut self, notice: &Notice, comm: &str, what: Happening) {
        if matches!(self.scope, Scope::Processes(_)) {
            self.window.happen(Happened {
                at: notice.at,
                tgid: notice.tgid,
                comm: comm.to_owned(),
                what,
            });
        }
    }

    /// Attaches to what a process maps; whether that includes a library of the catalogue.
    fn look_at(&mut self, pid: u32) -> std::io::Result<bool> {
        let news = self.attacher.news(&self.rows.catalog, pid)?;
        if news.has_library && self.rows.takes_stacks() {
            self.memory.sites.look_at(&self.session, pid);
        }
        for mapping in &news.mappings {
            self.attacher.consider(&self.session, &mut self.rows, pid, mapping);
        }
        Ok(news.has_library)
    }

    /// Attaches to what a thread has newly mapped, while it waits.
    fn prepare_for(&mut self, arrival: Arrival) {
        let pid = arrival.notice.tgid;
        let news = self.attacher.news(&self.rows.catalog, pid);
        if news.is_err() && self.fleet.is_some() {
            return self.gate.pass(&arrival);
        }
        // the process may be gone already: what it had mapped cannot be told
        let news = news.unwrap_or(News {
            mappings: Vec::new(),
            has_library: true,
        });
        let stacks = self.rows.takes_stacks();
        let is_new = stacks && news.has_library && !self.memory.sites.has_looked_at(pid);
        if news.mappings.is_empty() && !is_new {
            return self.gate.pass(&arrival);
        }
        self.gate.during(arrival, || {
            for mapping in &news.mappings {
                self.attacher.consider(&self.session, &mut self.rows, pid, mapping);
            }
            // last: a thread that waits no longer must not miss the probes
            if is_new || stacks && self.memory.sites.has_looked_at(pid) {
                self.memory.sites.look_at(&self.session, pid);
            }
        });
    }

    /// Moves new events to those held back.
    fn hold(&mut self) {
        self.malformed += self.window.take_in(&mut self.events.inbox().borrow_mut());
    }

    /// Writes what was held back from before `horizon`, in order.
    fn emit(&mut self, horizon: u64) {
        let mut window = std::mem::take(&mut self.window);
        window.release(horizon, |due| match due {
            Due::Call(bytes) => self.write_event(bytes),
            Due::Process(happened) => self.write_happened(happened),
            Due::Xid(report) => self.write_xid(report),
            Due::Measure(measure) => self.write_measure(measure),
        });
        self.window = window;
    }

    fn write_happened(&mut self, happened: &Happened) {
        if let Ok(findings) = self.findings.as_mut() {
            findings.process(happened.tgid, happened.at, &happened.comm, happened.what);
        }
        if let Some(sink) = self.sink.as_mut() {
            sink.process(
                happened.tgid,
                happened.at,
                &happened.comm,
                happened.what,
                &mut self.buffer,
            );
        }
    }

    fn write_xid(&mut self, report: &Report) {
        if let Some(sink) = self.sink.as_mut() {
            sink.xid(report, &mut self.buffer);
        }
    }

    fn write_measure(&mut self, measure: &Measure) {
        if let Ok(findings) = self.findings.as_mut() {
            findings.measure(measure);
        }
        if let Some(sink) = self.sink.as_mut() {
            sink.measure(measure, &mut self.buffer);
        }
    }

    fn write_event(&mut self, bytes: &[u8]) {
        let Some(sink) = self.sink.as_mut() else { return };
        let Some(call) = Call::decode(bytes, &self.rows.catalog, &self.rows.plans) else {
            self.malformed += 1;
            return;
        };
        let header = &call.header;
        let number = self
            .numbers
            .number(header.tid, header.depth, header.entered, header.caller);
        let comm = self
            .comms
            .entry(header.tid)
            .or_insert_with(|| discover::comm(header.tgid, header.tid).unwrap_or_else(|| "?".to_owned()));
        let layer = layer_of(&self.rows.catalog, &call);
        let asked = self.rows.catalog.driver.filter(|driver| driver.contains(header.row));
        let asked = asked.and_then(|driver| Some(Asked::of(&Record::parse(bytes)?, driver.dialect)));
        let full = self.full_names;
        let kernel = call.kernel().and_then(|id| self.launches.name(id));
        let kernel = kernel.map(|name| if full { name.full.as_str() } else { name.short.as_str() });
        let sites = &mut self.memory.sites;
        let stack = match call.site() {
            Some(site) => sites.frames(site),
            None => sites.stack_of(header.tid, header.entered),
        };
        let facts = self.work.facts.take(header.tid, header.entered);
        let entry = Entry {
            call: &call,
            number,
            comm,
            layer,
            kernel,
            asked: asked.as_ref(),
            stack: stack.as_deref(),
            facts: Facts {
                stream: facts.stream.or_else(|| call.stream()),
                ..facts
            },
        };
        sink.call(&entry, &mut self.buffer);
        if let Ok(findings) = self.findings.as_mut() {
            findings.call(&entry);
        }
        self.shown = true;
        if self.buffer.len() >= 1 << 18 {
            self.output.write(&self.buffer);
            self.buffer.clear();
        }
    }

    /// `followed`: until then the models have been told everything, CLOCK_MONOTONIC ns.
    fn each_second(&mut self, now: u64, followed: u64) {
        self.last_second = Instant::now();
        self.report_lost(now);
        self.measure_all(followed, false);
        if let Some(sink) = self.sink.as_mut() {
            sink.tick(&mut self.buffer);
        }
        if let Some(xids) = self.xids.as_mut() {
            xids.look_for_driver(&self.session);
        }
        self.look_for_ended();
        self.fold_ended();
        self.memory.settle(&self.session, now);
        self.work.settle();
        self.declare_callers_unseen();
        if self.driver.is_some() {
            self.session.look_up_uvm();
        }
        self.attacher.follow_modules(&self.session, &mut self.rows);
        for path in self.attacher.release_wanted() {
            say(format_args!(
                "gpuscope: {} is being overwritten: let go of it",
                path.display()
            ));
        }
    }

    /// As last heard of, also of one that has ended.
    fn process_name(&self, tgid: u32) -> Option<String> {
        let known = self.rows.names_processes().then(|| self.comms.get(&tgid).cloned())?;
        known.or_else(|| discover::comm(tgid, tgid))
    }

    fn report_lost(&mut self, now: u64) {
        let lost = self.session.lost();
        if std::mem::replace(&mut self.lost_in_all, lost) == lost {
            self.lost_since = now;
            return;
        }
        let Ok(counters) = self.session.counters() else { return };
        for (row, counter) in counters.iter().enumerate() {
            let before = std::mem::replace(&mut self.lost[row], counter.lost);
            if let (Some(sink), true) = (self.sink.as_mut(), counter.lost > before) {
                let name = self.rows.catalog.rows.get(row).map_or("?", |row| row.symbol.as_str());
                sink.lost(name, counter.lost - before, self.lost_since, now, &mut self.buffer);
                if let Ok(findings) = self.findings.as_mut() {
                    findings.lost(name, counter.lost - before, self.lost_since, now);
                }
            }
        }
        self.lost_since = now;
    }

    /// Keeps the kernel's tables small: totals of ended processes move here.
    fn fold_ended(&mut self) {
        // what they launched may be being named
        if self.ended.is_empty() || self.memory.stubs.is_busy() {
            return;
        }
        // names of kernels are needed until the last records of their process have been followed
        let (early, ended): (HashSet<u32>, HashSet<u32>) = std::mem::take(&mut self.ended)
            .into_iter()
            .partition(|tgid| self.work.knows(*tgid));
        self.ended = early;
        self.work.tell_graphs(&mut self.launches, false);
        if self.made_calls(&ended) {
            self.fold(&ended);
        }
        for tgid in ended {
            self.comms.remove(&tgid);
            self.callers.remove(&tgid);
            self.numbers.forget(tgid);
            self.forget_owner(tgid);
        }
    }

    /// Whether one of these may have; most processes of a machine do not, and a look into the tables takes a while.
    fn made_calls(&mut self, ended: &HashSet<u32>) -> bool {
        let lost = self.session.losses().notices;
        let knows_all = std::mem::replace(&mut self.notices_lost, lost) == lost;
        !knows_all || !self.callers.is_disjoint(ended)
    }

    fn fold(&mut self, ended: &HashSet<u32>) {
        if let Ok(taken) = self.session.take_ended(&|tgid| ended.contains(&tgid)) {
            match self.fleet {
                Some(_) => self.fold_taken(&taken, monotonic_ns()),
                None => self.add_to_tally(&taken),
            }
        }
        self.take_shares(ended);
        self.take_launched(ended);
        self.launches.forget(&|tgid| ended.contains(&tgid));
    }

    /// What calls of ended processes have spent in the driver.
    fn take_shares(&mut self, ended: &HashSet<u32>) {
        if self.driver.is_none() {
            return;
        }
        let taken = self.session.take_driver_shares(&|tgid| ended.contains(&tgid));
        let taken = taken.unwrap_or_default();
        if self.fleet.is_some() {
            return self.fold_shares(&taken);
        }
        for (key, share) in taken {
            self.tally.add_share(&key, share);
        }
    }

    fn take_launched(&mut self, ended: &HashSet<u32>) {
        let is_ended = |tgid: u32| ended.contains(&tgid);
        if !self.launches.knows_any(&is_ended) {
            return;
        }
        let launched = self.session.take_launched(&is_ended).unwrap_or_default();
        if self.fleet.is_none() {
            self.launches.add_launched(&launched.shapes, &launched.streams);
        }
    }

    fn add_to_tally(&mut self, taken: &crate::probe::totals::Snapshot) {
        for (key, total) in &taken.totals {
            self.tally.add(&self.rows.catalog, key, total);
            let plan = self.rows.plans.get(key.row as usize);
            let launches = |role| matches!(role, wire::ROLE_LAUNCH | wire::ROLE_STUB);
            // of the runtime's launches, those that a launch of the driver lies in are counted there
            if key.variant != 0 && plan.is_some_and(|plan| launches(plan.spec.launch.role)) {
                self.launches.add(key, total);
            }
        }
        self.launches
            .add_launched(&taken.launched.shapes, &taken.launched.streams);
        for (key, count) in &taken.failures {
            self.tally.add_failure(key, *count);
        }
        for (key, sums) in &taken.aggregates {
            let comm = self.process_name(key.tgid);
            self.aggregates.add(&self.rows.catalog, key, sums, comm.as_deref());
        }
    }

    /// Hands what is buffered to the output.
    ///
    /// # Errors
    /// The output is full or broken; a closed pipe is no error.
    pub fn flush(&mut self) -> Result<()> {
        if !self.buffer.is_empty() {
            self.output.write(&self.buffer);
            self.buffer.clear();
        }
        self.output.check()
    }

    /// Whether nobody reads the output any more.
    pub fn output_closed(&self) -> bool {
        self.output.closed()
    }
}

/// Follows the driver's calls, where a row of theirs is traced.
fn driver_plane(session: &Session, rows: &RunRows, setup: &Setup) -> Result<Option<DriverPlane>> {
    let Some(driver) = rows.driver() else {
        return Ok(None);
    };
    session.set_driver_plans(&driver, &|row| rows.selects(row))?;
    session.look_up_uvm();
    let links = session.attach_driver(setup.only_targets)?;
    DriverPlane::open(session, driver.dialect, links, setup.driver_counted).map(Some)
}

fn layer_of<'a>(catalog: &'a Catalog, call: &Call<'_>) -> &'a str {
    catalog
        .library_with(call.row.library)
        .map_or("?", |library| library.name.as_str())
}
