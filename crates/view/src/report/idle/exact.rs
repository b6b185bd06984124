//! What totals of a run say of idle time, in the place of what rows add up to.

use super::Idle;
use crate::model::snapshot::executed::Device;
use crate::model::snapshot::{Gpu, Snapshot};
use crate::model::work::Certainty;
use std::collections::BTreeMap;

impl Idle {
    /// With the totals of the summary.
    pub(super) fn with_reported(self, gpu: &Gpu) -> Idle {
        Idle {
            window_ns: gpu.window_ns,
            gaps: gpu.gaps,
            total_ns: gpu.idle_ns,
            longest_ns: gpu.longest_ns,
            inferred: gpu.certainty == Certainty::Inferred.name(),
            likely_ns: gpu.idle_likely_ns,
            ..self
        }
    }
}

impl Idle {
    /// With what a device of it has told.
    pub(super) fn with_told(self, device: &Device) -> Idle {
        Idle {
            window_ns: device.window_ns(),
            gaps: device.idle_gaps,
            total_ns: device.idle_ns,
            longest_ns: device.longest_idle_ns,
            measured: true,
            inferred: false,
            likely_ns: device.idle_ns,
            ..self
        }
    }
}

/// Of the devices of a process that have told all that they did, the one that was idle for longest.
pub(super) fn told(exact: Option<&Snapshot>, pid: u32) -> Option<&Device> {
    let gpu = exact?.gpu.as_ref()?;
    // what was measured in windows is not that of the whole time
    if gpu.windows_of(pid).is_some() {
        return None;
    }
    let devices = gpu.devices.iter();
    let own = devices.filter(|device| device.pid == pid);
    if own.clone().any(|device| !device.is_measured()) {
        return None;
    }
    own.max_by_key(|device| device.idle_ns)
}

/// By process; what a process did before it became another program is part of it.
pub(super) fn worked(exact: &Snapshot) -> BTreeMap<u32, Gpu> {
    let mut all: BTreeMap<u32, Gpu> = BTreeMap::new();
    for work in exact.work.iter().filter(|work| work.gpu.window_ns > 0) {
        let sum = all.entry(work.pid).or_default();
        sum.window_ns = sum.window_ns.saturating_add(work.gpu.window_ns);
        sum.idle_ns = sum.idle_ns.saturating_add(work.gpu.idle_ns);
        sum.idle_likely_ns = sum.idle_likely_ns.saturating_add(work.gpu.idle_likely_ns);
        sum.gaps = sum.gaps.saturating_add(work.gpu.gaps);
        sum.longest_ns = sum.longest_ns.max(work.gpu.longest_ns);
        sum.certainty = sum.certainty.clone().max(work.gpu.certainty.clone());
    }
    all
}
