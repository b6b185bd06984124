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
use super::work::WorkPlane;
use super::{Scope, Tracer};
use crate::catalog::SiteKind;
use crate::clock::{clock_now, monotonic_ns};
use crate::model::aggregate;
use crate::model::launches::Launches;
use crate::model::open::OpenCalls;
use crate::model::order::Numbers;
use crate::model::summary::Tally;
use crate::model::window::Window;
use crate::output::Output;
use crate::probe::attach::Attacher;
use crate::probe::gate::{Gate, Keep};
use crate::probe::hold::Holder;
use crate::probe::kernel::{Types, Way, Ways};
use crate::probe::ring::Events;
use crate::probe::{KernelUse, Session, Setup, privilege};
use crate::record::Maker;
use crate::refusal;
use crate::rows::RunRows;
use anyhow::Result;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

/// In place of a thread: whoever is current has nothing to do with it.
const NOBODY: u32 = 0;

impl Tracer {
    /// Loads the kernel programs and hooks process life and the dynamic linkers. `output` is opened when they are loaded: where
    /// the kernel refuses them, no file was begun, nor one that was there emptied.
    ///
    /// # Errors
    /// The kernel or our privileges do not allow it.
    pub fn start(
        mut rows: RunRows,
        mut setup: Setup,
        scope: Scope,
        output: impl FnOnce() -> Result<Output>,
    ) -> Result<Tracer> {
        fill_in(&mut setup, &rows)?;
        let holds = setup.wait_for_attach || setup.wait_for_new;
        let holder = holds.then(Holder::fork).transpose()?;
        let keep = match setup.wait_for_new {
            true => Keep::New,
            false if privilege::has("CAP_SYS_PTRACE") => Keep::Traced,
            false => Keep::AtLinker,
        };
        let session = Session::load(&setup)?;
        let output = output()?;
        let (events, gate) = (Events::open(&session)?, Gate::open(&session, holder, keep)?);
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
        let samples = match setup.samples.then(|| SamplePlane::open(&session)) {
            Some(Err(why)) => {
                attacher.gap(format!(
                    "where threads are outside CUDA, or in calls that do not return: {why}"
                ));
                None
            }
            opened => opened.and_then(Result::ok),
        };
        attacher.watch_system_linkers(&session);
        attacher.attach_kernel(&session, &mut rows);
        let lost = vec![0; session.row_capacity()];
        Ok(Tracer {
            gate,
            samples,
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
            encoder: None,
            maker: Maker::new(clock_now()),
            output,
            buffer: Vec::with_capacity(1 << 16),
            wall: None,
            window: Window::default(),
            numbers: Numbers::default(),
            comms: HashMap::from([(NOBODY, "kernel".to_owned())]),
            ended: HashSet::new(),
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
            started: Instant::now(),
            wait: Duration::from_millis(1),
            shown: false,
            let_go: LetGo::default(),
            watch: super::intact::Watch::default(),
            snapshots: super::snapshots::SnapshotPlane::new(),
        })
    }
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
fn driver_plane(session: &Session, rows: &RunRows, setup: &Setup) -> Result<Option<DriverPlane>> {
    let Some(driver) = rows.driver() else {
        return Ok(None);
    };
    session.set_driver_plans(&driver, &|row| rows.selects(row))?;
    session.look_up_uvm();
    let links = session.attach_driver(setup.only_targets)?;
    DriverPlane::open(session, driver.dialect, links, setup.driver_counted).map(Some)
}
