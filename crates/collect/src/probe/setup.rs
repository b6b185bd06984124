//! What the programs are told before they run, in the kernel or inside of processes: whose calls, which, and with what room.

use super::Tier;
use super::kernel::{Way, Ways};
use super::skeleton::types;
use crate::driver::DriverRows;
use crate::wire;
use anyhow::{Result, bail};

/// What the kernel side is told before it is loaded.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    pub specs: Vec<wire::Spec>,
    /// Rows that may be added while running.
    pub spare_rows: usize,
    /// Bytes of the event ring: a power of two, at least a page.
    pub ring_bytes: u32,
    /// The same of the ring of memory calls.
    pub memory_ring_bytes: u32,
    /// The same of the ring of work.
    pub work_ring_bytes: u32,
    /// From inside, the same of the ring of each of a process's first threads, if somebody says how large.
    pub thread_ring_bytes: Option<u32>,
    pub only_targets: bool,
    /// Where calls are taken from.
    pub place: EnginePlace,
    /// Calls count once [`Engine::count_calls`](crate::engine::Engine::count_calls) says so, and not before.
    pub paused: bool,
    pub follow_forks: bool,
    /// Threads wait whenever they have mapped something.
    pub wait_for_attach: bool,
    /// They wait if that was not looked at before.
    pub wait_for_new: bool,
    pub uid: Option<u32>,
    pub cgroup: Option<u64>,
    /// Thread names; a trailing `*` selects a prefix.
    pub comms: Vec<String>,
    pub only_errors: bool,
    pub min_ns: u64,
    pub tier: Option<Tier>,
    /// Static probes may be attached.
    pub static_probes: bool,
    /// Rows may sum up calls.
    pub aggregates: bool,
    pub kernel: KernelUse,
    pub sites: Sites,
    /// Rows of the kernel driver's calls, where these are followed.
    pub driver: Option<DriverRows>,
    /// Of those, the ones that are not traced.
    pub driver_left_out: Vec<u32>,
    /// These calls are counted, and there are no records of them.
    pub driver_counted: bool,
    /// Threads that call for the first time say where they run, and submissions that have not returned are counted.
    pub fleet: bool,
    /// Stacks of threads that call are sampled, where this kernel lets us.
    pub samples: bool,
}

/// Which engine takes calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EnginePlace {
    /// Programs in the kernel.
    #[default]
    Kernel,
    /// Agents inside of the processes.
    Inside,
}

/// What of the kernel is hooked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelUse {
    /// How functions can be hooked; `None`: none is.
    pub functions: Option<Ways>,
    pub tracepoints: bool,
}

/// Which stacks are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sites {
    /// Of all threads together; what comes beyond it is counted.
    pub stacks_per_second: u32,
    /// Python frames, too, where `set_python` has said how.
    pub python: bool,
}

impl Default for Sites {
    fn default() -> Sites {
        Sites {
            stacks_per_second: 10_000,
            python: true,
        }
    }
}

impl KernelUse {
    pub(super) fn uses(&self, way: Way) -> bool {
        self.functions.as_ref().is_some_and(|ways| match way {
            Way::Fentry => ways.fentry.is_ok(),
            Way::Kprobe => ways.kprobe.is_ok(),
        })
    }
}

pub(super) fn fill_site_options(options: &mut types::site_options, setup: &Setup) {
    options.stacks_per_second = setup.sites.stacks_per_second;
    options.python = setup.sites.python.into();
}

pub(super) fn fill_options(options: &mut types::options, setup: &Setup) -> Result<()> {
    options.min_ns = setup.min_ns;
    options.ring_soft_limit = u64::from(setup.ring_bytes / 4);
    options.memory_soft_limit = u64::from(setup.memory_ring_bytes / 8);
    options.work_soft_limit = u64::from(setup.work_ring_bytes / 4);
    options.only_targets = setup.only_targets.into();
    options.follow_forks = setup.follow_forks.into();
    options.wait_for_attach = setup.wait_for_attach.into();
    options.wait_for_new = setup.wait_for_new.into();
    options.own = std::process::id();
    options.only_errors = setup.only_errors.into();
    options.driver_counted = setup.driver_counted.into();
    options.fleet = setup.fleet.into();
    options.samples = setup.samples.into();
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
