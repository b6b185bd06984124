//! What one process has done with memory and holds, in few numbers: for those who ask often.

use super::account::Account;
use super::process::Process;
use super::report::ProcessReport;
use crate::catalog::{Family, Holder};
use crate::model::fleet::{AGES, Ages, Allocated, Sums};
use std::collections::BTreeMap;

/// What one process has done with memory and holds, in few numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// By family and CUDA ordinal; those that hold memory.
    pub families: BTreeMap<(Family, i16), Account>,
    /// Most that was held on each device at a time.
    pub peak_bytes: BTreeMap<i16, u64>,
    pub ages: Ages,
}

impl Tally {
    pub(super) fn of(process: &Process, now: u64) -> Tally {
        let families = process.ledger.families().iter();
        let holding = families.filter(|((family, _), _)| family.holder() != Holder::Nobody);
        let devices = process.ledger.devices().iter();
        Tally {
            families: holding.map(|(key, account)| (*key, *account)).collect(),
            peak_bytes: devices.map(|(device, account)| (*device, account.peak_bytes)).collect(),
            ages: ages(process, now),
        }
    }

    /// Adds what only grows to `sums`.
    pub fn add_to(&self, sums: &mut Sums) {
        for ((family, _), account) in &self.families {
            sums.allocate(*family, &allocated(account));
        }
    }
}

impl ProcessReport {
    /// The same of a process that has ended, and what it held then.
    pub fn add_to(&self, sums: &mut Sums) {
        for family in &self.families {
            sums.allocate(family.family, &allocated(&family.account));
        }
        sums.unreturned_bytes = sums.unreturned_bytes.saturating_add(self.held_bytes());
    }
}

fn allocated(account: &Account) -> Allocated {
    Allocated {
        allocations: account.allocations,
        allocated_bytes: account.allocated_bytes,
        frees: account.frees,
        freed_bytes: account.freed_bytes,
        failed: account.failed_allocations,
    }
}

fn ages(process: &Process, now: u64) -> Ages {
    let mut ages = Ages::default();
    for (key, live) in process.all_live() {
        if key.family.holder() != Holder::Nobody {
            let age = now.saturating_sub(live.at);
            let bucket = AGES
                .iter()
                .position(|(limit, _)| age < *limit)
                .unwrap_or(AGES.len() - 1);
            ages[bucket].0 += 1;
            ages[bucket].1 = ages[bucket].1.saturating_add(live.bytes);
        }
    }
    ages
}
