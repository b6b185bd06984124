//! How long others wait for gpuscope at most, which depends on how quick a machine is.

use crate::text::parse::duration_in;
use std::time::Duration;

const LONGEST_HOLD: Duration = Duration::from_secs(2);

/// How long a thread stands still at a probe at most. `GPUSCOPE_LONGEST_HOLD` is for machines, as emulated ones, that are so slow.
pub(crate) fn longest_hold() -> Duration {
    duration_in("GPUSCOPE_LONGEST_HOLD").unwrap_or(LONGEST_HOLD)
}
