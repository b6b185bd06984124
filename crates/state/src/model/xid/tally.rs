//! Counts of reports by device, code and process.

use super::Report;
use crate::driver::xid::{Instance, Reporter, Xid};
use std::collections::BTreeMap;

/// Kinds of reports that are kept apart; a process makes one of each code at most, but there can be many.
const MOST: usize = 1024;

/// Reports of one code, of one device, that name one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults {
    /// The last of them.
    pub last: Report,
    pub count: u64,
    /// CLOCK_MONOTONIC ns.
    pub first_at: u64,
    /// Of those that came first at the same time: which was told first.
    place: usize,
}

type Key = (
    bool,
    String,
    Option<(u32, Option<u32>)>,
    u32,
    Option<u32>,
    Option<String>,
);

/// All reports of a run.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    faults: BTreeMap<Key, Faults>,
    more: u64,
}

impl Tally {
    /// Adds a report.
    pub fn add(&mut self, report: &Report) {
        let key = key_of(&report.xid);
        if let Some(known) = self.faults.get_mut(&key) {
            known.count += 1;
            known.first_at = known.first_at.min(report.at);
            if report.at >= known.last.at {
                known.last = report.clone();
            }
        } else if self.faults.len() < MOST {
            let place = self.faults.len();
            let first = Faults {
                last: report.clone(),
                count: 1,
                first_at: report.at,
                place,
            };
            self.faults.insert(key, first);
        } else {
            self.more += 1;
        }
    }

    /// In the order in which they came first.
    #[must_use]
    pub fn faults(&self) -> Vec<Faults> {
        let mut faults: Vec<Faults> = self.faults.values().cloned().collect();
        faults.sort_by_key(|faults| (faults.first_at, faults.place));
        faults
    }

    /// Reports of yet other kinds, beyond those that are kept apart.
    #[must_use]
    pub fn more(&self) -> u64 {
        self.more
    }
}

fn key_of(xid: &Xid) -> Key {
    let instance = xid.instance.map(|Instance { gpu, compute }| (gpu, compute));
    let switch = xid.reporter == Reporter::Switch;
    (switch, xid.pci.clone(), instance, xid.code, xid.pid, xid.name.clone())
}
