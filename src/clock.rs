//! The clocks of a trace. Knows nobody.

use std::sync::OnceLock;

/// Where the clock of events stands in the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    /// CLOCK_MONOTONIC at the start of the trace, ns.
    pub start_monotonic_ns: u64,
    /// The same moment, ns since 1970.
    pub start_unix_ns: u64,
}

/// CLOCK_MONOTONIC as the kernel itself has it, ns: the clock of all events.
pub fn monotonic_ns() -> u64 {
    static AHEAD: OnceLock<i64> = OnceLock::new();
    let ahead = AHEAD.get_or_init(|| {
        let offsets = std::fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
        ahead_in(&offsets).unwrap_or(0)
    });
    clock_ns(libc::CLOCK_MONOTONIC).saturating_add_signed(ahead.saturating_neg())
}

/// By how much that of our time namespace is ahead of the kernel's, from `timens_offsets`; `None`: there are no such
/// namespaces.
fn ahead_in(offsets: &str) -> Option<i64> {
    let line = offsets.lines().find_map(|line| line.strip_prefix("monotonic"))?;
    let mut numbers = line.split_ascii_whitespace().map(str::parse::<i64>);
    let (seconds, ns) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    seconds.checked_mul(1_000_000_000)?.checked_add(ns)
}

/// CLOCK_BOOTTIME, ns: the clock of the times at which processes start.
pub(crate) fn since_boot_ns() -> u64 {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_namespace_says_by_how_much_its_clock_differs() {
        let text = "monotonic      -100000  500000000\nboottime             7         0\n";
        assert_eq!(ahead_in(text), Some(-99_999_500_000_000));
        assert_eq!(ahead_in("monotonic 0 0\n"), Some(0));
        assert_eq!((ahead_in(""), ahead_in("monotonic x 0")), (None, None));
        assert_eq!(ahead_in("monotonic 9223372036854775807 0"), None);
    }
}
