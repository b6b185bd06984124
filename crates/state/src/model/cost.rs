//! What tracing cost the traced programs and itself: counted hits, each at the price of its kind of place.
//!
//! Owns the sums, not how a price is measured (`probe::calibrate`).

use crate::elf::Cost as Place;

/// Hits of probes at one kind of place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hits {
    pub place: Place,
    /// Stopped at entry and return; else at entry only.
    pub returns: bool,
    pub count: u64,
    /// What one takes of the program's time, measured on this machine after the run.
    pub ns: f64,
}

/// Calls of which a record was sent beside counting them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Records {
    pub count: u64,
    /// On top of the hit, measured as that is.
    pub ns: f64,
}

/// Threads that stood still.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Standstill {
    pub times: u64,
    pub ns: u64,
}

/// What tracing cost the traced programs and itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cost {
    /// Only kinds that occurred.
    pub hits: Vec<Hits>,
    pub records: Records,
    /// While probes were put into a library that they had just loaded.
    pub standstill: Standstill,
    /// Until there was room for what happened to memory.
    pub waiting: Standstill,
    /// Of all hits, those of the process that has most of them: 0 to 1.
    pub busiest_share: f64,
    /// Whether several threads of that process called, so that what they lost may have been lost at the same time.
    pub several_threads: bool,
    /// Calls of hooks in the kernel, whose price is not in any of these figures.
    pub unpriced: u64,
    pub cpu_seconds: f64,
    pub rss_bytes: u64,
}

impl Cost {
    /// Nanoseconds that the traced programs have spent on being traced.
    #[must_use]
    pub fn in_program_ns(&self) -> u64 {
        self.in_calls_ns() + self.standstill.ns + self.waiting.ns
    }

    /// The same without what threads stood still.
    #[must_use]
    pub fn in_calls_ns(&self) -> u64 {
        let hits: f64 = self.hits.iter().map(|hits| hits.count as f64 * hits.ns).sum();
        (hits + self.records.count as f64 * self.records.ns) as u64
    }

    /// How many hits there were of those that are seen to return, or of the others.
    #[must_use]
    pub fn count(&self, returns: bool) -> u64 {
        self.of(returns).map(|hits| hits.count).sum()
    }

    /// The mean price of these, ns.
    #[must_use]
    pub fn mean_ns(&self, returns: bool) -> f64 {
        let ns: f64 = self.of(returns).map(|hits| hits.count as f64 * hits.ns).sum();
        let count = self.count(returns);
        if count == 0 { 0.0 } else { ns / count as f64 }
    }

    /// By how much the busiest process was slowed, as a share of its time without tracing: of `seconds` with it.
    #[must_use]
    pub fn slowdown(&self, seconds: f64) -> f64 {
        let lost = self.in_program_ns() as f64 / 1e9 * self.busiest_share;
        let without = (seconds - lost).max(seconds / 1e3);
        if without > 0.0 { lost / without } else { 0.0 }
    }

    fn of(&self, returns: bool) -> impl Iterator<Item = &Hits> {
        self.hits.iter().filter(move |hits| hits.returns == returns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost() -> Cost {
        let hits = |place, returns, count, ns| Hits {
            place,
            returns,
            count,
            ns,
        };
        Cost {
            hits: vec![
                hits(Place::Emulated, true, 1_000, 1_500.0),
                hits(Place::SingleStepped, true, 100, 11_000.0),
                hits(Place::Emulated, false, 10, 700.0),
            ],
            busiest_share: 1.0,
            ..Cost::default()
        }
    }

    #[test]
    fn each_kind_of_place_is_counted_at_its_own_price() {
        assert_eq!(cost().in_program_ns(), 1_500_000 + 1_100_000 + 7_000);
        assert_eq!((cost().count(true), cost().count(false)), (1_100, 10));
        assert_eq!(cost().mean_ns(true), 2_600_000.0 / 1_100.0);
        assert_eq!(Cost::default().mean_ns(true), 0.0);
    }

    #[test]
    fn records_and_standing_still_come_on_top() {
        let cost = Cost {
            records: Records { count: 10, ns: 200.0 },
            standstill: Standstill { times: 2, ns: 5_000 },
            waiting: Standstill { times: 1, ns: 300 },
            ..cost()
        };
        assert_eq!(cost.in_program_ns(), 2_607_000 + 2_000 + 5_000 + 300);
        assert_eq!(cost.in_calls_ns(), 2_607_000 + 2_000);
    }

    #[test]
    fn a_slowdown_is_what_came_on_top_of_the_time_without_tracing() {
        let cost = Cost {
            standstill: Standstill {
                times: 1,
                ns: 100_000_000,
            },
            busiest_share: 0.5,
            ..Cost::default()
        };
        // 50 ms of 550 ms were the busiest process's
        assert!((cost.slowdown(0.55) - 0.1).abs() < 1e-9);
        assert_eq!(cost.slowdown(0.0), 0.0);
    }
}
