//! Calls by decoded name: count, errors, time. Totals stay when a process ends.

use std::collections::HashMap;

use crate::driver::Ioctl;

/// Sums of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallTotals {
    pub calls: u64,
    /// Calls that failed, by return value or NV_STATUS.
    pub errors: u64,
    /// Nanoseconds from enter to exit.
    pub time_ns: u64,
}

impl CallTotals {
    pub(super) fn count(&mut self, failed: bool, duration_ns: u64) {
        self.calls += 1;
        self.errors += u64::from(failed);
        self.time_ns = self.time_ns.saturating_add(duration_ns);
    }
}

/// Totals by name.
#[derive(Debug, Default)]
pub(super) struct Calls(HashMap<String, CallTotals>);

/// Names that are kept apart: a program can make up numbers without end. What comes later is counted under one name.
const MOST_NAMES: usize = 4096;
const REST: &str = "other ioctls";

impl Calls {
    pub(super) fn count(&mut self, ioctl: &Ioctl, duration_ns: u64) {
        let known = self.0.contains_key(&ioctl.name);
        let name = if known || self.0.len() < MOST_NAMES {
            ioctl.name.as_str()
        } else {
            REST
        };
        if let Some(totals) = self.0.get_mut(name) {
            return totals.count(ioctl.failed(), duration_ns);
        }
        self.0
            .entry(name.to_owned())
            .or_default()
            .count(ioctl.failed(), duration_ns);
    }

    /// By time, longest first, then by name.
    pub(super) fn rows(&self) -> Vec<(String, CallTotals)> {
        let mut rows: Vec<_> = self.0.iter().map(|(name, totals)| (name.clone(), *totals)).collect();
        rows.sort_by(|a, b| b.1.time_ns.cmp(&a.1.time_ns).then_with(|| a.0.cmp(&b.0)));
        rows
    }
}
