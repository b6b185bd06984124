//! NVML's lists of processes made one, in which each process counts once for each device.
//!
//! NVML has three lists for each device: compute, graphics, and clients of MPS. A process may be in several, each
//! time with all that it holds; a client of MPS is in two, and in that of MPS with 0 bytes for devices that it does
//! not use. In MIG mode the GPU's lists repeat, where the caller may see them, what those of its parts say.

use super::MigDevice;
use std::collections::BTreeMap;

/// What one process holds of one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessMemory {
    /// UUID of the GPU, or of the MIG device.
    pub device: String,
    /// The process as NVML numbers it; 0 where the driver hides it.
    pub nvml_pid: u32,
    /// Its number here, as in `/proc`; `None`: it is not known which it is.
    pub pid: Option<u32>,
    /// `None`: NVML does not tell.
    pub bytes: Option<u64>,
}

/// One line of one list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub pid: u32,
    pub bytes: Option<u64>,
    pub gpu_instance: Option<u32>,
    pub compute_instance: Option<u32>,
}

/// Device and process as NVML numbers it, and the bytes.
pub(super) type Merged = BTreeMap<(String, u32), Option<u64>>;

/// The lists of a GPU with these `parts`, and those of its parts with the part's UUID.
pub(super) fn merged(gpu: &str, parts: &[MigDevice], of_gpu: &[Vec<Line>], of_parts: &[(String, Vec<Line>)]) -> Merged {
    let mut all = Merged::new();
    for list in of_gpu {
        add(
            &mut all,
            one_list(list.iter().map(|line| (place(gpu, parts, line), line))),
        );
    }
    for (uuid, list) in of_parts {
        add(&mut all, one_list(list.iter().map(|line| (uuid.clone(), line))));
    }
    let is_in_part = |pid: u32, all: &Merged| all.keys().any(|(uuid, other)| *other == pid && uuid != gpu);
    let repeated: Vec<_> = all
        .keys()
        .filter(|(uuid, pid)| uuid == gpu && is_in_part(*pid, &all))
        .cloned()
        .collect();
    for key in repeated {
        all.remove(&key);
    }
    all
}

/// Hidden processes have no number by which one could be told from another: within one list they are several.
fn one_list<'a>(lines: impl Iterator<Item = (String, &'a Line)>) -> Merged {
    let mut list = Merged::new();
    for (uuid, line) in lines {
        let bytes = list.entry((uuid, line.pid)).or_insert(None);
        *bytes = match (*bytes, line.bytes) {
            (Some(before), Some(more)) if line.pid == 0 => Some(before.saturating_add(more)),
            (before, more) => before.max(more),
        };
    }
    list
}

fn add(all: &mut Merged, list: Merged) {
    for (key, bytes) in list {
        let known = all.entry(key).or_insert(None);
        *known = (*known).max(bytes);
    }
}

/// The part that a line of the GPU's list names, or else the GPU.
fn place(gpu: &str, parts: &[MigDevice], line: &Line) -> String {
    let fits = |part: &&MigDevice| {
        line.gpu_instance == Some(part.gpu_instance)
            && line
                .compute_instance
                .is_none_or(|instance| instance == part.compute_instance)
    };
    let mut fitting = parts.iter().filter(fits);
    match (fitting.next(), fitting.next()) {
        (Some(part), None) => part.uuid.clone(),
        _ => gpu.to_owned(),
    }
}
