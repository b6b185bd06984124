//! Loads the kernel programs in the best form that this kernel accepts, and reads and writes their maps.
//!
//! Owns the BPF object. Which functions are attached is [`super::attach`]'s business.

use super::skeleton::{CallsSkel, CallsSkelBuilder, OpenCallsSkel, types};
use crate::wire;
use anyhow::{Context, Result, anyhow, bail};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, MapCore, MapFlags, OpenObject, ProgramMut, UprobeMultiOpts, UprobeOpts};
use std::fmt;
use std::mem::MaybeUninit;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// The ways in which kernels let a program run at function entry and return, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// One program and one link for entry and return (Linux 6.13).
    Session,
    /// One link for all entries, one for all returns (Linux 6.6).
    Multi,
    /// One perf event per function and direction (Linux 5.15); slow to detach.
    PerfLink,
}

impl Tier {
    pub const ALL: [Tier; 3] = [Tier::Session, Tier::Multi, Tier::PerfLink];

    /// The name used in output and by `GPUSCOPE_TIER`.
    pub fn name(self) -> &'static str {
        match self {
            Tier::Session => "uprobe.session",
            Tier::Multi => "uprobe.multi",
            Tier::PerfLink => "perf-link",
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What the kernel side is told before it is loaded.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    pub specs: Vec<wire::Spec>,
    /// Rows that may be added while running.
    pub spare_rows: usize,
    /// Bytes of the event ring: a power of two, at least a page.
    pub ring_bytes: u32,
    pub only_targets: bool,
    pub follow_forks: bool,
    pub wait_for_attach: bool,
    pub uid: Option<u32>,
    pub cgroup: Option<u64>,
    /// Thread names; a trailing `*` selects a prefix.
    pub comms: Vec<String>,
    pub only_errors: bool,
    pub min_ns: u64,
    pub tier: Option<Tier>,
}

/// One place to probe in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    pub offset: u64,
    pub row: u32,
    pub returns: bool,
}

/// The loaded kernel programs.
pub struct Session {
    pub(super) skel: CallsSkel<'static>,
    pub tier: Tier,
    rows: usize,
    control: Control,
}

/// Words shared with the kernel programs.
#[derive(Clone, Copy)]
pub(super) struct Control(NonNull<types::control>);

// SAFETY: only accessed through volatile and atomic words; the memory stays mapped, see `load_tier`
unsafe impl Send for Control {}
// SAFETY: as above
unsafe impl Sync for Control {}

impl Control {
    /// Lets the thread go on that waits for library notice `sequence`.
    pub(super) fn acknowledge(self, sequence: u64) {
        let slot = (sequence % wire::WAITS as u64) as usize;
        // SAFETY: an aligned word of shared memory
        let word = unsafe { AtomicU64::from_ptr(&raw mut (*self.0.as_ptr()).acknowledged[slot]) };
        word.fetch_max(sequence, Ordering::SeqCst);
    }

    /// A sign of life at `now`, CLOCK_MONOTONIC ns: without one, nobody waits for us.
    pub(super) fn alive(self, now: u64) {
        // SAFETY: an aligned word of shared memory
        let word = unsafe { AtomicU64::from_ptr(&raw mut (*self.0.as_ptr()).alive) };
        word.store(now, Ordering::SeqCst);
    }

    fn read(self) -> types::control {
        // SAFETY: plain integers in shared memory; each is a counter of its own
        unsafe { self.0.as_ptr().read_volatile() }
    }
}

/// Links closed at the same time: each waits for all CPUs to have left the probe.
const CLOSERS: usize = 64;

impl Session {
    /// Loads the programs, trying each tier in turn.
    ///
    /// # Errors
    /// When no tier loads; the message names the missing privilege or kernel feature.
    pub fn load(setup: &Setup) -> Result<Session> {
        let mut reasons = Vec::new();
        for tier in Tier::ALL {
            if setup.tier.is_some_and(|wanted| wanted != tier) {
                continue;
            }
            match load_tier(setup, tier) {
                Ok(session) => return Ok(session),
                Err(error) => reasons.push((tier, error)),
            }
        }
        Err(super::privilege::explain(reasons))
    }

    /// Rows that the kernel side can tell apart.
    pub fn row_capacity(&self) -> usize {
        self.rows
    }

    /// Sets what row `row` captures; takes effect at its next call.
    pub fn set_spec(&self, row: u32, spec: &wire::Spec) -> Result<()> {
        let map = &self.skel.maps.specs;
        map.update(&row.to_ne_bytes(), bytes_of(spec), MapFlags::ANY)
            .with_context(|| format!("failed to store the capture rule of row {row}"))
    }

    /// Selects process `tgid` (and, when forks are followed, its children from now on).
    pub fn add_target(&self, tgid: u32) -> Result<()> {
        let map = &self.skel.maps.targets;
        map.update(&tgid.to_ne_bytes(), &1u32.to_ne_bytes(), MapFlags::ANY)
            .with_context(|| format!("failed to select process {tgid}"))
    }

    /// Probes `points` of the file behind `path`, which should be a descriptor's path.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn attach(&self, path: &Path, points: &[Point]) -> Result<Vec<Link>> {
        match self.tier {
            Tier::Session => Ok(vec![attach_multi(
                &self.skel.progs.call_session,
                path,
                points,
                Leg::Both,
            )?]),
            Tier::Multi => self.attach_pair(path, points),
            Tier::PerfLink => self.attach_singly(path, points),
        }
    }

    fn attach_pair(&self, path: &Path, points: &[Point]) -> Result<Vec<Link>> {
        let returning: Vec<Point> = points.iter().copied().filter(|point| point.returns).collect();
        let mut links = Vec::new();
        // returns first: a call must not be opened that nothing will close
        if !returning.is_empty() {
            links.push(attach_multi(
                &self.skel.progs.call_return_multi,
                path,
                &returning,
                Leg::Return,
            )?);
        }
        links.push(attach_multi(
            &self.skel.progs.call_entry_multi,
            path,
            points,
            Leg::Entry,
        )?);
        Ok(links)
    }

    fn attach_singly(&self, path: &Path, points: &[Point]) -> Result<Vec<Link>> {
        let mut links = Vec::new();
        for point in points {
            if point.returns {
                links.push(attach_single(&self.skel.progs.call_return_single, path, point, true)?);
            }
            links.push(attach_single(&self.skel.progs.call_entry_single, path, point, false)?);
        }
        Ok(links)
    }

    /// Probes the dynamic linker's notification hook at `offset` of the file behind `path`.
    pub fn attach_linker(&self, path: &Path, offset: u64) -> Result<Link> {
        let point = Point {
            offset,
            row: 0,
            returns: false,
        };
        match self.tier {
            Tier::PerfLink => attach_single(&self.skel.progs.library_mapped_single, path, &point, false),
            _ => attach_multi(&self.skel.progs.library_mapped_multi, path, &[point], Leg::Entry),
        }
    }

    /// Follows forks, execs and exits. Some kernels refuse this to a process without CAP_SYS_ADMIN.
    pub fn attach_lifecycle(&self) -> Result<Vec<Link>> {
        let programs = [
            (&self.skel.progs.process_forked, "sched_process_fork"),
            (&self.skel.progs.process_executed, "sched_process_exec"),
            (&self.skel.progs.process_exited, "sched_process_exit"),
        ];
        programs
            .into_iter()
            .map(|(program, name)| {
                program
                    .attach_raw_tracepoint(name)
                    .with_context(|| format!("failed to attach to tracepoint {name}"))
            })
            .collect()
    }

    /// A probe without a body, to measure what a hit costs on this machine.
    pub fn attach_empty(&self, path: &Path, points: &[Point], entry_only: bool) -> Result<Link> {
        if entry_only {
            attach_multi(&self.skel.progs.empty_entry, path, points, Leg::Entry)
        } else {
            attach_multi(&self.skel.progs.empty_session, path, points, Leg::Both)
        }
    }
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
    select_programs(&mut open, tier);
    write_options(&mut open, setup)?;
    let mut skel = open
        .load()
        .with_context(|| format!("failed to load the {tier} programs"))?;
    let control = skel.maps.bss_data.as_deref_mut().map(|data| &mut data.control);
    let control = Control(NonNull::from(control.context("the BPF object has no shared memory")?));
    let session = Session {
        skel,
        tier,
        rows,
        control,
    };
    trial_attach(&session)?;
    for (row, spec) in setup.specs.iter().enumerate() {
        session.set_spec(row as u32, spec)?;
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
    Ok(())
}

fn select_programs(open: &mut OpenCallsSkel<'_>, tier: Tier) {
    let session = tier == Tier::Session;
    let multi = tier == Tier::Multi;
    let single = tier == Tier::PerfLink;
    let progs = &mut open.progs;
    progs.call_session.set_autoload(session);
    progs.empty_session.set_autoload(session);
    progs.empty_entry.set_autoload(session);
    progs.call_entry_multi.set_autoload(multi);
    progs.call_return_multi.set_autoload(multi);
    progs.library_mapped_multi.set_autoload(!single);
    progs.call_entry_single.set_autoload(single);
    progs.call_return_single.set_autoload(single);
    progs.library_mapped_single.set_autoload(single);
}

fn write_options(open: &mut OpenCallsSkel<'_>, setup: &Setup) -> Result<()> {
    let data = open
        .maps
        .rodata_data
        .as_deref_mut()
        .context("the BPF object has no options section")?;
    let options = &mut data.options;
    options.min_ns = setup.min_ns;
    options.ring_soft_limit = u64::from(setup.ring_bytes / 4);
    options.only_targets = setup.only_targets.into();
    options.follow_forks = setup.follow_forks.into();
    options.wait_for_attach = setup.wait_for_attach.into();
    options.only_errors = setup.only_errors.into();
    options.by_uid = setup.uid.is_some().into();
    options.uid = setup.uid.unwrap_or(0);
    options.by_cgroup = setup.cgroup.is_some().into();
    options.cgroup = setup.cgroup.unwrap_or(0);
    if setup.comms.len() > wire::COMMS {
        bail!("at most {} --comm names can be selected at once", wire::COMMS);
    }
    options.comms = setup.comms.len() as u32;
    for (slot, comm) in setup.comms.iter().enumerate() {
        let (name, prefix) = comm
            .strip_suffix('*')
            .map_or((comm.as_str(), false), |name| (name, true));
        let kept = name.len().min(wire::COMM - 1);
        for (to, from) in options.comm[slot].iter_mut().zip(&name.as_bytes()[..kept]) {
            *to = *from as _;
        }
        options.comm_length[slot] = (if prefix { kept } else { kept + 1 }) as u8;
    }
    Ok(())
}

/// Some kernels load a program whose kind of link they do not have; this finds out before it matters.
fn trial_attach(session: &Session) -> Result<()> {
    let nowhere = Point {
        offset: 0,
        row: 0,
        returns: true,
    };
    session
        .attach(Path::new("/proc/self/exe"), &[nowhere])
        .map(drop)
        .with_context(|| format!("failed to attach with {}", session.tier))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Leg {
    Entry,
    Return,
    Both,
}

const ANY_PROCESS: i32 = -1;

fn attach_multi(program: &ProgramMut<'_>, path: &Path, points: &[Point], leg: Leg) -> Result<Link> {
    let options = UprobeMultiOpts {
        offsets: points.iter().map(|point| point.offset as usize).collect(),
        cookies: points.iter().map(|point| u64::from(point.row)).collect(),
        retprobe: leg == Leg::Return,
        session: leg == Leg::Both,
        ..Default::default()
    };
    program
        .attach_uprobe_multi_with_opts(ANY_PROCESS, path, "", options)
        .with_context(|| format!("failed to attach {} probes to {}", points.len(), path.display()))
}

fn attach_single(program: &ProgramMut<'_>, path: &Path, point: &Point, retprobe: bool) -> Result<Link> {
    let options = UprobeOpts {
        cookie: u64::from(point.row),
        retprobe,
        ..Default::default()
    };
    program
        .attach_uprobe_with_opts(ANY_PROCESS, path, point.offset as usize, options)
        .with_context(|| format!("failed to attach at offset {:#x} of {}", point.offset, path.display()))
}

/// The bytes of a plain wire structure.
pub(super) fn bytes_of<T: Copy>(value: &T) -> &[u8] {
    // SAFETY: wire structures are `repr(C)` without padding, so every byte is initialised
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

pub(super) fn os_error(error: &anyhow::Error) -> Option<i32> {
    error
        .chain()
        .find_map(|cause| cause.downcast_ref::<libbpf_rs::Error>())
        .and_then(errno_of)
}

fn errno_of(error: &libbpf_rs::Error) -> Option<i32> {
    use libbpf_rs::ErrorKind as Kind;
    match error.kind() {
        Kind::PermissionDenied => Some(libc::EPERM),
        Kind::NotFound => Some(libc::ENOENT),
        Kind::InvalidInput => Some(libc::EINVAL),
        _ => None,
    }
}

/// The counting plane, read once.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    pub totals: Vec<(wire::TotalKey, wire::Total)>,
    pub failures: Vec<(wire::FailureKey, u64)>,
    /// By row.
    pub counters: Vec<wire::RowCounter>,
    /// Library loads that did not wait until their probes were in place.
    pub waits_expired: u64,
    pub notices_lost: u64,
    /// Calls counted without their process, because the table of processes was full.
    pub unattributed: u64,
}

impl Session {
    /// Reads the exact totals.
    ///
    /// # Errors
    /// A map cannot be read.
    pub fn snapshot(&self) -> Result<Snapshot> {
        let maps = &self.skel.maps;
        let control = self.control.read();
        Ok(Snapshot {
            totals: entries(&maps.totals)?,
            failures: entries(&maps.failures)?,
            counters: self.counters()?,
            waits_expired: control.waits_expired,
            notices_lost: control.notices_lost,
            unattributed: control.totals_overflowed,
        })
    }

    /// Takes the totals of processes that have ended out of the kernel's tables.
    ///
    /// # Errors
    /// A map cannot be read.
    pub fn take_ended(&self, ended: &dyn Fn(u32) -> bool) -> Result<Snapshot> {
        let maps = &self.skel.maps;
        let mut taken = Snapshot {
            totals: entries(&maps.totals)?,
            ..Snapshot::default()
        };
        taken.totals.retain(|(key, _): &(wire::TotalKey, _)| ended(key.tgid));
        taken.failures = entries(&maps.failures)?;
        taken
            .failures
            .retain(|(key, _): &(wire::FailureKey, _)| ended(key.tgid));
        for (key, _) in &taken.totals {
            maps.totals
                .delete(bytes_of(key))
                .context("failed to drop the totals of an ended process")?;
        }
        for (key, _) in &taken.failures {
            maps.failures
                .delete(bytes_of(key))
                .context("failed to drop the failures of an ended process")?;
        }
        Ok(taken)
    }

    /// Events that found the ring full, of all rows.
    pub fn lost(&self) -> u64 {
        self.control.read().events_lost
    }

    /// Per row, added over all CPUs.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn counters(&self) -> Result<Vec<wire::RowCounter>> {
        let map = &self.skel.maps.row_counters;
        (0..self.rows as u32)
            .map(|row| {
                let cpus = map
                    .lookup_percpu(&row.to_ne_bytes(), MapFlags::ANY)
                    .context("failed to read the row counters")?;
                Ok(cpus
                    .unwrap_or_default()
                    .iter()
                    .fold(wire::RowCounter::default(), |sum, cpu| sum.plus(cpu)))
            })
            .collect()
    }

    pub(super) fn control(&self) -> Control {
        self.control
    }

    /// A sign of life at `now`, CLOCK_MONOTONIC ns: without one, nobody waits for us.
    pub fn alive(&self, now: u64) {
        self.control.alive(now);
    }
}

/// Takes probes away. Closing a link waits until no CPU runs the probe; those waits are taken together.
pub fn detach(links: Vec<Link>) {
    let mut links = links;
    std::thread::scope(|scope| {
        while !links.is_empty() {
            let share = links.split_off(links.len() - links.len().div_ceil(CLOSERS).min(links.len()));
            scope.spawn(move || drop(share));
        }
    });
}

/// All entries of a hash map. Entries that vanish meanwhile are left out.
fn entries<K: Copy + Default, V: Copy>(map: &dyn MapCore) -> Result<Vec<(K, V)>> {
    let mut found = Vec::new();
    for key in map.keys() {
        let value = map.lookup(&key, MapFlags::ANY).context("failed to read a table")?;
        if let Some(value) = value.filter(|value| value.len() >= size_of::<V>() && key.len() >= size_of::<K>()) {
            // SAFETY: both are plain `repr(C)` integers, read from buffers that are long enough
            found.push(unsafe {
                (
                    key.as_ptr().cast::<K>().read_unaligned(),
                    value.as_ptr().cast::<V>().read_unaligned(),
                )
            });
        }
    }
    Ok(found)
}
