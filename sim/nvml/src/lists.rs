//! Lists of the processes that use a device.

use gpusim_common::shared::{folder, processes};

use crate::mig::{self, Handle};
use crate::{INSUFFICIENT_SIZE, INVALID_ARGUMENT, SUCCESS};

const NOT_AVAILABLE: u64 = u64::MAX;

/// `nvmlProcessInfo_t` since version 2.
#[repr(C)]
pub struct Process {
    pid: u32,
    used: u64,
    gpu_instance: u32,
    compute_instance: u32,
}

/// One line: process, bytes, and the part of the device.
type Line = (u32, u64, Option<usize>);

fn written(list: &str, device: usize) -> Vec<Line> {
    let text = folder().and_then(|folder| std::fs::read_to_string(folder.join("lists")).ok());
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, place, pid, used] = words[..] else {
            return None;
        };
        let (number, part) = place.split_once('/').unwrap_or((place, ""));
        let used = if used == "-" { NOT_AVAILABLE } else { used.parse().ok()? };
        let wanted = name == list && number.parse() == Ok(device);
        wanted.then_some((pid.parse().ok()?, used, part.parse().ok()))
    };
    text.unwrap_or_default().lines().filter_map(line).collect()
}

fn of_device(list: &str, device: usize) -> Vec<Line> {
    let first = mig::parts(device).filter(|parts| *parts > 0).map(|_| 0);
    let mut lines = written(list, device);
    if list == "compute" {
        lines.extend(processes(device).into_iter().map(|(pid, used, _)| (pid, used, first)));
    }
    lines
}

/// A device's list has the lines of all its parts.
pub unsafe fn fill(list: &str, handle: Handle, count: *mut u32, place: *mut Process) -> u32 {
    if count.is_null() {
        return INVALID_ARGUMENT;
    }
    let mut found = of_device(list, handle.device);
    found.retain(|(_, _, part)| handle.part.is_none() || *part == handle.part);
    // SAFETY: the caller gives the room at `place` in `count`.
    unsafe {
        let room = count.read() as usize;
        count.write(found.len() as u32);
        if found.is_empty() {
            return SUCCESS;
        }
        if room < found.len() || place.is_null() {
            return INSUFFICIENT_SIZE;
        }
        for (i, (pid, used, part)) in found.into_iter().enumerate() {
            place.add(i).write(Process {
                pid,
                used,
                gpu_instance: part.map_or(u32::MAX, mig::gpu_instance),
                compute_instance: part.map_or(u32::MAX, |_| 0),
            });
        }
    }
    SUCCESS
}
