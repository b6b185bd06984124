//! When processes were born, and who ran before it was watched: such a one may have used a device already.

use crate::clock::{monotonic_ns, since_boot_ns};
use crate::discover;
use crate::model::memory::Origin;
use crate::owner::start_ticks;
use crate::tracer::Scope;
use std::collections::{HashMap, HashSet};
use std::path::Path;

const MOST_BORN: usize = 1 << 15;

/// When processes were born, and who ran before it was watched.
pub(super) struct Births {
    /// Living processes that did nothing with a GPU before they were watched, and when they were born, CLOCK_MONOTONIC ns.
    born: HashMap<u32, u64>,
    /// Those that ran code of a library before it was probed.
    early: HashSet<u32>,
    /// When there are so many, those are looked for whose end was not told.
    most_born: usize,
    begun_at: u64,
    begun_ticks: u64,
    /// Who was not there when we came is a child of those who were.
    descendants: bool,
}

impl Births {
    pub(super) fn of(scope: &Scope) -> Births {
        Births {
            born: HashMap::new(),
            early: HashSet::new(),
            most_born: MOST_BORN,
            begun_at: monotonic_ns(),
            begun_ticks: boot_ticks(),
            descendants: matches!(scope, Scope::Processes(_)),
        }
    }

    /// What is there by now was there before us.
    pub(super) fn begin(&mut self) {
        self.begun_at = monotonic_ns();
        self.begun_ticks = boot_ticks();
    }

    /// When that was, CLOCK_MONOTONIC ns.
    pub(super) fn begun_at(&self) -> u64 {
        self.begun_at
    }

    /// Whether it was before `at`.
    pub(super) fn have_begun(&self, at: u64) -> bool {
        at >= self.begun_at
    }

    /// A process held nothing at `at`; whether we were there by then.
    pub(super) fn note(&mut self, pid: u32, at: u64) -> bool {
        let were_there = self.have_begun(at);
        if were_there {
            self.born.insert(pid, at);
            self.early.remove(&pid);
        }
        were_there
    }

    /// A process has made calls that were not seen.
    pub(super) fn doubt(&mut self, pid: u32) {
        self.early.insert(pid);
    }

    /// Whether a process can have used a device before we saw it.
    pub(super) fn origin(&self, pid: u32) -> Origin {
        let young = || start_ticks(Path::new("/proc"), pid).is_some_and(|ticks| ticks > self.begun_ticks);
        if self.early.contains(&pid) {
            Origin::Late
        } else if self.descendants || self.born.contains_key(&pid) || young() {
            Origin::Start
        } else {
            Origin::Late
        }
    }

    /// A process that ended at `at` is not among the living any more, unless its number is another's by now. Whether `/proc`
    /// still has it says nothing: it does until its parent has asked for its status.
    pub(super) fn ended(&mut self, pid: u32, at: u64) {
        if self.born.get(&pid).is_none_or(|born_at| *born_at <= at) {
            self.born.remove(&pid);
            self.early.remove(&pid);
        }
    }

    /// To be called each second: the notice of an end may be lost.
    pub(super) fn settle(&mut self) {
        if self.born.len() >= self.most_born {
            self.born.retain(|pid, _| !discover::is_gone(*pid));
            self.most_born = MOST_BORN.max(2 * self.born.len());
        }
    }
}

/// Clock ticks from boot until now.
fn boot_ticks() -> u64 {
    // SAFETY: asks for a constant of the system
    let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as u128;
    (u128::from(since_boot_ns()) * per_second / 1_000_000_000) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn births_take_room_for_the_living_alone_and_a_number_may_come_again() {
        let mut births = Births::of(&Scope::All);
        let now = births.begun_at();
        for pid in 0..10_000 {
            births.note(pid, now + 100);
            births.ended(pid, now + 200);
        }
        assert!(births.born.is_empty());
        births.note(7, now + 300);
        births.ended(7, now + 200);
        assert_eq!(births.born.len(), 1, "the end is that of an earlier process");
    }
}
