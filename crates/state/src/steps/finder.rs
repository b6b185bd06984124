//! Looks for the steps of each process.

use super::anchor::Anchor;
use super::watch::Watch;
use super::work::Work;
use crate::findings::interner::{Id, Interner};
use crate::findings::table::{Bounded, is_percent};
use crate::record::{Counting, Kind, Record, Taker};
use std::collections::BTreeMap;

/// Processes whose steps are looked for.
const PROCESSES: usize = 16;
/// Threads of each that are looked at alone.
const THREADS: usize = 4;
/// Processes that launch fewer than so many of the launches of the busiest are none that steps are told of.
const FEW_PERCENT: u64 = 5;

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// Those of the process that launches most first.
    pub anchors: Vec<Anchor>,
    /// Why there are none.
    pub why_none: Option<String>,
}

impl Found {
    /// Nothing, and why.
    #[must_use]
    pub fn none(why: &str) -> Found {
        Found {
            anchors: Vec::new(),
            why_none: Some(why.to_owned()),
        }
    }
}

#[derive(Debug, Default)]
struct Process {
    all: Watch,
    first_tid: u32,
    /// Where several launch: each alone, from when the second did.
    threads: BTreeMap<u32, Watch>,
}

impl Process {
    fn take(&mut self, work: &Work<'_>, name: Id, tid: u32) {
        if self.first_tid == 0 {
            self.first_tid = tid;
        }
        self.all.take(work, name);
        if self.threads.is_empty() && tid == self.first_tid {
            return;
        }
        if self.threads.len() < THREADS || self.threads.contains_key(&tid) {
            self.threads.entry(tid).or_default().take(work, name);
        }
    }

    /// Of all threads together, or else of the one that launches most.
    fn anchor(&self, pid: u32, interner: &Interner) -> Result<Anchor, String> {
        let of_all = self.all.anchor(interner).map(|anchor| Anchor { pid, ..anchor });
        of_all.or_else(|why| {
            let mut threads: Vec<(&u32, &Watch)> = self.threads.iter().collect();
            threads.sort_by_key(|(tid, watch)| (std::cmp::Reverse(watch.launches()), **tid));
            let found = threads
                .into_iter()
                .find_map(|(tid, watch)| Some((*tid, watch.anchor(interner).ok()?)));
            let tid = found.ok_or(why);
            tid.map(|(tid, anchor)| Anchor {
                pid,
                tid: Some(tid),
                ..anchor
            })
        })
    }
}

/// Looks for the steps of each process.
#[derive(Debug)]
pub struct Finder {
    counting: Counting,
    interner: Interner,
    processes: Bounded<Process>,
}

impl Default for Finder {
    fn default() -> Finder {
        Finder {
            counting: Counting::default(),
            interner: Interner::default(),
            processes: Bounded::new(PROCESSES),
        }
    }
}

impl Taker for Finder {
    fn take(&mut self, event: &Record<'_>) {
        if event.kind != Kind::Call || !self.counting.counts(event) {
            return;
        }
        let Some(work) = Work::of(event) else { return };
        let name = self.interner.name_id(work.name);
        if let Some(process) = self.processes.entry(u64::from(event.pid)) {
            process.take(&work, name, event.tid);
        }
    }
}

impl Finder {
    /// The steps of the processes that do most of the work.
    #[must_use]
    pub fn found(&self) -> Found {
        let mut processes: Vec<(u64, &Process)> = self.processes.iter().collect();
        processes.sort_by_key(|(pid, process)| (std::cmp::Reverse(process.all.launches()), *pid));
        let most = processes.first().map_or(0, |(_, process)| process.all.launches());
        let working = |process: &Process| is_percent(process.all.launches(), most.max(1), FEW_PERCENT);
        let looked: Vec<Result<Anchor, String>> = processes
            .into_iter()
            .filter(|(_, process)| working(process))
            .map(|(pid, process)| process.anchor(pid as u32, &self.interner))
            .collect();
        let why = looked.iter().find_map(|one| one.as_ref().err().cloned());
        let anchors: Vec<Anchor> = looked.into_iter().flatten().collect();
        let why_none = anchors
            .is_empty()
            .then(|| why.unwrap_or_else(|| "nothing was launched".to_owned()));
        Found { anchors, why_none }
    }
}
