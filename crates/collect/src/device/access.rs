//! NVML for as long as the program runs: opened when first asked for, tried again now and then while absent.

use super::{Absent, Devices};
use std::time::{Duration, Instant};

/// A driver is rarely installed while one watches, and trying loads libraries.
pub(super) const RETRY_EVERY: Duration = Duration::from_secs(30);

/// Devices, or why there are none yet.
pub struct Access {
    state: Option<(Instant, Result<Devices, Absent>)>,
    retry: Duration,
}

impl Default for Access {
    fn default() -> Access {
        Access::retrying(RETRY_EVERY)
    }
}

impl Access {
    /// Nothing is opened yet.
    pub fn new() -> Access {
        Access::default()
    }

    /// Nothing is opened yet; an absent NVML is tried again at this interval.
    pub(super) fn retrying(retry: Duration) -> Access {
        Access { state: None, retry }
    }

    /// Closes NVML: it is opened when it is next asked for.
    pub(super) fn close(&mut self) {
        self.state = None;
    }

    /// The devices; where NVML was absent, tries again after half a minute.
    ///
    /// # Errors
    /// When NVML cannot be used.
    pub fn devices(&mut self, now: Instant) -> Result<&Devices, &Absent> {
        self.devices_by(now, Devices::open)
    }

    pub(super) fn devices_by(
        &mut self,
        now: Instant,
        open: impl FnOnce() -> Result<Devices, Absent>,
    ) -> Result<&Devices, &Absent> {
        let stale = |(tried, state): (Instant, Result<Devices, Absent>)| {
            let keep = state.is_ok() || now.saturating_duration_since(tried) < self.retry;
            keep.then_some((tried, state))
        };
        self.state = self.state.take().and_then(stale);
        self.state.get_or_insert_with(|| (now, open())).1.as_ref()
    }
}
