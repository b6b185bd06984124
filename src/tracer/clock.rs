//! The clocks of a trace.

use crate::sink::Clock;

/// CLOCK_MONOTONIC, ns: the clock of all events.
pub fn monotonic_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// CLOCK_BOOTTIME, ns: the clock of the times at which processes start.
pub(super) fn since_boot_ns() -> u64 {
    clock_ns(libc::CLOCK_BOOTTIME)
}

/// Both clocks, read together.
pub fn clock_now() -> Clock {
    Clock {
        start_monotonic_ns: monotonic_ns(),
        start_unix_ns: clock_ns(libc::CLOCK_REALTIME),
    }
}

fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call only fills the structure that it is given
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
