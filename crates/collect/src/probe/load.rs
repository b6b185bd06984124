//! Loads the kernel programs in the best form that this kernel accepts.

use super::control::{Control, SharedSites, SharedSums};
use super::kernel::{Way, Ways};
use super::setup::{KernelUse, Setup, fill_options, fill_site_options};
use super::skeleton::{CallsSkelBuilder, OpenCallsSkel};
use super::trampoline::TRIAL;
use super::{Session, Tier, memory_limit};
use crate::engine::{Engine, Point};
use anyhow::{Context, Result, anyhow};
use libbpf_rs::OpenObject;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::path::Path;
use std::ptr::NonNull;

/// Groups of calls that are summed up, and texts that they are grouped by.
const MOST_GROUPS: u32 = 65536;
/// A thread that never stays on its CPU for long: 500 samples a second, of 1.3 kB at most. The reader sleeps for 50 ms.
const SAMPLE_RING: u32 = 1 << 20;
/// Eight contexts made within one step of the tracer.
const DRIVER_RING: u32 = 2 << 20;

impl Session {
    /// Loads the programs, trying each tier in turn.
    ///
    /// # Errors
    /// When no tier loads; the message names the missing privilege or kernel feature.
    pub fn load(setup: &Setup) -> Result<Session> {
        let refused = match Session::load_all(setup) {
            Err(error) if setup.samples => error,
            loaded => return loaded,
        };
        let without = Setup {
            samples: false,
            ..setup.clone()
        };
        let mut session = Session::load_all(&without)?;
        session.unsampled = Some(format!("its programs do not load ({:#})", refused.root_cause()));
        Ok(session)
    }

    fn load_all(setup: &Setup) -> Result<Session> {
        let refused = match load_best(setup) {
            Err(error) if setup.kernel.uses(Way::Fentry) => error,
            loaded => return loaded,
        };
        let mut without = setup.clone();
        if let Some(ways) = &mut without.kernel.functions {
            ways.fentry = Err(format!("its programs do not load ({:#})", refused.root_cause()));
        }
        load_best(&without)
    }
}

fn load_best(setup: &Setup) -> Result<Session> {
    let mut reasons = Vec::new();
    for tier in Tier::ALL {
        if setup.tier.is_some_and(|wanted| wanted != tier) {
            continue;
        }
        match load_tier(setup, tier) {
            Ok(session) => return Ok(session),
            // no way of attaching needs less
            Err(error) if error.is::<memory_limit::TooLittle>() => return Err(error),
            Err(error) => reasons.push((tier, error)),
        }
    }
    Err(super::privilege::explain(reasons))
}

fn load_tier(setup: &Setup, tier: Tier) -> Result<Session> {
    if tier == Tier::PerfLink {
        super::limits::raise_descriptors();
    }
    // the skeleton borrows its object; both live as long as the process
    let storage: &'static mut MaybeUninit<OpenObject> = Box::leak(Box::new(MaybeUninit::uninit()));
    let mut open = CallsSkelBuilder::default()
        .open(storage)
        .context("failed to open the BPF object")?;
    let rows = setup.specs.len() + setup.spare_rows;
    size_maps(&mut open, setup, rows)?;
    select_programs(&mut open, tier, setup.static_probes);
    select_kernel_programs(&mut open, &setup.kernel)?;
    select_samples(&mut open, setup.samples)?;
    write_options(&mut open, setup)?;
    super::driver::prepare(&mut open, setup);
    memory_limit::check(open.open_object())?;
    let mut skel = open
        .load()
        .with_context(|| format!("failed to load the {tier} programs"))?;
    let shared = skel.maps.bss_data.as_deref_mut();
    let shared = shared.context("the BPF object has no shared memory")?;
    let control = Control(NonNull::from(&mut shared.control));
    let site_counters = SharedSites(NonNull::from(&mut shared.site_counters));
    let aggregate_counters = SharedSums(NonNull::from(&mut shared.aggregate_counters));
    let session = Session {
        skel,
        tier,
        rows,
        control,
        site_counters,
        aggregate_counters,
        ways: setup.kernel.functions.clone().unwrap_or_else(Ways::none),
        unsampled: None,
        holding: Cell::default(),
    };
    trial_attach(&session)?;
    let engine: &dyn Engine = &session;
    engine.count_calls(!setup.paused);
    for (row, spec) in setup.specs.iter().enumerate() {
        engine.set_spec(row as u32, spec)?;
    }
    Ok(session)
}

fn size_maps(open: &mut OpenCallsSkel<'_>, setup: &Setup, rows: usize) -> Result<()> {
    let rows = u32::try_from(rows.max(1)).map_err(|_| anyhow!("too many rows"))?;
    open.maps
        .specs
        .set_max_entries(rows)
        .context("failed to size the row table")?;
    open.maps
        .row_counters
        .set_max_entries(rows)
        .context("failed to size the row counters")?;
    open.maps
        .events
        .set_max_entries(setup.ring_bytes)
        .context("failed to size the event ring")?;
    open.maps
        .memory
        .set_max_entries(setup.memory_ring_bytes.max(4096))
        .context("failed to size the memory ring")?;
    open.maps
        .driver
        .set_max_entries(if setup.driver.is_some() && !setup.driver_counted {
            DRIVER_RING
        } else {
            4096
        })
        .context("failed to size the ring of the driver's calls")?;
    open.maps
        .work
        .set_max_entries(setup.work_ring_bytes.max(4096))
        .context("failed to size the ring of work")?;
    let groups = if setup.aggregates { MOST_GROUPS } else { 1 };
    open.maps
        .aggregates
        .set_max_entries(groups)
        .context("failed to size the table of sums")?;
    open.maps
        .aggregate_texts
        .set_max_entries(groups)
        .context("failed to size the table of texts")?;
    if !setup.wait_for_new {
        open.maps
            .known_files
            .set_max_entries(1)
            .context("failed to size the table of known files")?;
        open.maps
            .fresh_files
            .set_max_entries(1)
            .context("failed to size the table of new files")?;
    }
    if !setup.fleet {
        open.maps
            .places
            .set_max_entries(1)
            .context("failed to size the table of places")?;
    }
    Ok(())
}

fn select_programs(open: &mut OpenCallsSkel<'_>, tier: Tier, static_probes: bool) {
    let session = tier == Tier::Session;
    let multi = tier == Tier::Multi;
    let single = tier == Tier::PerfLink;
    let progs = &mut open.progs;
    progs.call_session.set_autoload(session);
    progs.empty_session.set_autoload(session);
    progs.empty_entry.set_autoload(session);
    progs.call_entry_multi.set_autoload(multi || session && static_probes);
    progs.call_return_multi.set_autoload(multi);
    progs.library_mapped_multi.set_autoload(!single);
    progs.call_entry_single.set_autoload(single);
    progs.call_return_single.set_autoload(single);
    progs.library_mapped_single.set_autoload(single);
}

/// Programs that run in interrupts may look only into tables that are allocated beforehand, before Linux 6.1.
fn select_samples(open: &mut OpenCallsSkel<'_>, wanted: bool) -> Result<()> {
    open.progs.thread_switched.set_autoload(wanted);
    open.progs.thread_ticked.set_autoload(wanted);
    if wanted {
        let allocated = open.maps.pythons.set_map_flags(0);
        allocated.context("failed to set up the table of interpreters")?;
        let sized = open.maps.samples.set_max_entries(SAMPLE_RING);
        sized.context("failed to size the ring of samples")?;
    }
    Ok(())
}

/// Where nothing in the kernel is hooked, its programs and tables take no memory.
fn select_kernel_programs(open: &mut OpenCallsSkel<'_>, used: &KernelUse) -> Result<()> {
    let progs = &mut open.progs;
    progs.kernel_entered.set_autoload(used.uses(Way::Kprobe));
    progs.kernel_returned.set_autoload(used.uses(Way::Kprobe));
    progs.kernel_passed.set_autoload(used.tracepoints);
    for program in [&mut progs.trampoline_entered, &mut progs.trampoline_returned] {
        program.set_autoload(used.uses(Way::Fentry));
        program
            .set_attach_target(0, Some(TRIAL.to_owned()))
            .context("failed to name a function of the kernel")?;
    }
    if *used == KernelUse::default() {
        open.maps
            .kernel_sites
            .set_max_entries(1)
            .context("failed to size the kernel's places")?;
    }
    if used.functions.is_none() {
        open.maps
            .kernel_calls
            .set_max_entries(1)
            .context("failed to size the kernel's calls")?;
    }
    Ok(())
}

fn write_options(open: &mut OpenCallsSkel<'_>, setup: &Setup) -> Result<()> {
    let data = open
        .maps
        .rodata_data
        .as_deref_mut()
        .context("the BPF object has no options section")?;
    fill_options(&mut data.options, setup)?;
    fill_site_options(&mut data.site_options, setup);
    Ok(())
}

/// Some kernels load a program whose kind of link they do not have; this finds out before it matters.
fn trial_attach(session: &Session) -> Result<()> {
    let nowhere = Point::entry(0, 0, true);
    session
        .attach(Path::new("/proc/self/exe"), &[nowhere])
        .map(drop)
        .with_context(|| format!("failed to attach with {}", session.tier))
}
