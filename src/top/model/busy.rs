//! How busy devices can have been at most, by what their processes gave them to do.
//!
//! A bound needs all processes of a device: one that is not traced may have kept it busy without our knowing.

use super::device::Device;
use super::process::{Certainty, Process};

/// Sets it where it can be told. `has_rates`: this is not the first look. `sees_all`: a process that is not known does not use
/// a device; without, the driver may not name those of other namespaces.
pub(super) fn bound(devices: &mut [Device], processes: &[Process], has_rates: bool, sees_all: bool) {
    // NVML names no device of it, as of processes in another namespace: it may be any
    let may_work = |process: &Process| !process.traced || process.busy_at_most_seconds.is_some();
    let somewhere = |process: &Process| !process.ended && process.gpus.is_empty() && may_work(process);
    if processes.iter().any(somewhere) {
        return;
    }
    for device in devices.iter_mut().filter(|device| has_rates && device.up) {
        let its: Vec<&Process> = processes.iter().filter(|process| may_use(process, device)).collect();
        if its.is_empty() && !sees_all {
            continue;
        }
        let shares: Option<Vec<f64>> = its.iter().map(|process| share(process)).collect();
        device.busy_at_most = shares.map(|shares| shares.iter().fold(0.0, |sum, share| sum + share).clamp(0.0, 1.0));
        device.busy_is_inferred = its.iter().any(|process| process.idle_certainty == Certainty::Inferred);
    }
}

/// One that calls and holds nothing that is known may use any device.
fn may_use(process: &Process, device: &Device) -> bool {
    process.gpus.contains(&device.gpu) || (process.gpus.is_empty() && process.calls.is_some())
}

/// Of the time, with any device; `None`: it is not known.
fn share(process: &Process) -> Option<f64> {
    match (process.ended, process.calls, process.busy_at_most_seconds) {
        (true, ..) => Some(0.0),
        (false, None, _) => None,
        // one that has not been given anything has no such time
        (false, Some(_), None) => Some(0.0),
        (false, Some(_), Some(busy)) => busy.per_second,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::model::count::Count;

    fn busy(gpus: &[&str], share: f64) -> Process {
        Process {
            gpus: gpus.iter().map(|gpu| (*gpu).to_owned()).collect(),
            calls: Some(Count::default()),
            busy_at_most_seconds: Some(Count {
                per_second: Some(share),
                ..Count::default()
            }),
            ..Process::default()
        }
    }

    fn bounds(processes: &[Process]) -> Vec<Option<f64>> {
        bounds_of(processes, true)
    }

    fn bounds_of(processes: &[Process], sees_all: bool) -> Vec<Option<f64>> {
        let device = |gpu: &str| Device {
            gpu: gpu.to_owned(),
            up: true,
            ..Device::default()
        };
        let mut devices = ["0", "1"].map(device);
        bound(&mut devices, processes, true, sees_all);
        devices.iter().map(|device| device.busy_at_most).collect()
    }

    #[test]
    fn a_device_that_nobody_is_seen_on_is_free_only_where_everybody_is_seen() {
        assert_eq!(bounds_of(&[busy(&["0"], 0.5)], false), [Some(0.5), None]);
        let untraced = Process {
            traced: false,
            calls: None,
            busy_at_most_seconds: None,
            ..busy(&[], 0.0)
        };
        assert_eq!(bounds(&[busy(&["0"], 0.5), untraced]), [None, None], "it may use any");
    }

    #[test]
    fn a_process_whose_device_nobody_names_may_keep_any_busy() {
        assert_eq!(bounds(&[busy(&["0"], 0.5)]), [Some(0.5), Some(0.0)]);
        assert_eq!(bounds(&[busy(&["0"], 0.5), busy(&[], 0.2)]), [None, None]);
        let over = Process {
            ended: true,
            ..busy(&[], 0.2)
        };
        assert_eq!(bounds(&[busy(&["0"], 0.5), over]), [Some(0.5), Some(0.0)]);
    }
}
