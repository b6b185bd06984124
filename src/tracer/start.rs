//! How a run begins: what the kernel programs are loaded with, and the planes that read them.
//!
//! Owns the order in which things are opened and hooked before the first process is looked at. Whom a run is about is
//! [`super::targets`]' business.

use super::burden::Burden;
use super::driver::DriverPlane;
use super::early::Early;
use super::let_go::LetGo;
use super::memory::MemoryPlane;
use super::samples::SamplePlane;
use super::tape;
use super::work::WorkPlane;
use super::{Scope, Tracer};
use crate::catalog::SiteKind;
use crate::clock::{clock_now, monotonic_ns};
use crate::engine::{Engine, Events, Keep};
use crate::inside::Inside;
use crate::model::aggregate;
use crate::model::launches::Launches;
use crate::model::open::OpenCalls;
use crate::model::order::Numbers;
use crate::model::summary::Tally;
use crate::model::window::Window;
use crate::output::Output;
use crate::probe::attach::Attacher;
use crate::probe::hold::Holder;
use crate::probe::kernel::{Types, Way, Ways};
use crate::probe::{EnginePlace, KernelUse, Session, Setup, privilege};
use crate::record::Maker;
use crate::refusal;
use crate::rows::RunRows;
use anyhow::Result;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

/// In place of a thread: whoever is current has nothing to do with it.
const NOBODY: u32 = 0;

/// What a run looks at beside calls.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Beside {
    /// Where threads are outside CUDA.
    pub samples: bool,
    /// System calls on the driver's devices are counted, and none is told of.
    pub driver_counted: bool,
    /// Those that are no ioctls, too.
    pub each_system_call: bool,
}

impl Tracer {
    /// Loads the kernel programs and hooks process life and the dynamic linkers. `output` is opened when they are loaded: where
    /// the kernel refuses them, no file was begun, nor one that was there emptied.
    ///
    /// # Errors
    /// The kernel or our privileges do not allow it.
    pub fn start(
        rows: RunRows,
        mut setup: Setup,
        scope: Scope,
        output: impl FnOnce() -> Result<Output>,
    ) -> Result<Tracer> {
        crate::space::check_tracing()?;
        fill_in(&mut setup, &rows)?;
        let engine = match setup.place {
            EnginePlace::Kernel => in_kernel(&setup)?,
            EnginePlace::Inside => tape::listening(Box::new(Inside::start(&setup)?)),
        };
        let beside = Beside {
            samples: setup.samples,
            driver_counted: setup.driver_counted,
            each_system_call: setup.only_targets,
        };
        Tracer::over(engine, rows, beside, scope, output()?)
    }

    /// The same over an engine that is there.
    ///
    /// # Errors
    /// It refuses what a run needs.
    pub(crate) fn over(
        engine: Box<dyn Engine>,
        mut rows: RunRows,
        beside: Beside,
        scope: Scope,
        output: Output,
    ) -> Result<Tracer> {
        let its = engine.as_ref();
        let (events, arrivals) = (Events::open(its)?, its.arrivals()?);
        let memory = MemoryPlane::open(its, &scope)?;
        let work = WorkPlane::open(its, rows.follows_work())?;
        let mut attacher = Attacher::default();
        let lifecycle = its.attach_lifecycle().unwrap_or_else(|error| {
            attacher.gap(format!("new processes are not followed: {error:#}"));
            Vec::new()
        });
        let driver = match driver_plane(its, &rows, beside) {
            // there is more to be counted
            Err(error) if beside.driver_counted => {
                attacher.gap(refusal::message(&error).replace('\n', "; "));
                None
            }
            driver => driver?,
        };
        let samples = match beside.samples.then(|| SamplePlane::open(its)) {
            Some(Err(why)) => {
                attacher.gap(format!(
                    "where threads are outside CUDA, or in calls that do not return: {why}"
                ));
                None
            }
            opened => opened.and_then(Result::ok),
        };
        attacher.watch_system_linkers(its);
        attacher.attach_kernel(its, &mut rows);
        let lost = vec![0; engine.rows()];
        Ok(Tracer {
            arrivals,
            samples,
            engine,
            events,
            memory,
            work,
            xids: None,
            measures: None,
            findings: Err(None),
            chosen: None,
            reports: Vec::new(),
            driver,
            fleet: None,
            bell: -1,
            rows,
            attacher,
            scope,
            family: super::family::Family::default(),
            lifecycle,
            encoder: None,
            maker: Maker::new(clock_now()),
            output,
            buffer: Vec::with_capacity(1 << 16),
            wall: None,
            window: Window::default(),
            numbers: Numbers::default(),
            comms: HashMap::from([(NOBODY, "kernel".to_owned())]),
            ended: HashSet::new(),
            threads: super::threads::Threads::default(),
            descendants: BTreeMap::new(),
            callers: HashSet::new(),
            notices_lost: 0,
            early: Early::default(),
            tally: Tally::default(),
            burden: Burden::default(),
            open: OpenCalls::default(),
            aggregates: aggregate::Tally::default(),
            launches: Launches::default(),
            full_names: false,
            malformed: 0,
            lost,
            lost_in_all: 0,
            lost_since: monotonic_ns(),
            last_second: Instant::now(),
            idle_followed: Instant::now(),
            named: Instant::now(),
            started: Instant::now(),
            wait: Duration::from_millis(1),
            shown: false,
            let_go: LetGo::default(),
            watch: super::intact::Watch::default(),
            snapshots: super::snapshots::SnapshotPlane::new(),
            ranges: None,
            gpu: None,
            budget: None,
        })
    }
}

/// The engine with programs in the kernel.
fn in_kernel(setup: &Setup) -> Result<Box<dyn Engine>> {
    let holds = setup.wait_for_attach || setup.wait_for_new;
    let holder = holds.then(Holder::fork).transpose()?;
    let keep = match setup.wait_for_new {
        true => Keep::New,
        false if Holder::RESUMES_CALLS && privilege::has("CAP_SYS_PTRACE") => Keep::Traced,
        false => Keep::AtLinker,
    };
    let session = Session::load(setup)?;
    session.hold(holder, keep);
    Ok(tape::listening(Box::new(session)))
}

/// What the rows need of the kernel's side.
fn fill_in(setup: &mut Setup, rows: &RunRows) -> Result<()> {
    setup.specs = rows.specs();
    setup.driver = rows.driver();
    setup.driver_left_out = rows.driver_left_out();
    let names = |kind| rows.catalog.rows.iter().any(|row| row.site == kind);
    setup.static_probes = names(SiteKind::StaticProbe) || rows.catalog.rows.iter().any(|row| row.hook.offset.is_some());
    setup.aggregates = rows.catalog.rows.iter().any(|row| row.hook.sums_up());
    setup.kernel = KernelUse {
        functions: names(SiteKind::KernelFunction).then(kernel_ways).transpose()?,
        tracepoints: names(SiteKind::Tracepoint),
    };
    Ok(())
}

/// How functions of the kernel can be hooked here.
fn kernel_ways() -> Result<Ways> {
    Ok(Ways::here(Way::forced()?, &Types::read()))
}

/// Follows the driver's calls, where a row of theirs is traced.
fn driver_plane(engine: &dyn Engine, rows: &RunRows, beside: Beside) -> Result<Option<DriverPlane>> {
    let Some(driver) = rows.driver() else {
        return Ok(None);
    };
    engine.set_driver_plans(&driver, &|row| rows.selects(row))?;
    engine.look_up_uvm();
    let hooks = engine.attach_driver(beside.each_system_call)?;
    DriverPlane::open(engine, driver.dialect, hooks, beside.driver_counted).map(Some)
}
