//! What is not asked in each round, because the answer costs milliseconds of the CPU, and what was answered last.
//!
//! On an H200 with driver 580 a whole round without these costs 0.5 ms; the energy alone costs 4 ms.

use super::gpu::NvLink;
use super::work::ProcessWork;
use std::time::{Duration, Instant, SystemTime};

/// Totals are asked at least as often, or in each round.
const SELDOM: Duration = Duration::from_secs(10);

/// One GPU's.
pub(super) struct Kept {
    /// Energy, replays of PCIe and work of processes: 6 ms; bytes of NVLink: 14 ms with 18 links.
    pub(super) totals: Due,
    /// Errors of NVLink: 21 ms with 18 links.
    pub(super) links: Due,
    /// What never changes while the driver is loaded: 6 ms.
    pub(super) limits: Due,
    /// When each was last asked.
    pub(super) totals_at: Option<SystemTime>,
    pub(super) links_at: Option<SystemTime>,
    pub(super) energy_mj: Option<u64>,
    pub(super) replays: Option<u64>,
    pub(super) work: Vec<ProcessWork>,
    pub(super) nvlink: NvLink,
    pub(super) highest_mhz: Vec<Option<u32>>,
}

impl Kept {
    /// For rounds at this interval: of two that are close to each other, one asks for totals.
    pub(super) fn for_rounds(every: Duration) -> Kept {
        Kept {
            totals: Due::every((every * 3 / 2).min(SELDOM)),
            links: Due::every(Duration::from_secs(60)),
            limits: Due::every(Duration::from_secs(300)),
            totals_at: None,
            links_at: None,
            energy_mj: None,
            replays: None,
            work: Vec::new(),
            nvlink: NvLink::default(),
            highest_mhz: Vec::new(),
        }
    }
}

/// When to ask next.
pub(super) struct Due {
    every: Duration,
    last: Option<Instant>,
}

impl Due {
    pub(super) fn every(every: Duration) -> Due {
        Due { every, last: None }
    }

    /// Whether the time has come; then it begins anew.
    pub(super) fn now(&mut self, now: Instant) -> bool {
        let due = self
            .last
            .is_none_or(|last| now.saturating_duration_since(last) >= self.every);
        if due {
            self.last = Some(now);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_question_is_due_at_once_and_the_next_after_its_time() {
        let start = Instant::now();
        let mut due = Due::every(Duration::from_secs(10));
        let asked: Vec<u64> = (0..25)
            .filter(|second| due.now(start + Duration::from_secs(*second)))
            .collect();
        assert_eq!(asked, [0, 10, 20]);
    }
}
