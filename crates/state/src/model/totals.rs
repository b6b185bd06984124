//! Single totals, as people ask for them: time in ioctls, allocations, context switches.
//!
//! Owns no count of its own: each is one that the models have.

use super::memory::Report;
use crate::catalog::Holder;

/// Calls and their time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    pub calls: u64,
    pub ns: u64,
}

/// What was taken on devices and given back, of all processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Taken {
    pub allocations: u64,
    pub allocated_bytes: u64,
    pub frees: u64,
    pub freed_bytes: u64,
}

/// How often threads that call were taken off their processor, from their first call on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Switches {
    pub threads: u64,
    /// They waited for something.
    pub voluntary: u64,
    /// Others had their turn.
    pub involuntary: u64,
    /// Threads of which that is not known.
    pub unknown_threads: u64,
}

/// `None`: that was not followed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    pub ioctls: Option<Spent>,
    pub device_memory: Option<Taken>,
    pub switches: Option<Switches>,
}

impl Taken {
    /// Of all processes of a report; memory of the host and what nobody holds is apart.
    #[must_use]
    pub fn of(report: &Report) -> Taken {
        let families = report.processes.iter().flat_map(|process| &process.families);
        let on_devices = families.filter(|family| family.family.holder() == Holder::Device);
        on_devices.fold(Taken::default(), |sum, family| Taken {
            allocations: sum.allocations + family.account.allocations,
            allocated_bytes: sum.allocated_bytes.saturating_add(family.account.allocated_bytes),
            frees: sum.frees + family.account.frees,
            freed_bytes: sum.freed_bytes.saturating_add(family.account.freed_bytes),
        })
    }
}
