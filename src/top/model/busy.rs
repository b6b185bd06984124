//! How busy devices can have been at most, by what their processes gave them to do.
//!
//! A bound needs all processes of a device: one that is not traced may have kept it busy without our knowing.

use super::device::Device;
use super::process::{Certainty, Process};

/// Sets it where it can be told. `has_rates`: this is not the first look.
pub(super) fn bound(devices: &mut [Device], processes: &[Process], has_rates: bool) {
    for device in devices.iter_mut().filter(|device| has_rates && device.up) {
        let its: Vec<&Process> = processes.iter().filter(|process| may_use(process, device)).collect();
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
