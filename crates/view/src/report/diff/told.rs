//! What devices have told that they did, of all of them together.

use super::super::{Report, sum};
use crate::model::activity::Why;
use crate::model::snapshot::executed::Device;

/// Idle time of one cause, of all devices; `None`: causes are not known.
pub(super) fn caused(report: &Report, why: Why) -> Option<u64> {
    let mut causes = devices(report)?
        .iter()
        .flat_map(|device| &device.idle_causes)
        .peekable();
    causes.peek()?;
    let its = causes.filter(|one| one.cause == why.name());
    Some(sum(its.map(|cause| cause.idle_ns)))
}

/// Of all devices, as CUPTI has told it; `None`: it has not.
pub(super) fn executed(report: &Report, of: fn(&Device) -> u64) -> Option<u64> {
    devices(report).map(|devices| sum(devices.iter().map(of)))
}

/// Sums of windows depend on how many there were, those without copies on when these were left: they compare with nothing.
fn devices(report: &Report) -> Option<&[Device]> {
    let told = report
        .totals
        .gpu
        .as_ref()
        .filter(|gpu| !gpu.is_sampled() && !gpu.lacks_copies())?;
    Some(&told.devices)
        .filter(|devices| !devices.is_empty())
        .map(Vec::as_slice)
}
