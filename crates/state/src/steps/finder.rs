//! Looks for the steps of each process.

use super::anchor::Anchor;
use super::piece::Piece;
use super::watch::Watch;
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

    /// Of all threads together, or else of the one that launches most.
    fn anchor(&self, pid: u32, interner: &Interner) -> Result<Anchor, String> {
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
        let Some(work) = piece.work() else { return };
        if let Some(process) = self.processes.entry(u64::from(piece.pid)) {
            process.take(&work, piece.tid);
        }
    }

    /// The steps of the processes that do most of the work.
    pub(super) fn found(&self, names: &Interner) -> Found {
        let mut processes: Vec<(u64, &Process)> = self.processes.iter().collect();
        processes.sort_by_key(|(pid, process)| (std::cmp::Reverse(process.all.launches()), *pid));
        let most = processes.first().map_or(0, |(_, process)| process.all.launches());
        let working = |process: &Process| is_percent(process.all.launches(), most.max(1), FEW_PERCENT);
        let looked: Vec<Result<Anchor, String>> = processes
            .into_iter()
            .filter(|(_, process)| working(process))
            .map(|(pid, process)| process.anchor(pid as u32, names))
            .collect();
        let why = looked.iter().find_map(|one| one.as_ref().err().cloned());
        let anchors: Vec<Anchor> = looked.into_iter().flatten().collect();
        let why_none = anchors
            .is_empty()
            .then(|| why.unwrap_or_else(|| "nothing was launched".to_owned()));
        Found { anchors, why_none }
    }
}
