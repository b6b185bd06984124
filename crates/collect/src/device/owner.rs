//! Which process here a number in NVML's lists means.
//!
//! Current drivers (seen of 580) number processes as the PID namespace of whoever asks does, and leave out those
//! that it cannot see. Older ones give the numbers of the outermost namespace or 0 to containers. So a number is
//! that of a process here if that one uses the driver; else it may be the number, in a namespace within, of exactly
//! one process that does (`/proc` of an outer namespace is mounted here); else it is not known. From inside a
//! container, numbers of outside can be mapped by nobody: share the PID namespace of the host with gpuscope.

use crate::owner::start_ticks;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Looking through all processes costs some milliseconds.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// Far more than use the driver at one time.
const MOST_KNOWN: usize = 4096;

/// Processes, as a `/proc` shows them.
pub(super) struct Owners {
    proc: PathBuf,
    /// (number here, numbers in the namespaces within) of processes that use the driver; found when first needed.
    nested: Option<Vec<(u32, Vec<u32>)>>,
    looked: Instant,
    /// Processes of these numbers that use the driver, and when they began, in clock ticks: mappings are long.
    known: HashMap<u32, u64>,
}

impl Owners {
    pub(super) fn new(proc: impl Into<PathBuf>) -> Owners {
        Owners {
            proc: proc.into(),
            nested: None,
            looked: Instant::now(),
            known: HashMap::new(),
        }
    }

    /// Processes may have come since.
    pub(super) fn look_again(&mut self) {
        if self.looked.elapsed() > LOOK_EVERY {
            self.nested = None;
        }
        if self.known.len() > MOST_KNOWN {
            self.known.clear();
        }
    }

    /// The number here.
    pub(super) fn of(&mut self, nvml_pid: u32) -> Option<u32> {
        if nvml_pid == 0 {
            return None;
        }
        let began = start_ticks(&self.proc, nvml_pid);
        if began.is_some() && began.as_ref() == self.known.get(&nvml_pid) {
            return Some(nvml_pid);
        }
        if uses_driver(&self.proc, nvml_pid) {
            self.known.extend(began.map(|began| (nvml_pid, began)));
            return Some(nvml_pid);
        }
        if self.nested.is_none() {
            self.looked = Instant::now();
        }
        let nested = self.nested.get_or_insert_with(|| nested(&self.proc));
        let mut fitting = nested.iter().filter(|(_, within)| within.contains(&nvml_pid));
        let (here, _) = fitting.next()?;
        fitting.next().is_none().then_some(*here)
    }
}

/// Whether it is a process that has mapped the driver or its device; one that may not be looked at counts.
fn uses_driver(proc: &Path, pid: u32) -> bool {
    let folder = proc.join(pid.to_string());
    let Ok(status) = std::fs::read_to_string(folder.join("status")) else {
        return false;
    };
    let is_process = words(&status, "Tgid").is_none_or(|pids| pids == [pid]);
    let maps = std::fs::read(folder.join("maps"));
    is_process && maps.map_or(true, |maps| mentions_driver(&maps))
}

fn mentions_driver(maps: &[u8]) -> bool {
    let has = |name: &[u8]| memchr::memmem::find(maps, name).is_some();
    has(b"/libcuda.so") || has(b"/libnvidia-") || has(b"/dev/nvidia") || has(b"/dev/dxg")
}

fn nested(proc: &Path) -> Vec<(u32, Vec<u32>)> {
    let entries = std::fs::read_dir(proc).into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let within = |pid: u32| {
        let status = std::fs::read_to_string(proc.join(pid.to_string()).join("status")).ok()?;
        let within = words(&status, "NSpid")?.split_off(1);
        (!within.is_empty() && uses_driver(proc, pid)).then_some((pid, within))
    };
    pids.filter_map(within).collect()
}

/// The numbers of one field of a status file; at least one.
fn words(status: &str, name: &str) -> Option<Vec<u32>> {
    let value = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let numbers: Vec<u32> = value.split_whitespace().map_while(|word| word.parse().ok()).collect();
    (!numbers.is_empty()).then_some(numbers)
}
