//! When NVML is asked, and when it is opened anew.

use super::answer::Trouble;
use std::time::{Duration, Instant};

const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// How often things are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// From one round of questions to the next.
    pub every: Duration,
    /// From one attempt to open an absent NVML to the next.
    pub retry: Duration,
}

impl Pace {
    /// Rounds at this interval; an absent NVML is tried each half minute.
    #[must_use]
    pub(crate) fn every(every: Duration) -> Pace {
        Pace {
            every,
            retry: crate::device::access::RETRY_EVERY,
        }
    }

    /// How long to rest after a round: no more than half of the time is spent with questions.
    pub(super) fn rest(&self, took: Duration) -> Duration {
        self.every.saturating_sub(took).max(took.min(self.every))
    }
}

/// Opens NVML anew ever more rarely while that does not help: a lost GPU stays lost, the others are to be asked.
#[derive(Debug)]
pub(super) struct Reopening {
    wait: Duration,
    opened: Instant,
}

impl Reopening {
    pub(super) fn new(now: Instant) -> Reopening {
        Reopening {
            wait: FIRST_WAIT,
            opened: now,
        }
    }

    /// Whether to open anew after a round that ended like this.
    pub(super) fn is_due(&mut self, trouble: Trouble, now: Instant) -> bool {
        let waited = now.saturating_duration_since(self.opened) >= self.wait;
        let due = trouble == Trouble::Closed || (trouble == Trouble::Reopen && waited);
        if due {
            self.opened = now;
            self.wait = (self.wait * 2).min(LONGEST_WAIT);
        } else if trouble == Trouble::None && waited {
            self.wait = FIRST_WAIT;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_half_of_the_time_is_spent_with_questions() {
        let pace = Pace::every(Duration::from_millis(1000));
        let rest = |took| pace.rest(Duration::from_millis(took)).as_millis();
        assert_eq!(
            [0, 100, 500, 900, 1000, 60_000].map(rest),
            [1000, 900, 500, 900, 1000, 1000]
        );
    }

    #[test]
    fn nvml_is_opened_anew_at_once_when_closed_and_ever_more_rarely_for_a_gpu_that_stays_lost() {
        let start = Instant::now();
        let mut reopening = Reopening::new(start);
        let mut lost_at = |second| reopening.is_due(Trouble::Reopen, start + Duration::from_secs(second));
        let opened: Vec<u64> = (0..40).filter(|second| lost_at(*second)).collect();
        assert_eq!(opened, [1, 3, 7, 15, 31]);
        let mut at = |trouble, second| reopening.is_due(trouble, start + Duration::from_secs(second));
        assert!(at(Trouble::Closed, 41));
        assert!(!at(Trouble::None, 1000));
        assert!(!at(Trouble::Reopen, 41), "clocks may be odd");
        assert!(at(Trouble::Reopen, 1001), "all was well in between");
    }
}
