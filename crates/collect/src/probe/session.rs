//! The loaded kernel programs and what they are told while they run.
//!
//! Owns the BPF object. How it is loaded, attached and read is the business of [`super::load`], [`super::links`]
//! and [`super::totals`]; which functions are attached that of [`super::attach`].

use super::Tier;
use super::aggregates::AggregateCounters;
use super::control::Control;
use super::kernel::Ways;
use super::sites::SiteCounters;
use super::skeleton::CallsSkel;
use super::trampoline::missed_by;
use crate::elf::Cost as Place;
use crate::wire::{self, bytes_of};
use anyhow::{Context, Result};
use libbpf_rs::{MapCore, MapFlags};
use std::os::fd::{AsFd, AsRawFd};

/// One place to probe in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    pub offset: u64,
    pub row: u32,
    pub returns: bool,
    /// Number of the static probe at it; 0: a function's entry.
    pub site: u32,
    /// File offset of a counter that is raised while the probe is there; 0: none.
    pub semaphore: u64,
    /// How the kernel runs the instruction there.
    pub place: Place,
}

impl Point {
    /// The entry of a function.
    pub fn entry(offset: u64, row: u32, returns: bool) -> Point {
        Point {
            offset,
            row,
            returns,
            site: 0,
            semaphore: 0,
            place: Place::Emulated,
        }
    }

    /// The same where the kernel runs the instruction in the way of `place`.
    #[must_use]
    pub fn at(self, place: Place) -> Point {
        Point { place, ..self }
    }

    /// What the kernel program is told at it.
    pub(super) fn cookie(&self) -> u64 {
        let place = match self.place {
            Place::Emulated => 0,
            Place::SingleStepped => wire::COOKIE_STEPPED,
            Place::Nop5 => wire::COOKIE_NOP5,
        };
        place | u64::from(self.site) << 32 | u64::from(self.row)
    }
}

/// One function of the kernel, or one tracepoint, to hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelPoint {
    pub row: u32,
    /// Number of where its arguments lie; 0: in the order of its prototype.
    pub site: u32,
    pub returns: bool,
}

impl KernelPoint {
    /// What the kernel program is told at it.
    pub(super) fn cookie(&self) -> u64 {
        u64::from(self.site) << 32 | u64::from(self.row)
    }
}

/// The loaded kernel programs.
pub struct Session {
    pub(super) skel: CallsSkel<'static>,
    pub tier: Tier,
    pub(super) rows: usize,
    pub(super) control: Control,
    pub(super) site_counters: SiteCounters,
    pub(super) aggregate_counters: AggregateCounters,
    /// How functions of the kernel are hooked.
    pub(super) ways: Ways,
    /// Why stacks of threads are not sampled, where that was asked for.
    pub(super) unsampled: Option<String>,
}

impl Session {
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

    /// Says where the arguments of static probe `number` lie.
    pub(crate) fn set_site(&self, number: u32, site: &wire::ProbeSite) -> Result<()> {
        let map = &self.skel.maps.probe_sites;
        map.update(&number.to_ne_bytes(), bytes_of(site), MapFlags::ANY)
            .with_context(|| format!("failed to store the places of static probe {number}"))
    }

    /// Says where the arguments of row of the kernel `number` lie, and which calls are meant.
    pub(crate) fn set_kernel_site(&self, number: u32, site: &wire::KernelSite) -> Result<()> {
        let map = &self.skel.maps.kernel_sites;
        map.update(&number.to_ne_bytes(), bytes_of(site), MapFlags::ANY)
            .with_context(|| format!("failed to store where arguments lie in the kernel ({number})"))
    }

    /// Selects process `tgid` (and, when forks are followed, its children from now on).
    pub fn add_target(&self, tgid: u32) -> Result<()> {
        let map = &self.skel.maps.targets;
        map.update(&tgid.to_ne_bytes(), &1u32.to_ne_bytes(), MapFlags::ANY)
            .with_context(|| format!("failed to select process {tgid}"))
    }

    /// Whether process `tgid` lives and is one of those that are selected.
    pub fn is_target(&self, tgid: u32) -> bool {
        let map = &self.skel.maps.targets;
        matches!(map.lookup(&tgid.to_ne_bytes(), MapFlags::ANY), Ok(Some(_)))
    }

    /// How functions of the kernel are hooked.
    pub(super) fn ways(&self) -> &Ways {
        &self.ways
    }

    /// Calls that none of the programs for many functions has seen, and why.
    pub(super) fn missed_in_kernel(&self) -> Vec<String> {
        let programs = &self.skel.progs;
        let probes = [
            &programs.kernel_entered,
            &programs.kernel_returned,
            &programs.kernel_passed,
        ];
        let probes = probes
            .map(|program| missed_by(program.as_fd().as_raw_fd()))
            .iter()
            .sum();
        let missed: [(u64, &str); 2] = [
            (probes, "an interrupt came while another hook ran on that CPU"),
            (
                self.control.read().desks_missed,
                "too many other hooks were within their work on that CPU",
            ),
        ];
        let missed = missed.into_iter().filter(|(missed, _)| *missed > 0);
        missed
            .map(|(missed, why)| format!("{missed} passes of functions or tracepoints of the kernel: {why}"))
            .collect()
    }

    pub(super) fn control(&self) -> Control {
        self.control
    }

    /// Has calls count from now on, or no longer, in all programs at the same moment. A call counts that is entered and
    /// returns in between.
    pub fn count_calls(&self, on: bool) {
        self.control.count(on);
    }

    /// A sign of life at `now`, CLOCK_MONOTONIC ns: without one, nobody waits for us.
    pub fn alive(&self, now: u64) {
        self.control.alive(now);
    }
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
