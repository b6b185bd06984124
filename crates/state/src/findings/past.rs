//! Recent calls that waited or that hosts wait in, and whose fault it is that a device had nothing to do.

use super::interner::{Id, Interner};
use super::part::{PROMPT_NS, Part};
use super::table::Grow;
use crate::model::activity::Why;
use crate::model::finding::Moment;
use crate::record::Record;
use std::collections::VecDeque;

/// Calls that are remembered.
const MOST: usize = 1 << 16;
/// Calls that are looked through for one gap.
const LOOKED_AT: usize = 512;
/// Among those of other processes.
const LOOKED_AT_OF_ALL: usize = 8 * LOOKED_AT;
/// A gap begins when the call that proves it returns; both times come from one clock.
const NEAR_NS: u64 = 5_000;
/// Longer gaps are not the fault of the wait before them: the host has something else to do.
pub(crate) const LONG_NS: u64 = 1_000_000;
/// Shorter ones come with any wait.
pub(crate) const SHORT_NS: u64 = 20_000;

/// An earlier call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Past {
    pub start: i64,
    pub end: i64,
    pub pid: u32,
    pub tid: u32,
    pub name: Id,
    pub site: Id,
    pub part: Part,
    /// Of an item, with the copy that brings it; else of the call.
    pub waited_ns: u64,
}

impl Past {
    /// As a moment of a finding.
    #[must_use]
    pub fn moment(&self, interner: &Interner) -> Moment {
        Moment {
            at: self.start,
            ns: self.ns(),
            pid: self.pid,
            tid: self.tid,
            name: interner.name(self.name).to_owned(),
        }
    }

    /// Time in the call.
    #[must_use]
    pub fn ns(&self) -> u64 {
        self.end.saturating_sub(self.start).unsigned_abs()
    }
}

/// Whose fault a gap is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Memory was taken or given back.
    Memory,
    /// Code was loaded or made.
    Code,
    /// A value was waited for.
    Item,
    Sync,
    Copy,
    /// The host did something else, for long, after it had waited for the device.
    Host,
    /// The same, while the device did what it had been given, and was done with it. Only measured gaps tell.
    Away,
    /// Too short, or nothing is known of it.
    Nobody,
}

/// Time in which nothing that a process submitted was running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    pub ns: u64,
    /// By what the device has told; else it follows from calls, and is a bound.
    pub measured: bool,
    /// Before the first launch of the process.
    pub at_start: bool,
    /// The call whose return proves that everything was done; of a measured gap the one that waited when that was so.
    pub behind: Option<Past>,
    /// Of the gap, until that call had returned.
    pub behind_ns: u64,
    /// Time that the thread which ended the gap spent in calls meanwhile.
    pub memory_ns: u64,
    pub code_ns: u64,
    /// In waits and copies.
    pub wait_ns: u64,
    /// In calls of other kinds (resets, contexts, launches that load code).
    pub other_ns: u64,
    /// Of these the one in which most of it passed, and how much.
    pub longest_other: Option<(u64, Past)>,
    pub fault: Fault,
}

/// Recent calls that waited or that hosts wait in. In the order of entries.
#[derive(Debug, Default)]
pub(crate) struct Recent(VecDeque<Past>);

impl Recent {
    /// Remembers a call.
    pub(crate) fn push(&mut self, past: Past) {
        if self.0.len() >= MOST {
            self.0.pop_front();
        }
        self.0.push_back(past);
    }

    /// What an idle row tells.
    #[must_use]
    pub(crate) fn gap(&self, idle: &Record<'_>) -> Gap {
        let mut gap = Gap {
            ns: idle.ns.unwrap_or(0),
            measured: !idle.name.is_empty(),
            at_start: false,
            behind: None,
            behind_ns: 0,
            memory_ns: 0,
            code_ns: 0,
            wait_ns: 0,
            other_ns: 0,
            longest_other: None,
            fault: Fault::Nobody,
        };
        let (since, until) = (idle.at, idle.end());
        let newest = self.0.partition_point(|past| past.start < until);
        let lately = self.0.range(..newest).rev().take(LOOKED_AT_OF_ALL);
        for past in lately.filter(|past| past.pid == idle.pid).take(LOOKED_AT) {
            if gap.follows(past, since) {
                gap.behind = Some(*past);
                gap.behind_ns = within(past, since, until);
                // what it took longer than the device is time in it, too
                if gap.measured && past.tid == idle.tid {
                    gap.add(past, since, until);
                }
                break;
            }
            if past.tid == idle.tid {
                gap.add(past, since, until);
            }
        }
        gap.fault = gap.whose(Why::from_name(idle.name));
        gap
    }
}

/// How long a call lasted between two moments.
fn within(past: &Past, since: i64, until: i64) -> u64 {
    let ns = past.end.min(until).saturating_sub(past.start.max(since));
    u64::try_from(ns).unwrap_or(0)
}

impl Gap {
    /// Whether it is that call which the host came back from, or was in, when the gap began.
    fn follows(&self, past: &Past, since: i64) -> bool {
        if !self.measured {
            return !past.part.is_elsewhere() && past.end.abs_diff(since) <= NEAR_NS;
        }
        let waits = match past.part {
            Part::Sync | Part::Item | Part::Copy | Part::Free => true,
            // of pageable memory it is the copy that waits, and the call behind it returns at once
            Part::SmallCopy => past.ns() > PROMPT_NS,
            _ => false,
        };
        waits && past.start <= since && since <= past.end.saturating_add_unsigned(NEAR_NS)
    }

    fn add(&mut self, past: &Past, since: i64, until: i64) {
        let ns = within(past, since, until);
        match past.part {
            Part::Alloc | Part::Free => self.memory_ns.grow(ns),
            Part::Code => self.code_ns.grow(ns),
            part if part.is_elsewhere() => {
                self.other_ns.grow(ns);
                if ns > self.longest_other.map_or(0, |(longest, _)| longest) {
                    self.longest_other = Some((ns, *past));
                }
            }
            _ => self.wait_ns.grow(ns),
        }
    }

    fn whose(&self, why: Option<Why>) -> Fault {
        let most = |ns: u64| ns >= self.ns.div_ceil(2);
        if self.ns < SHORT_NS || why == Some(Why::Profiler) {
            Fault::Nobody
        } else if most(self.memory_ns) {
            Fault::Memory
        } else if most(self.code_ns) {
            Fault::Code
        } else if self.ns.saturating_sub(self.behind_ns) >= LONG_NS {
            match self.measured && self.behind.is_none() {
                false => Fault::Host,
                true if why.is_some_and(Why::is_hosts) => Fault::Away,
                true => Fault::Nobody,
            }
        } else {
            self.behind.as_ref().map_or(Fault::Nobody, fault_of)
        }
    }
}

fn fault_of(behind: &Past) -> Fault {
    match behind.part {
        Part::Free => Fault::Memory,
        Part::Item | Part::SmallCopy => Fault::Item,
        // one that returned at once kept nobody waiting
        Part::Sync if behind.ns() > PROMPT_NS => Fault::Sync,
        Part::Copy => Fault::Copy,
        _ => Fault::Nobody,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Kind;

    fn past(part: Part, start: i64, end: i64) -> Past {
        Past {
            start,
            end,
            pid: 7,
            tid: 7,
            part,
            ..Past::default()
        }
    }

    fn gap(calls: &[Past], since: i64, ns: u64) -> Gap {
        let mut recent = Recent::default();
        calls.iter().for_each(|call| recent.push(*call));
        recent.gap(&Record {
            ns: Some(ns),
            ..Record::new(Kind::Idle, since, 7)
        })
    }

    #[test]
    fn a_gap_is_the_fault_of_the_wait_that_it_follows() {
        let wait = past(Part::Sync, 0, 900_000);
        let after = past(Part::Sync, 1_200_000, 1_300_000);
        let gap = gap(&[wait, after], 900_000, 200_000);
        assert_eq!((gap.fault, gap.behind), (Fault::Sync, Some(wait)));
    }

    #[test]
    fn a_wait_that_returned_at_once_is_nobodys_fault() {
        assert_eq!(
            gap(&[past(Part::Sync, 0, 10_000)], 10_000, 200_000).fault,
            Fault::Nobody
        );
    }

    fn measured(calls: &[Past], since: i64, ns: u64, why: Why) -> Gap {
        let mut recent = Recent::default();
        calls.iter().for_each(|call| recent.push(*call));
        recent.gap(&Record {
            ns: Some(ns),
            name: why.name(),
            ..Record::new(Kind::Idle, since, 7)
        })
    }

    #[test]
    fn a_measured_gap_begins_while_its_host_still_waits() {
        let wait = past(Part::Sync, 0, 900_000);
        let gap = measured(&[wait], 850_000, 200_000, Why::SyncReturn);
        assert_eq!(
            (gap.fault, gap.behind, gap.behind_ns),
            (Fault::Sync, Some(wait), 50_000)
        );
        assert_eq!(measured(&[wait], 850_000, 3_000_000, Why::Blocked).fault, Fault::Host);
    }

    #[test]
    fn a_small_copy_of_pageable_memory_is_the_wait_for_its_value() {
        let copy = |end| [past(Part::SmallCopy, 0, end), past(Part::Item, 905_000, 908_000)];
        let gap = measured(&copy(900_000), 850_000, 500_000, Why::HostCode);
        assert_eq!((gap.fault, gap.behind), (Fault::Item, Some(copy(900_000)[0])));
        let prompt = measured(&copy(8_000)[..1], 9_000, 500_000, Why::HostCode);
        assert_eq!(prompt.fault, Fault::Nobody, "it waited for nothing");
    }

    #[test]
    fn what_a_free_takes_when_the_device_is_done_is_time_in_it() {
        let gap = measured(&[past(Part::Free, 0, 900_000)], 600_000, 400_000, Why::Memory);
        assert_eq!((gap.fault, gap.memory_ns), (Fault::Memory, 300_000));
    }

    #[test]
    fn a_host_that_is_long_in_coming_back_from_its_wait_is_in_that() {
        let wait = past(Part::Sync, 0, 9_000_000);
        assert_eq!(
            measured(&[wait], 850_000, 8_300_000, Why::SyncReturn).fault,
            Fault::Sync
        );
    }

    #[test]
    fn a_device_that_runs_dry_beside_its_host_waits_for_that_and_not_for_itself() {
        let launched = past(Part::Sync, 9_000_000, 9_010_000);
        let fault = |why| measured(&[launched], 2_000_000, 7_020_000, why).fault;
        assert_eq!((fault(Why::Blocked), fault(Why::Other)), (Fault::Away, Fault::Nobody));
        assert_eq!(fault(Why::Profiler), Fault::Nobody);
        let wait = past(Part::Sync, 0, 900_000);
        let behind_a_wait = measured(&[wait], 850_000, 3_000_000, Why::Profiler);
        assert_eq!(behind_a_wait.fault, Fault::Nobody, "the program cannot help it");
        assert_eq!(
            measured(&[launched], 2_000_000, 500_000, Why::Blocked).fault,
            Fault::Nobody
        );
    }

    #[test]
    fn a_gap_filled_with_allocations_is_their_fault_whatever_it_follows() {
        let calls = [past(Part::Item, 0, 100_000), past(Part::Alloc, 150_000, 300_000)];
        let gap = gap(&calls, 100_000, 250_000);
        assert_eq!((gap.fault, gap.memory_ns), (Fault::Memory, 150_000));
    }

    #[test]
    fn a_long_gap_is_the_fault_of_what_the_host_does() {
        assert_eq!(
            gap(&[past(Part::Sync, 0, 900_000)], 900_000, 3_000_000).fault,
            Fault::Host
        );
        assert_eq!(gap(&[], 0, 3_000_000).fault, Fault::Host);
    }
}
