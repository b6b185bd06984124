//! How much was launched, copied, called and waited for, over time.

use super::bins::{Bins, Merge};
use super::functions::View;
use super::kernels::{fuller, index, seen};
use crate::catalog::{Class, CopyKind};
use crate::record::Record;
use serde::Serialize;

/// Directions of copies, and that which is not known.
pub(crate) const DIRECTIONS: [&str; 6] = ["HtoD", "DtoH", "DtoD", "PtoP", "HtoH", "unknown"];

/// Steps of equal length over the trace.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Rates {
    /// Length of a step.
    pub(crate) step_ns: u64,
    pub steps: Vec<Step>,
}

/// What happened in one step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// Its middle.
    pub(crate) at_ns: i64,
    /// Calls of libraries with rows, of all layers together.
    pub calls: u64,
    pub failed: u64,
    pub launches: u64,
    /// By direction, in the order of HtoD, DtoH, DtoD, PtoP, HtoH, unknown. A copy's bytes are spread over its call.
    pub copied_bytes: [u64; DIRECTIONS.len()],
    /// In calls that wait, all threads together.
    pub(crate) wait_ns: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    calls: u64,
    failed: u64,
    launches: [u64; 2],
    copied: [[u64; DIRECTIONS.len()]; 2],
    wait_ns: [u64; 2],
}

impl Merge for Sums {
    fn merge(&mut self, later: &Sums) {
        self.calls = self.calls.saturating_add(later.calls);
        self.failed += later.failed;
        for view in 0..2 {
            self.launches[view] = self.launches[view].saturating_add(later.launches[view]);
            self.wait_ns[view] = self.wait_ns[view].saturating_add(later.wait_ns[view]);
            for (sum, more) in self.copied[view].iter_mut().zip(later.copied[view]) {
                *sum = sum.saturating_add(more);
            }
        }
    }
}

/// How much was launched, copied, called and waited for, over time.
#[derive(Debug, Clone, Default)]
pub(super) struct RateTally {
    steps: Bins<Sums>,
}

impl RateTally {
    pub(super) fn take(&mut self, event: &Record<'_>, view: View) {
        let step = self.steps.at(event.at);
        step.calls = step.calls.saturating_add(event.count);
        step.failed += u64::from(event.failed);
        let Some(index) = index(view) else { return };
        match event.class {
            Class::Launch if !event.failed => {
                step.launches[index] = step.launches[index].saturating_add(event.count);
            }
            Class::Copy if !event.failed => self.copy(event, index),
            Class::Sync => self.steps.spread(event.at, event.end(), |step, ns| {
                step.wait_ns[index] = step.wait_ns[index].saturating_add(ns);
            }),
            _ => {}
        }
    }

    /// The trace goes on until then at least, if it has begun.
    pub(super) fn reach(&mut self, at: i64) {
        if self.steps.iter().next().is_some() {
            self.steps.at(at);
        }
    }

    fn copy(&mut self, event: &Record<'_>, index: usize) {
        let (bytes, ns) = (event.bytes.unwrap_or(0), event.ns.unwrap_or(0));
        let direction = direction(event.direction);
        if ns < self.steps.width() {
            let sum = &mut self.steps.at(event.at).copied[index][direction];
            *sum = sum.saturating_add(bytes);
            return;
        }
        self.steps.spread(event.at, event.end(), |step, part| {
            let share = (u128::from(bytes) * u128::from(part) / u128::from(ns)) as u64;
            let sum = &mut step.copied[index][direction];
            *sum = sum.saturating_add(share);
        });
    }

    /// `launches`, `copies`, `waits`: how many each view has.
    pub(super) fn report(&self, launches: &[u64; 2], copies: &[u64; 2], waits: &[u64; 2]) -> Rates {
        let steps = self.steps.iter().map(|(at_ns, sums)| Step {
            at_ns,
            calls: sums.calls,
            failed: sums.failed,
            launches: sums.launches[fuller(launches)],
            copied_bytes: sums.copied[seen(copies)],
            wait_ns: sums.wait_ns[fuller(waits)],
        });
        Rates {
            step_ns: self.steps.width(),
            steps: steps.collect(),
        }
    }
}

fn direction(kind: Option<CopyKind>) -> usize {
    match kind {
        Some(CopyKind::HtoD) => 0,
        Some(CopyKind::DtoH) => 1,
        Some(CopyKind::DtoD) => 2,
        Some(CopyKind::PtoP) => 3,
        Some(CopyKind::HtoH) => 4,
        None => 5,
    }
}
