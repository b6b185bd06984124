//! What the kernel programs are told of a trace: whose calls, how large the rings are, which way of attaching.
//!
//! Owns the sizes. Which functions are hooked is said by the rows.

use super::place::place_of_running;
use crate::cli::{Options, Stacks, Whose};
use crate::probe::{EnginePlace, Setup, Tier};
use crate::refusal::Usage;
use crate::tracer::Scope;
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Rows that globs and functions unknown to the catalogue may add.
pub(crate) const SPARE_ROWS: usize = 4096;
/// Unless the user says how large.
pub(crate) const CALL_RING: u64 = 8 << 20;
/// A second of 100,000 allocations, and as many frees.
const MEMORY_RING: u32 = 16 << 20;
/// A ring that nothing is written to: a page.
pub(super) const NO_RING: u32 = 4096;
/// Copies at a million a second leave room for the time that the reader may sleep.
const WORK_RING: u32 = 8 << 20;
/// Largest ring, 1 GiB.
const LARGEST_RING: u64 = 1 << 30;

pub(super) fn call_setup(options: &Options, scope: &Scope) -> Result<Setup> {
    let ring = options.ring_size.unwrap_or(CALL_RING).max(4096).next_power_of_two();
    if ring > LARGEST_RING {
        bail!(Usage(
            "--ring-size is too large\nhint: at most 1GiB; --filter and -q make fewer events".to_owned()
        ));
    }
    Ok(Setup {
        ring_bytes: ring as u32,
        thread_ring_bytes: options.ring_size.map(|_| ring as u32),
        only_errors: options.which.errors,
        min_ns: options.which.min_duration.map_or(0, |time| time.as_nanos() as u64),
        samples: options.stacks != Some(Stacks::None),
        ..setup(&options.which.whose, scope)?
    })
}

/// What runs already is attached to file by file; whoever starts a command has all in place before its first call.
fn is_about_running(scope: &Scope) -> bool {
    match scope {
        Scope::All => true,
        Scope::Processes(pids) => !pids.is_empty(),
    }
}

/// Of a trace of every process without events, with rings of so many bytes for memory and for work.
///
/// # Errors
/// `GPUSCOPE_TIER` is wrong.
fn quiet_setup(ring_bytes: u32) -> Result<Setup> {
    Ok(Setup {
        spare_rows: SPARE_ROWS,
        ring_bytes: NO_RING,
        memory_ring_bytes: ring_bytes,
        work_ring_bytes: ring_bytes,
        driver_counted: true,
        wait_for_new: true,
        tier: forced_tier()?,
        ..Setup::default()
    })
}

/// The same for sums by owner, of the processes of `scope`.
///
/// # Errors
/// `GPUSCOPE_TIER` is wrong, or processes cannot be traced from inside.
pub(crate) fn fleet_setup(ring_bytes: u32, scope: &Scope) -> Result<Setup> {
    let processes = matches!(scope, Scope::Processes(_));
    let place = match processes {
        true => place_of_running(scope)?.is,
        false => EnginePlace::Kernel,
    };
    Ok(Setup {
        fleet: true,
        only_targets: processes,
        follow_forks: processes,
        paused: processes,
        wait_for_new: !processes,
        driver_counted: place == EnginePlace::Kernel,
        place,
        ..quiet_setup(ring_bytes)?
    })
}

/// What every trace has in common.
pub(super) fn setup(whose: &Whose, scope: &Scope) -> Result<Setup> {
    let processes = matches!(scope, Scope::Processes(_));
    Ok(Setup {
        spare_rows: SPARE_ROWS,
        memory_ring_bytes: MEMORY_RING,
        work_ring_bytes: WORK_RING,
        only_targets: processes,
        follow_forks: processes,
        paused: is_about_running(scope),
        wait_for_attach: processes && !whose.no_hold,
        wait_for_new: !processes && !whose.no_hold,
        uid: whose.uid,
        cgroup: whose.cgroup.as_deref().map(cgroup_id).transpose()?,
        comms: whose.comm.clone(),
        tier: forced_tier()?,
        ..Setup::default()
    })
}

/// `GPUSCOPE_TIER` is for tests and for measuring one way of attaching against another.
fn forced_tier() -> Result<Option<Tier>> {
    let Some(name) = std::env::var_os("GPUSCOPE_TIER") else {
        return Ok(None);
    };
    let tier = Tier::ALL.into_iter().find(|tier| name.to_str() == Some(tier.name()));
    tier.map(Some)
        .with_context(|| format!("GPUSCOPE_TIER={name:?} is none of uprobe.session, uprobe.multi, perf-link"))
}

/// A cgroup's id is the inode of its directory.
fn cgroup_id(path: &Path) -> Result<u64> {
    let full = if path.starts_with("/sys/fs/cgroup") {
        path.to_owned()
    } else {
        Path::new("/sys/fs/cgroup").join(path.strip_prefix("/").unwrap_or(path))
    };
    let file = File::open(&full).with_context(|| format!("failed to find the cgroup {}", full.display()))?;
    if !is_cgroup_v2(&file) {
        bail!(
            "{} is no cgroup (v2) directory\nhint: /proc/PID/cgroup names that of a process, after '0::'; mount | grep cgroup2",
            full.display()
        );
    }
    Ok(file.metadata()?.ino())
}

fn is_cgroup_v2(file: &File) -> bool {
    // SAFETY: the call only fills the structure that it is given
    unsafe {
        let mut found = std::mem::zeroed::<libc::statfs>();
        libc::fstatfs(file.as_raw_fd(), &raw mut found) == 0 && found.f_type == libc::CGROUP2_SUPER_MAGIC
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_is_no_cgroup_is_refused() {
        let said = |path: &str| cgroup_id(Path::new(path)).unwrap_err().to_string();
        assert!(said("/sys/fs/cgroup/../../kernel").contains("is no cgroup (v2) directory\nhint: "));
        assert!(said("no/such/group").contains("failed to find the cgroup /sys/fs/cgroup/no/such/group"));
    }
}
