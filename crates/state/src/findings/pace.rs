//! Who sets the pace of launches: the host, or the device that is behind it.
//!
//! A device that is ahead has done everything when the host asks: the wait is short. One that is behind has launches in
//! its queue: the wait is as long as these take, and where the queue is full, launches themselves wait for room in it.

use super::part::PROMPT_NS;
use super::table::{Grow, is_percent};
use crate::catalog::CopyKind;
use crate::record::Record;

/// A stream has room for about 1,021 launches.
const DEEP: u64 = 1_000;
/// Longer launches are none of the usual ones: code is loaded, or somebody else had the processor.
const USUAL_NS: u64 = 50_000;
/// Launches that wait for room take at least so much of the time in which they are made.
const FULL_PERCENT: u64 = 20;
/// A device is behind when a wait takes as long as a tenth of the step's launches: at least, and at most, so many.
const BEHIND_PART: u64 = 10;
const BEHIND_LAUNCHES: std::ops::RangeInclusive<u64> = 8..=512;
/// Launches without a wait among which a device that does not keep up fills its queue many times over.
const UNASKED: u64 = 10 * 1_024;
/// What moves in a copy that is waited for, bytes a nanosecond: PCIe 4.0 x16.
const COPY_BYTES_PER_NS: u64 = 25;

/// What a wait tells of the step before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Verdict {
    /// The device had done it: the host sets the pace.
    Ahead,
    /// It had not: the device does.
    Behind,
    /// Nothing follows: nothing was launched, or it is another stream that was waited for.
    #[default]
    Unproven,
}

/// Streams that the launches of a step went to.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Streams {
    #[default]
    None,
    One(u64),
    /// Several, or one that is not known.
    Any,
}

/// Launches since the last wait. Times in ns.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Step {
    launches: u64,
    /// Making them took so long, without what its host did between them for longer than launches usually take.
    making_ns: u64,
    last: i64,
    streams: Streams,
    /// Of those that find as many before them as a queue has room for: since when, how many, time in them.
    deep_from: i64,
    deep: u64,
    deep_ns: u64,
}

/// Who sets the pace of one process.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pace {
    step: Step,
    /// Launches that cannot have found a full queue, and time in them.
    usual: u64,
    usual_ns: u64,
    /// Launches of steps that the device had done when it was asked, and of those that it had not.
    ahead: u64,
    behind: u64,
}

impl Pace {
    /// A launch.
    pub(crate) fn launch(&mut self, event: &Record<'_>) {
        let ns = event.ns.unwrap_or(0);
        let step = &mut self.step;
        let since = if step.launches == 0 {
            ns
        } else {
            event.at.saturating_sub(step.last).unsigned_abs()
        };
        step.making_ns.grow(since.min(USUAL_NS));
        step.last = event.at;
        step.launches += 1;
        step.streams = match (step.streams, event.stream) {
            (Streams::None, Some(stream)) => Streams::One(stream),
            (Streams::One(known), Some(stream)) if known == stream => step.streams,
            _ => Streams::Any,
        };
        if step.launches > DEEP {
            if step.deep == 0 {
                step.deep_from = event.at;
            }
            step.deep += 1;
            step.deep_ns.grow(ns);
        } else if ns <= USUAL_NS {
            self.usual += 1;
            self.usual_ns.grow(ns);
        }
    }

    /// A wait that took `waited_ns`.
    pub(crate) fn wait(&mut self, event: &Record<'_>, waited_ns: u64) -> Verdict {
        // waits for all streams, for an event, or for the default stream, which all others wait for, name none
        let other = match (self.step.streams, event.stream) {
            (Streams::One(launched), Some(stream)) => stream != 0 && launched != stream,
            _ => false,
        };
        if self.step.launches == 0 || other {
            return Verdict::Unproven;
        }
        let verdict = if self.is_full(event.at) || self.is_long(waited_ns) {
            Verdict::Behind
        } else {
            Verdict::Ahead
        };
        let launches = std::mem::take(&mut self.step).launches;
        match verdict {
            Verdict::Behind => self.behind += launches,
            _ => self.ahead += launches,
        }
        verdict
    }

    /// A copy: it waits if results come back in it.
    pub(crate) fn copy(&mut self, event: &Record<'_>) -> Verdict {
        if !event.blocking || event.failed || event.direction != Some(CopyKind::DtoH) {
            return Verdict::Unproven;
        }
        let moving_ns = event.bytes.unwrap_or(0) / COPY_BYTES_PER_NS;
        self.wait(event, event.ns.unwrap_or(0).saturating_sub(moving_ns))
    }

    /// Whether launches of the step up to `at` waited for room in the queue.
    fn is_full(&self, at: i64) -> bool {
        let step = &self.step;
        let usual_ns = match self.usual {
            0 => 0,
            usual => u128::from(self.usual_ns) * u128::from(step.deep) / u128::from(usual),
        };
        let held_up_ns = step.deep_ns.saturating_sub(u64::try_from(usual_ns).unwrap_or(u64::MAX));
        let deep_for_ns = at.saturating_sub(step.deep_from).unsigned_abs();
        step.deep > 0 && held_up_ns > 0 && is_percent(held_up_ns, deep_for_ns, FULL_PERCENT)
    }

    /// Whether a wait is as long as many launches.
    fn is_long(&self, waited_ns: u64) -> bool {
        let behind = (self.step.launches / BEHIND_PART).clamp(*BEHIND_LAUNCHES.start(), *BEHIND_LAUNCHES.end());
        let these_ns = u128::from(self.step.making_ns) * u128::from(behind) / u128::from(self.step.launches.max(1));
        u128::from(waited_ns) > these_ns + u128::from(PROMPT_NS)
    }

    /// Whether so much was launched since the last wait, without a full queue, that the device must have kept up.
    #[must_use]
    pub(crate) fn keeps_up_unasked(&self, at: i64) -> bool {
        self.step.launches >= UNASKED && !self.is_full(at)
    }

    /// Whether at least half of the launches were done when the host asked, so far as it did, up to `at`.
    #[must_use]
    pub(crate) fn is_hosts(&self, at: i64) -> bool {
        let open = if self.is_full(at) { self.step.launches } else { 0 };
        self.ahead > 0 && self.ahead >= self.behind.saturating_add(open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Kind;

    const US: u64 = 1_000;

    /// Launches of one stream, each as long in its call as is said, and then a wait.
    fn step(pace: &mut Pace, at: &mut i64, launches: &[u64], wait_ns: u64) -> Verdict {
        let row = |at: i64, ns| Record {
            ns: Some(ns),
            stream: Some(1),
            ..Record::new(Kind::Call, at, 7)
        };
        for ns in launches {
            pace.launch(&row(*at, *ns));
            *at = at.saturating_add_unsigned(ns + US);
        }
        let verdict = pace.wait(&row(*at, wait_ns), wait_ns);
        *at = at.saturating_add_unsigned(wait_ns);
        verdict
    }

    #[test]
    fn a_device_that_is_done_when_it_is_asked_is_ahead() {
        let (mut pace, mut at) = (Pace::default(), 0);
        assert_eq!(step(&mut pace, &mut at, &[4 * US; 100], 10 * US), Verdict::Ahead);
        assert!(pace.is_hosts(at));
        assert_eq!(step(&mut pace, &mut at, &[], 10 * US), Verdict::Unproven);
    }

    #[test]
    fn a_wait_as_long_as_many_launches_says_that_the_device_is_behind() {
        let (mut pace, mut at) = (Pace::default(), 0);
        // kernels of 6 µs, one each 5 µs
        assert_eq!(step(&mut pace, &mut at, &[4 * US; 100], 100 * US), Verdict::Behind);
        assert!(!pace.is_hosts(at));
    }

    #[test]
    fn launches_that_wait_for_room_say_so_before_anybody_asks() {
        let (mut pace, mut at) = (Pace::default(), 0);
        assert_eq!(step(&mut pace, &mut at, &[4 * US; 1000], 5 * US), Verdict::Ahead);
        let mut launches = vec![4 * US; 1000];
        launches.extend([19 * US; 1000]);
        // by then everything is done
        assert_eq!(step(&mut pace, &mut at, &launches, 5 * US), Verdict::Behind);
        // few of them wait, but for long
        let mut launches = vec![4 * US; 1000];
        launches.extend((0..1000).map(|number| if number % 500 == 0 { 8_000 * US } else { 4 * US }));
        assert_eq!(step(&mut pace, &mut at, &launches, 5 * US), Verdict::Behind);
    }

    #[test]
    fn a_long_step_of_quick_launches_fills_no_queue() {
        let (mut pace, mut at) = (Pace::default(), 0);
        let launches: Vec<u64> = (0..50_000).map(|number| 3 * US + number % 3 * US).collect();
        assert_eq!(step(&mut pace, &mut at, &launches, 5 * US), Verdict::Ahead);
    }

    #[test]
    fn what_the_host_does_between_launches_makes_no_wait_short() {
        let mut pace = Pace::default();
        let row = |at| Record {
            ns: Some(4 * US),
            ..Record::new(Kind::Call, at, 7)
        };
        for at in [0, 5_000, 5_010_000] {
            pace.launch(&row(at));
        }
        assert_eq!(pace.wait(&row(5_020_000), 500 * US), Verdict::Behind);
    }

    #[test]
    fn a_device_that_is_never_asked_keeps_up_if_its_queue_never_fills() {
        for (deep_us, keeps_up) in [(4, true), (19, false)] {
            let (mut pace, mut at) = (Pace::default(), 0);
            for number in 0..11_000 {
                let ns = if number < 1021 { 4 * US } else { deep_us * US };
                pace.launch(&Record {
                    ns: Some(ns),
                    ..Record::new(Kind::Call, at, 7)
                });
                at = at.saturating_add_unsigned(ns + US);
            }
            assert_eq!(pace.keeps_up_unasked(at), keeps_up);
        }
    }

    #[test]
    fn to_wait_for_another_stream_proves_nothing() {
        let mut pace = Pace::default();
        let row = |at, stream| Record {
            ns: Some(US),
            stream: Some(stream),
            ..Record::new(Kind::Call, at, 7)
        };
        pace.launch(&row(0, 1));
        assert_eq!(pace.wait(&row(5_000, 2), US), Verdict::Unproven);
        assert!(!pace.is_hosts(6_000));
        assert_eq!(pace.wait(&row(6_000, 1), US), Verdict::Ahead);
    }

    #[test]
    fn results_that_come_back_in_a_copy_are_waited_for() {
        let mut pace = Pace::default();
        let launch = Record {
            ns: Some(4 * US),
            ..Record::new(Kind::Call, 0, 7)
        };
        pace.launch(&launch);
        let copy = Record {
            ns: Some(1_100 * US),
            bytes: Some(25_000_000),
            blocking: true,
            direction: Some(CopyKind::DtoH),
            ..Record::new(Kind::Call, 5_000, 7)
        };
        assert_eq!(
            pace.copy(&Record {
                blocking: false,
                ..copy
            }),
            Verdict::Unproven
        );
        assert_eq!(pace.copy(&copy), Verdict::Behind, "100 µs more than the bytes take");
    }
}
