//! What of the time of CUDA calls went to the kernel driver, from its rows.

use super::functions::{Layer, View};
use crate::record::Record;
use serde::Serialize;

/// The kernel driver's share.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DriverShare {
    /// Calls of the kernel driver.
    pub calls: u64,
    pub failed: u64,
    pub total_ns: u64,
    /// Of these, in CUDA calls.
    pub in_calls_ns: u64,
    /// All outermost CUDA calls.
    pub cuda_ns: u64,
}

/// What of the time of CUDA calls went to the kernel driver, from its rows.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DriverTally {
    in_calls_ns: u64,
    cuda_ns: u64,
}

impl DriverTally {
    /// An outermost call of CUDA.
    pub(super) fn cuda(&mut self, event: &Record<'_>, view: View) {
        if view != View::Other {
            self.cuda_ns = self.cuda_ns.saturating_add(event.ns.unwrap_or(0));
        }
    }

    /// A call of the kernel driver.
    pub(super) fn kernel(&mut self, event: &Record<'_>) {
        if event.depth > 0 {
            self.in_calls_ns = self.in_calls_ns.saturating_add(event.ns.unwrap_or(0));
        }
    }

    /// `None`: the kernel driver was not traced.
    pub(super) fn report(&self, layers: &[Layer]) -> Option<DriverShare> {
        let kernel = layers.iter().find(|layer| layer.layer == "kernel")?;
        Some(DriverShare {
            calls: kernel.calls,
            failed: kernel.errors,
            total_ns: kernel.total_ns,
            in_calls_ns: self.in_calls_ns,
            cuda_ns: self.cuda_ns,
        })
    }
}
