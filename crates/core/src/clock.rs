//! The clocks of a trace. Knows nobody.

use std::sync::OnceLock;
use std::time::Duration;

/// Where the clock of events stands in the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    /// CLOCK_MONOTONIC at the start of the trace, ns.
    pub start_monotonic_ns: u64,
    /// The same moment, ns since 1970.
    pub start_unix_ns: u64,
}

impl Clock {
    /// ns since the start of the trace, of CLOCK_MONOTONIC ns; what began before is negative.
    #[must_use]
    pub fn since(&self, at: u64) -> i64 {
        at.wrapping_sub(self.start_monotonic_ns) as i64
    }

    /// CLOCK_MONOTONIC ns of so many ns since the start of the trace.
    #[must_use]
    pub fn at(&self, since: i64) -> u64 {
        self.start_monotonic_ns.wrapping_add_signed(since)
    }

    /// When `at`, CLOCK_MONOTONIC ns, was, in ns since 1970.
    #[must_use]
    pub fn unix_ns(&self, at: u64) -> i128 {
        i128::from(self.start_unix_ns) + i128::from(at) - i128::from(self.start_monotonic_ns)
    }
}

/// CPU time of this thread: on a busy machine others have their turn in between.
#[must_use]
pub fn thread_cpu() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call only fills the structure that it is given
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The time of day for moments of the clock of events: that is set while we run, and goes on while the machine sleeps.
#[derive(Debug, Clone)]
pub struct WallClock {
    clock: Clock,
    read: fn() -> Clock,
    /// By how much the time of day has gone its own way so far.
    set_ns: i128,
}

/// Both clocks are never read at the same moment.
const UNEVEN_NS: u128 = 1_000_000;
/// What is worth a word.
const SET_NS: u128 = 1_000_000_000;

impl WallClock {
    #[must_use]
    pub fn new(clock: Clock) -> WallClock {
        WallClock::read_by(clock, clock_now)
    }

    /// As [`WallClock::new`]; `read` tells what both clocks are now.
    #[must_use]
    pub fn read_by(clock: Clock, read: fn() -> Clock) -> WallClock {
        WallClock { clock, read, set_ns: 0 }
    }

    /// Where the clock of events stands now.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Looks at both clocks again. To be called once a second.
    pub fn refresh(&mut self) {
        let now = (self.read)();
        let off = i128::from(now.start_unix_ns) - self.clock.unix_ns(now.start_monotonic_ns);
        if off.unsigned_abs() >= UNEVEN_NS {
            self.clock = now;
            self.set_ns += off;
        }
    }

    /// By how much the time of day differs from what would be counted from the start, in words, if that matters.
    #[must_use]
    pub fn words(&self) -> Option<String> {
        let way = if self.set_ns < 0 { "behind" } else { "ahead of" };
        let by = self.set_ns.unsigned_abs();
        (by >= SET_NS).then(|| {
            format!(
                "the time of day is {:.1} s {way} what it was when this began, plus the time since (it was set, or the machine \
                 slept): times of day that are counted from the start are off by that",
                by as f64 / 1e9
            )
        })
    }
}

/// CLOCK_MONOTONIC as the kernel itself has it, ns: the clock of all events.
pub fn monotonic_ns() -> u64 {
    static AHEAD: OnceLock<i64> = OnceLock::new();
    let ahead = AHEAD.get_or_init(|| ahead_of("self"));
    clock_ns(libc::CLOCK_MONOTONIC).saturating_add_signed(ahead.saturating_neg())
}

/// By how much CLOCK_MONOTONIC of process `pid`, or of `self`, is ahead of the kernel's own, ns.
#[must_use]
pub fn ahead_of(pid: &str) -> i64 {
    let offsets = std::fs::read_to_string(format!("/proc/{pid}/timens_offsets")).unwrap_or_default();
    ahead_in(&offsets).unwrap_or(0)
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
pub fn since_boot_ns() -> u64 {
    clock_ns(libc::CLOCK_BOOTTIME)
}

/// Both clocks, read together: of a few tries that in which the least time passed.
pub fn clock_now() -> Clock {
    let tries = std::iter::repeat_with(|| (monotonic_ns(), clock_ns(libc::CLOCK_REALTIME), monotonic_ns()));
    let (before, unix, after) = tries
        .take(3)
        .min_by_key(|(before, _, after)| after - before)
        .unwrap_or_default();
    Clock {
        start_monotonic_ns: before + (after - before) / 2,
        start_unix_ns: unix,
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

    const BEGUN: Clock = Clock {
        start_monotonic_ns: 100_000_000_000,
        start_unix_ns: 1_700_000_000_000_000_000,
    };

    fn later(seconds: u64, set_ns: i64) -> Clock {
        Clock {
            start_monotonic_ns: BEGUN.start_monotonic_ns + seconds * 1_000_000_000,
            start_unix_ns: (BEGUN.start_unix_ns + seconds * 1_000_000_000).saturating_add_signed(set_ns),
        }
    }

    #[test]
    fn moments_before_and_after_the_start_have_a_time_of_day() {
        assert_eq!(BEGUN.unix_ns(100_000_000_007), 1_700_000_000_000_000_007);
        assert_eq!(BEGUN.unix_ns(0), 1_699_999_900_000_000_000);
    }

    #[test]
    fn a_time_of_day_that_is_set_is_followed_and_said() {
        for (hour, way) in [(3_600_000_000_000_i64, "ahead of"), (-3_600_000_000_000, "behind")] {
            let read = if hour > 0 {
                || later(10, 3_600_000_000_000)
            } else {
                || later(10, -3_600_000_000_000)
            };
            let mut wall = WallClock::read_by(BEGUN, read);
            assert_eq!(wall.clock(), BEGUN);
            wall.refresh();
            let at = BEGUN.start_monotonic_ns + 11_000_000_000;
            assert_eq!(wall.clock().unix_ns(at), BEGUN.unix_ns(at) + i128::from(hour));
            let said = wall.words().unwrap();
            assert!(said.contains(&format!("is 3600.0 s {way} what")), "{said}");
            wall.refresh();
            assert_eq!(wall.words(), Some(said), "it was set once");
        }
    }

    #[test]
    fn clocks_that_are_read_unevenly_move_nothing() {
        let mut wall = WallClock::read_by(BEGUN, || later(10, 900_000));
        wall.refresh();
        assert_eq!((wall.clock(), wall.words()), (BEGUN, None));
    }

    #[test]
    fn a_clock_that_is_slewed_is_followed_without_a_word() {
        let mut wall = WallClock::read_by(BEGUN, || later(10, -5_000_000));
        wall.refresh();
        assert_eq!((wall.clock(), wall.words()), (later(10, -5_000_000), None));
    }

    #[test]
    fn both_clocks_run_alike() {
        let (one, other) = (clock_now(), clock_now());
        let off = i128::from(other.start_unix_ns) - one.unix_ns(other.start_monotonic_ns);
        assert!(
            other.start_monotonic_ns >= one.start_monotonic_ns && off.unsigned_abs() < SET_NS,
            "{off}"
        );
    }

    #[test]
    fn a_time_namespace_says_by_how_much_its_clock_differs() {
        let text = "monotonic      -100000  500000000\nboottime             7         0\n";
        assert_eq!(ahead_in(text), Some(-99_999_500_000_000));
        assert_eq!(ahead_in("monotonic 0 0\n"), Some(0));
        assert_eq!((ahead_in(""), ahead_in("monotonic x 0")), (None, None));
        assert_eq!(ahead_in("monotonic 9223372036854775807 0"), None);
    }
}
