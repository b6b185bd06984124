//! How fast memory is taken and given back, between two reports.

use crate::model::memory::{Account, HOST, ProcessReport, Report};
use std::collections::HashMap;

/// A process, told from another one of the same number, and a device of it.
type Key = (u32, u64, i16);

/// Where the counters stood at the report before.
#[derive(Debug, Clone, Default)]
pub struct Pace {
    at: Option<u64>,
    counts: HashMap<Key, (u64, u64)>,
}

/// Allocations and frees per second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Rate {
    pub allocations: f64,
    pub frees: f64,
}

/// The rates of one report.
#[derive(Debug, Clone, Default)]
pub struct Rates {
    /// What they are an average of.
    pub over_seconds: f64,
    rates: HashMap<Key, Rate>,
}

impl Pace {
    /// The rates since the report before, or since watching began.
    pub fn rates(&mut self, report: &Report) -> Rates {
        let since = self.at.unwrap_or(report.started_at);
        let over_seconds = report.at.saturating_sub(since) as f64 / 1e9;
        let mut rates = HashMap::new();
        let mut counts = HashMap::new();
        for (key, account) in accounts(report) {
            let before = self.counts.get(&key).copied().unwrap_or_default();
            let per_second = |now: u64, before: u64| match over_seconds > 0.0 {
                true => now.saturating_sub(before) as f64 / over_seconds,
                false => 0.0,
            };
            let rate = Rate {
                allocations: per_second(account.allocations, before.0),
                frees: per_second(account.frees, before.1),
            };
            rates.insert(key, rate);
            counts.insert(key, (account.allocations, account.frees));
        }
        *self = Pace {
            at: Some(report.at),
            counts,
        };
        Rates { over_seconds, rates }
    }
}

impl Rates {
    /// Averages since watching began.
    pub fn of_all(report: &Report) -> Rates {
        Pace::default().rates(report)
    }

    /// Of one device of a process.
    pub fn of(&self, process: &ProcessReport, device: i16) -> Rate {
        let key = (process.pid, process.first_at, device);
        self.rates.get(&key).copied().unwrap_or_default()
    }
}

fn accounts(report: &Report) -> impl Iterator<Item = (Key, &Account)> {
    report.processes.iter().flat_map(|process| {
        let devices = process.devices.iter().map(|device| (device.device, &device.account));
        let all = devices.chain([(HOST, &process.host)]);
        all.map(|(device, account)| ((process.pid, process.first_at, device), account))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::memory::{DeviceReport, Origin};

    fn report(at: u64, allocations: u64) -> Report {
        let account = Account {
            allocations,
            frees: allocations / 2,
            ..Account::default()
        };
        let process = ProcessReport {
            pid: 7,
            comm: String::new(),
            origin: Origin::Start,
            first_at: 0,
            ended_at: None,
            at,
            devices: vec![DeviceReport {
                account,
                ..DeviceReport::default()
            }],
            host: Account::default(),
            families: Vec::new(),
            sites: Vec::new(),
            map: None,
            pools: Vec::new(),
            tensors: None,
            peaks: Vec::new(),
            freed_by: Vec::new(),
            endings: Vec::new(),
            anomalies: crate::model::memory::Anomalies::default(),
            lost: crate::wire::MemoryLoss::default(),
        };
        Report {
            at,
            processes: vec![process],
            ..Report::default()
        }
    }

    #[test]
    fn the_first_rate_is_since_the_beginning_and_the_next_since_the_report_before() {
        let mut pace = Pace::default();
        let (first, second) = (report(2_000_000_000, 10), report(4_000_000_000, 40));
        let rate = |rates: &Rates, report: &Report| rates.of(&report.processes[0], 0);
        let (allocations, frees) = (5.0, 2.5);
        assert_eq!(rate(&pace.rates(&first), &first), Rate { allocations, frees });
        let (allocations, frees) = (15.0, 7.5);
        assert_eq!(rate(&pace.rates(&second), &second), Rate { allocations, frees });
    }

    #[test]
    fn two_reports_at_the_same_time_have_no_rate() {
        let mut pace = Pace::default();
        let only = report(1_000_000_000, 10);
        pace.rates(&only);
        let rates = pace.rates(&only);
        assert_eq!(
            (rates.over_seconds, rates.of(&only.processes[0], 0)),
            (0.0, Rate::default())
        );
    }
}
