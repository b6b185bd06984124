//! How much of what devices did was seen, and why not more.

use crate::activity::Report as Told;
use crate::activity::shared::{
    ACTIVITY_ABSENT, ACTIVITY_ASKED, ACTIVITY_NONE, ACTIVITY_ON, ACTIVITY_REFUSED, CLOCK_FITTED, STEP_CALLBACKS,
    STEP_COPIES, STEP_GRAPHS, STEP_KERNELS, STEP_LOAD, STEP_MEMSETS, STEP_SUBSCRIBE, STEP_THREAD,
};
use crate::text::quantity::{duration, plural};

/// CUPTI's results.
const NOT_INITIALIZED: u32 = 15;
const MULTIPLE_SUBSCRIBERS: u32 = 39;

/// How much of what a process's devices did was seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    pub pid: u32,
    pub comm: String,
    pub seen: Seen,
    /// Path of its CUPTI; empty: none was found.
    pub library: String,
    /// Path of another one that the process has mapped since; empty: none.
    pub other: String,
    /// Of CUPTI, as people write it; empty: not known.
    pub version: String,
    /// Records for which there was no room.
    pub lost: u64,
    /// Those that CUPTI dropped.
    pub dropped: u64,
    /// Without times, or with impossible ones.
    pub invalid: u64,
    pub malformed: u64,
    /// Of CUPTI's own overhead, records without times that make sense.
    pub untimed_overheads: u64,
    /// Whether it is told of at all.
    pub tells_overheads: bool,
    /// Activities that began before the call whose turn it was: clocks are off, or calls were not seen.
    pub early: u64,
    /// Some came so late that what they tell of had been taken for idle time.
    pub late: bool,
    /// Their times come from a clock that was fitted.
    pub fitted_clock: bool,
    /// Where activities were not recorded all the time: when they were.
    pub windows: Option<Sampled>,
    /// From when on copies were not told of, while all else was, `CLOCK_MONOTONIC` ns.
    pub no_copies_ns: Option<u64>,
    /// When CUPTI was let go while the program went on, `CLOCK_MONOTONIC` ns; later nothing is told of.
    pub given_ns: Option<u64>,
    /// The process ended without handing over its last records.
    pub broken_off: bool,
    /// The process goes on, with CUPTI in it.
    pub goes_on: bool,
    /// A tool of the program's gets CUPTI as soon as it asks.
    pub gives_way: bool,
}

/// Activities were recorded in windows, or until CUPTI was let go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampled {
    pub length_ns: u64,
    /// 0: there is one, which has ended for good.
    pub period_ns: u64,
    pub number: u64,
    /// That CUPTI refused to open.
    pub unopened: u64,
    /// From the begin of the first one to when the process was last looked at.
    pub of_ns: u64,
}

/// How activities were recorded, in words.
#[must_use]
pub fn windows_words(number: u64, length_ns: u64, period_ns: u64) -> String {
    if period_ns == 0 {
        return "until the program asked CUPTI itself".to_owned();
    }
    let (length, period) = (duration(length_ns), duration(period_ns));
    format!("{} of {length}, one each {period}", plural(number, "window"))
}

/// Which part of the time was recorded, in words.
#[must_use]
pub fn part_words(part_ns: u64, of_ns: u64) -> String {
    format!("measured {} of {}", duration(part_ns), duration(of_ns))
}

/// Whether activities were seen, and else why not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Seen {
    #[default]
    Yes,
    /// There is no CUPTI.
    Absent,
    /// Another tool holds it.
    Held,
    /// It is of a later version than the driver.
    TooNew,
    /// One of its functions is missing.
    TooOld,
    /// It has not answered.
    Unanswered,
    /// It has refused with this error.
    Refused { step: &'static str, error: u32 },
}

impl Coverage {
    /// Whether all that devices did is in what is said of them, and nothing else.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.missing() == 0 && !self.late && self.no_copies_ns.is_none()
    }

    /// Records that are known to be missing, and at least one where some must be.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.lost + self.dropped + self.invalid + self.malformed + u64::from(self.broken_off)
    }
}

/// What is missing of a process that ended without handing over the rest.
pub const BROKEN_OFF: &str =
    "the last records, because the process ended, or executed another program, without handing them over";

/// What is not known of a program that went on without gpuscope's CUPTI.
const GIVEN: &str = "asked CUPTI itself, as profilers do, and got it: what the GPU executed from then on is not known";

/// What is not known of a program whose copies were not told of.
const NO_COPIES: &str = "puts copies into graphs by hand, or has XLA, which does: such graphs can fail while CUPTI records copies (error 719, Xid 13), \
     so copies are not told of any more, and a device that does nothing else counts as idle; hint: JAX makes no such graphs with \
     XLA_FLAGS=--xla_gpu_enable_command_buffer=";

/// Why less is known of a program from some moment on (`no_copies_ns`), or nothing (`given_ns`); empty: CUPTI told of all.
pub fn untold_words(no_copies_ns: Option<u64>, given_ns: Option<u64>) -> impl Iterator<Item = &'static str> {
    let endings = [(no_copies_ns, NO_COPIES), (given_ns, GIVEN)];
    endings.into_iter().filter_map(|(since, words)| since.map(|_| words))
}

/// What is said of a program that has mapped another CUPTI, at `other`, than the one that was asked.
#[must_use]
pub fn locked_out_words(other: &str) -> String {
    format!(
        "has loaded another CUPTI ({other}): only the CUPTI that was asked first works in a process, so a profiler that asks this \
         one is refused (error 39)"
    )
}

/// Records that are missing, by why: for which there was no room, that CUPTI dropped, without times, without any sense.
#[must_use]
pub fn missing_words(lost: u64, dropped: u64, invalid: u64, malformed: u64) -> Vec<String> {
    let missing = [
        (lost, "lost, because gpuscope was too slow"),
        (dropped, "dropped by CUPTI"),
        (invalid, "without times that make sense"),
        (malformed, "malformed"),
    ];
    let missing = missing.into_iter().filter(|(number, _)| *number > 0);
    missing
        .map(|(number, why)| format!("{} {why}", plural(number, "record")))
        .collect()
}

impl Coverage {
    /// What the library in a process has written of itself.
    #[must_use]
    pub fn of(told: &Told) -> Coverage {
        let head = &told.head;
        Coverage {
            pid: told.pid,
            comm: told.comm.clone(),
            seen: seen(head.state, head.step, head.error),
            library: told.library.clone(),
            other: told.other.clone(),
            version: version(head.version),
            lost: head.full,
            dropped: head.dropped,
            invalid: head.invalid,
            malformed: told.malformed,
            untimed_overheads: head.untimed,
            tells_overheads: head.overheads != 0,
            early: 0,
            late: false,
            fitted_clock: head.clock == CLOCK_FITTED,
            windows: sampled(told),
            no_copies_ns: Some(head.copies).filter(|until| *until > 0),
            given_ns: Some(head.given).filter(|given| *given > 0),
            broken_off: told.broken_off,
            goes_on: head.state == ACTIVITY_ON && !told.broken_off || head.state == ACTIVITY_ASKED && told.is_connected,
            gives_way: head.guarded != 0,
        }
    }
}

fn sampled(told: &Told) -> Option<Sampled> {
    let head = &told.head;
    let until = match head.given {
        0 => head.flushed,
        given => told.looked_ns.max(given),
    };
    let of_ns = until.saturating_sub(head.began);
    let ended = (head.given > 0).then(|| Sampled {
        length_ns: head.given.saturating_sub(head.began),
        period_ns: 0,
        number: 1,
        unopened: 0,
        of_ns,
    });
    let windows = (head.period > 0).then_some(Sampled {
        length_ns: head.window,
        period_ns: head.period,
        number: head.windows,
        unopened: head.unopened,
        of_ns,
    });
    windows.or(ended)
}

/// `state`, `step`, `error`: as the library has written them.
fn seen(state: u32, step: u32, error: u32) -> Seen {
    match (state, step, error) {
        (ACTIVITY_ABSENT, ..) => Seen::Absent,
        (ACTIVITY_NONE | ACTIVITY_ASKED, ..) => Seen::Unanswered,
        (ACTIVITY_REFUSED, _, MULTIPLE_SUBSCRIBERS) => Seen::Held,
        (ACTIVITY_REFUSED, STEP_LOAD, 0) => Seen::TooOld,
        (ACTIVITY_REFUSED, _, NOT_INITIALIZED) => Seen::TooNew,
        (ACTIVITY_REFUSED, step, error) => Seen::Refused {
            step: step_name(step),
            error,
        },
        _ => Seen::Yes,
    }
}

fn step_name(step: u32) -> &'static str {
    match step {
        STEP_SUBSCRIBE => "cuptiSubscribe",
        STEP_CALLBACKS => "cuptiActivityRegisterCallbacks",
        STEP_KERNELS => "cuptiActivityEnable of kernels",
        STEP_COPIES => "cuptiActivityEnable of copies",
        STEP_MEMSETS => "cuptiActivityEnable of memsets",
        STEP_GRAPHS => "cuptiActivityEnable of graphs",
        STEP_THREAD => "a thread",
        _ => "CUPTI",
    }
}

/// As NVIDIA numbers CUPTI: of CUDA 13 on by the toolkit, before that by itself.
fn version(number: u32) -> String {
    match number {
        0 => String::new(),
        1..100_000 => format!("API {number}"),
        _ => format!("{}.{}.{}", number / 10_000, number / 100 % 100, number % 100),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activity::shared::{ACTIVITY_CUT, ACTIVITY_ENDED, ACTIVITY_GIVEN, ACTIVITY_LEFT};

    fn seen_in(state: u32, error: u32) -> Seen {
        seen(state, STEP_SUBSCRIBE, error)
    }

    #[test]
    fn what_the_library_has_got_to_says_whether_activities_are_seen() {
        for state in [ACTIVITY_ON, ACTIVITY_ENDED, ACTIVITY_CUT, ACTIVITY_LEFT, ACTIVITY_GIVEN] {
            assert_eq!(seen_in(state, 0), Seen::Yes, "{state}");
        }
        for state in [ACTIVITY_NONE, ACTIVITY_ASKED] {
            assert_eq!(seen_in(state, 0), Seen::Unanswered, "{state}");
        }
        assert_eq!(seen_in(ACTIVITY_ABSENT, 0), Seen::Absent);
        assert_eq!(seen_in(ACTIVITY_REFUSED, MULTIPLE_SUBSCRIBERS), Seen::Held);
        assert_eq!(seen_in(ACTIVITY_REFUSED, NOT_INITIALIZED), Seen::TooNew);
    }
}
