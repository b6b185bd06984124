//! Which calls count: each piece of work once, at the layer where it is whole.

use super::Record;

/// The layer that is the whole truth about work, and the one that counts where that was not traced.
const DRIVER: &str = "driver";
const RUNTIME: &str = "runtime";
/// Calls without one of the driver after which there will be none.
const UNDECIDED_CALLS: u32 = 64;

/// To be asked once for each call, in order.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counting {
    has_driver: bool,
    runtime_calls: u32,
}

impl Counting {
    /// Whether this call does.
    pub(crate) fn counts(&mut self, call: &Record<'_>) -> bool {
        if call.layer == DRIVER {
            self.has_driver = true;
            return true;
        }
        if self.has_driver || call.layer != RUNTIME {
            return false;
        }
        self.runtime_calls = self.runtime_calls.saturating_add(1);
        call.depth == 0 && self.runtime_calls > UNDECIDED_CALLS
    }
}
