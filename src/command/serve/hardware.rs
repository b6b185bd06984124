//! Whether there is anything that NVML could answer for: on a machine without a device its silence is no fault.

use crate::device::presence::may_have_device;
use crate::device::telemetry::Telemetry;
use std::path::Path;
use std::time::{Duration, Instant};

/// Devices are plugged in while machines run, but seldom.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// Whether there is anything that NVML could answer for.
#[derive(Default)]
pub(super) struct Hardware {
    /// NVML has answered, or the machine has shown a device: from then on both should.
    known: bool,
    looked: Option<Instant>,
}

impl Hardware {
    /// What NVML said, where it has something to say.
    pub(super) fn of<'a>(&mut self, telemetry: Option<&'a Telemetry>) -> Option<&'a Telemetry> {
        let look = || may_have_device(Path::new("/"));
        telemetry.filter(|telemetry| self.has_device(telemetry.absent.is_none(), look))
    }

    /// Whether it has been found that there is none.
    pub(super) fn is_none(&self) -> bool {
        !self.known && self.looked.is_some()
    }

    fn has_device(&mut self, nvml_answers: bool, look: impl FnOnce() -> bool) -> bool {
        self.known |= nvml_answers;
        if !self.known && self.looked.is_none_or(|looked| looked.elapsed() >= LOOK_EVERY) {
            self.looked = Some(Instant::now());
            self.known = look();
        }
        self.known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_a_fault_only_where_a_device_was_seen() {
        let mut hardware = Hardware::default();
        assert!(!hardware.is_none(), "nobody has looked");
        assert!(!hardware.has_device(false, || false));
        assert!(hardware.is_none());
        let mut plugged = Hardware::default();
        assert!(plugged.has_device(false, || true) && !plugged.is_none());
        assert!(plugged.has_device(false, || false), "it was there");
    }

    #[test]
    fn who_has_answered_once_should_answer() {
        let mut hardware = Hardware::default();
        assert!(hardware.has_device(true, || false));
        assert!(hardware.has_device(false, || false), "it is gone from every bus");
    }
}
