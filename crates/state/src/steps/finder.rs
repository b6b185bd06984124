//! Looks for the steps of each process.

use super::anchor::Anchor;
use super::piece::{Piece, What};
use super::said::Said;
use super::watch::{NO_LAUNCH, Watch};
use super::work::Work;
use crate::findings::interner::Interner;
use crate::findings::table::{Bounded, is_percent};
use std::collections::BTreeMap;

/// Processes whose steps are looked for.
const PROCESSES: usize = 16;
/// Threads of each that are looked at alone.
const THREADS: usize = 4;
/// Processes that launch fewer than so many of the launches of the busiest are none that steps are told of.
const FEW_PERCENT: u64 = 5;

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Those of the process that launches most first.
    pub anchors: Vec<Anchor>,
    /// Why there are none.
    pub why_none: Option<String>,
}

#[derive(Debug, Default)]
struct Process {
    all: Watch,
    first_tid: u32,
    /// Where several launch: each alone, from when the second did.
    threads: BTreeMap<u32, Watch>,
    said: Said,
}

impl Process {
    fn take(&mut self, work: &Work, tid: u32) {
        if self.first_tid == 0 {
            self.first_tid = tid;
        }
        self.all.take(work);
        if self.threads.is_empty() && tid == self.first_tid {
            return;
        }
        if self.threads.len() < THREADS || self.threads.contains_key(&tid) {
            self.threads.entry(tid).or_default().take(work);
        }
    }

    fn launches_from(&self, tid: u32) -> bool {
        tid == self.first_tid || self.threads.get(&tid).is_some_and(|watch| watch.launches() > 0)
    }

    /// What the program says; or else of all threads together, or else of the one that launches most.
    fn anchor(&self, pid: u32, interner: &Interner, ranges: &Interner) -> Result<Anchor, String> {
        let said = self.said.anchor(ranges, |tid| self.launches_from(tid));
        if let Some((anchor, tid)) = said {
            return Ok(anchor.of_process(pid, Some(tid)));
        }
        let of_all = self.all.anchor(interner).map(|anchor| anchor.of_process(pid, None));
        of_all.or_else(|why| {
            let mut threads: Vec<(&u32, &Watch)> = self.threads.iter().collect();
            threads.sort_by_key(|(tid, watch)| (std::cmp::Reverse(watch.launches()), **tid));
            let found = threads
                .into_iter()
                .find_map(|(tid, watch)| Some((*tid, watch.anchor(interner).ok()?)));
            let tid = found.ok_or(why);
            tid.map(|(tid, anchor)| anchor.of_process(pid, Some(tid)))
        })
    }
}

/// Looks for the steps of each process.
#[derive(Debug)]
pub(super) struct Finder {
    processes: Bounded<Process>,
}

impl Default for Finder {
    fn default() -> Finder {
        Finder {
            processes: Bounded::new(PROCESSES),
        }
    }
}

impl Finder {
    /// The next row.
    pub(super) fn take(&mut self, piece: &Piece) {
        let (work, range) = match piece.what {
            What::Range(range) => (None, Some(range)),
            What::Call(_) | What::Idle => (piece.work(), None),
        };
        if work.is_none() && range.is_none() {
            return;
        }
        let Some(process) = self.processes.entry(u64::from(piece.pid)) else {
            return;
        };
        work.iter().for_each(|work| process.take(work, piece.tid));
        range
            .into_iter()
            .for_each(|range| process.said.take(range, piece.tid, (piece.at, piece.end)));
    }

    /// The steps of the processes that do most of the work.
    pub(super) fn found(&self, names: &Interner, ranges: &Interner) -> Found {
        let mut processes: Vec<(u64, &Process)> = self.processes.iter().collect();
        processes.sort_by_key(|(pid, process)| (std::cmp::Reverse(process.all.launches()), *pid));
        let most = processes.first().map_or(0, |(_, process)| process.all.launches());
        // where nobody launches anything, who says what its steps are is believed
        let works = |process: &Process| match most {
            0 => process.said.anchor(ranges, |_| true).is_some(),
            most => is_percent(process.all.launches(), most, FEW_PERCENT),
        };
        let looked: Vec<Result<Anchor, String>> = processes
            .into_iter()
            .filter(|(_, process)| works(process))
            .map(|(pid, process)| process.anchor(pid as u32, names, ranges))
            .collect();
        let why = looked.iter().find_map(|one| one.as_ref().err().cloned());
        let anchors: Vec<Anchor> = looked.into_iter().flatten().collect();
        let why_none = anchors.is_empty().then(|| why.unwrap_or_else(|| NO_LAUNCH.to_owned()));
        Found { anchors, why_none }
    }
}
