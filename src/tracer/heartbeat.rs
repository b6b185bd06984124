//! A sign of life that other threads can look at: when the tracer last had its turn.

use crate::clock::monotonic_ns;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// When it last beat.
#[derive(Debug)]
pub struct Heartbeat(AtomicU64);

impl Default for Heartbeat {
    fn default() -> Heartbeat {
        Heartbeat(AtomicU64::new(monotonic_ns()))
    }
}

impl Heartbeat {
    /// Shows that we live.
    pub(super) fn beat(&self) {
        self.0.store(monotonic_ns(), Ordering::Relaxed);
    }

    /// How long ago the last one was. A tracer has its turn several times a second; one that is seconds behind waits for
    /// something that does not come.
    #[must_use]
    pub fn age(&self) -> Duration {
        Duration::from_nanos(monotonic_ns().saturating_sub(self.0.load(Ordering::Relaxed)))
    }
}
