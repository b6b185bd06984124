//! What a row is to rules: each call once, at the layer where work is counted, and in one role.
//!
//! Owns which finding an idle gap and a call belong to, so that nothing is counted in two. Remembers a bounded number
//! of recent calls, threads and processes.

use super::course::Courses;
use super::evidence::Bandwidth;
use super::interner::Interner;
use super::pace::Verdict;
use super::part::{PROMPT_NS, Part};
use super::past::{Gap, LONG_NS, Past, Recent};
use super::seen::{Process, Seen, UNPLACED};
use super::table::Bounded;
use crate::catalog::{Class, CopyKind, HostMemory};
use crate::model::outside;
use crate::record::{Counting, Kind, Record};

/// A value or a few, as in [`crate::model::work`].
pub(crate) const ITEM_BYTES: u64 = 64;
pub(crate) const ITEM_GAP_NS: u64 = 50_000;

/// Copies large enough to tell a bandwidth.
const TELLING_BYTES: u64 = 1 << 20;
/// GB/s of pinned memory over PCIe 4.0 x16, where none is measured.
const USUAL_GBPS: f64 = 25.0;

const PROCESSES: usize = 4096;
const THREADS: usize = 1024;

/// The last small copy of a thread.
#[derive(Debug, Clone, Copy, Default)]
struct Small {
    copy: Past,
    stream: Option<u64>,
}

/// What a row is to rules.
#[derive(Debug)]
pub(crate) struct Scene {
    pub interner: Interner,
    pub courses: Courses,
    processes: Bounded<Process>,
    /// By the lower bits of its id.
    threads: Vec<Small>,
    recent: Recent,
    counting: Counting,
    pinned_best: f64,
}

impl Default for Scene {
    fn default() -> Scene {
        Scene {
            interner: Interner::default(),
            courses: Courses::default(),
            processes: Bounded::new(PROCESSES),
            threads: vec![Small::default(); THREADS],
            recent: Recent::default(),
            counting: Counting::default(),
            pinned_best: 0.0,
        }
    }
}

impl Scene {
    /// What `event` is. To be asked once for each, in order.
    pub(crate) fn look_at<'a>(&mut self, event: &'a Record<'a>) -> Seen<'a> {
        let counts = event.kind == Kind::Call && self.counting.counts(event);
        let mut seen = Seen {
            event,
            counts,
            part: Part::Other,
            // samples have very many, which would take the room of others
            site: if event.kind == Kind::Sample {
                0
            } else {
                self.interner.site_id(event.stack)
            },
            name: 0,
            process: Process::default(),
            copy: None,
            gap: None,
            step: Verdict::Unproven,
            outside_ns: 0,
            stretch: self.courses.stretch(event.pid),
        };
        if event.failed {
            seen.name = self.interner.name_id(event.name);
        }
        match event.kind {
            Kind::Call if counts => self.take(&mut seen),
            Kind::Sample if [outside::SAMPLE, outside::BETWEEN].contains(&event.name) => self.place(&mut seen),
            Kind::Call | Kind::Idle | Kind::Sample => self.look_beside(&mut seen),
            Kind::Open if event.depth == 0 => self.courses.hang(event),
            Kind::Gpu => {
                self.courses.ran(event);
                self.place(&mut seen);
            }
            Kind::Process if event.name == "exit" || event.name == "exec" => {
                self.processes.remove(u64::from(event.pid));
            }
            _ => {}
        }
        seen
    }

    fn place(&mut self, seen: &mut Seen<'_>) {
        let event = seen.event;
        let stretch = self.courses.stretch_of(event.pid, event.at, event.end());
        seen.stretch = stretch.unwrap_or(UNPLACED);
    }

    fn look_beside(&mut self, seen: &mut Seen<'_>) {
        let event = seen.event;
        let process = self.processes.entry(u64::from(event.pid));
        if let Some(process) = process {
            seen.process = *process;
            if let (Kind::Sample, "memory.held", Some(held)) = (event.kind, event.name, event.bytes) {
                process.holds(held);
            }
        }
        if event.kind == Kind::Idle {
            let gap = Gap {
                at_start: self.courses.first(event.pid).is_none_or(|first| first >= event.at),
                ..self.recent.gap(event)
            };
            seen.gap = Some(gap);
            seen.stretch = self.courses.idle(event, &gap);
        }
    }

    fn take(&mut self, seen: &mut Seen<'_>) {
        let event = seen.event;
        seen.part = self.part(seen);
        let mut unknown = Process::default();
        let process = self.processes.entry(u64::from(event.pid)).unwrap_or(&mut unknown);
        seen.process = *process;
        seen.outside_ns = process.outside_ns(seen);
        process.take(seen);
        (seen.step, seen.stretch) = self.courses.take(seen);
        if seen.part == Part::Copy {
            self.measure(event);
        }
        if is_kept(seen) {
            seen.name = self.interner.name_id(event.name);
            self.recent.push(Past::of(seen));
        }
        if seen.part == Part::SmallCopy {
            let thread = event.tid as usize % THREADS;
            self.threads[thread] = Small {
                copy: Past::of(seen),
                stream: event.stream,
            };
        }
    }

    fn part(&mut self, seen: &mut Seen<'_>) -> Part {
        let event = seen.event;
        match event.class {
            Class::Launch => Part::Launch,
            Class::Sync => match self.small_copy_before(event) {
                Some(copy) => {
                    seen.copy = Some(copy);
                    Part::Item
                }
                None => Part::Sync,
            },
            Class::Copy => {
                let small = event.direction == Some(CopyKind::DtoH) && event.bytes.is_some_and(|b| b <= ITEM_BYTES);
                match (small, event.blocking) {
                    (true, true) => Part::Item,
                    (true, false) => Part::SmallCopy,
                    (false, _) => Part::Copy,
                }
            }
            Class::Alloc => Part::Alloc,
            Class::Free => Part::Free,
            Class::Module => Part::Code,
            Class::Graph if event.ns.is_some_and(|ns| ns > PROMPT_NS) => Part::Code,
            _ => Part::Other,
        }
    }

    /// The copy that a wait is for, if that is of a few bytes.
    fn small_copy_before(&mut self, sync: &Record<'_>) -> Option<Past> {
        let small = &mut self.threads[sync.tid as usize % THREADS];
        let taken = std::mem::take(small);
        let same_thread = (taken.copy.pid, taken.copy.tid) == (sync.pid, sync.tid);
        let since = sync.at.saturating_sub(taken.copy.end);
        let other_stream = matches!((taken.stream, sync.stream), (Some(one), Some(other)) if one != other);
        let follows = same_thread && (0..=ITEM_GAP_NS as i64).contains(&since) && !other_stream;
        follows.then_some(taken.copy)
    }

    fn measure(&mut self, event: &Record<'_>) {
        let (Some(bytes), Some(ns)) = (event.bytes, event.ns) else {
            return;
        };
        let over_bus = matches!(event.direction, Some(CopyKind::HtoD | CopyKind::DtoH));
        let pinned = event.host == Some(HostMemory::Pinned);
        if event.blocking && over_bus && pinned && !event.failed && bytes >= TELLING_BYTES {
            self.pinned_best = self.pinned_best.max(bytes as f64 / ns.max(1) as f64);
        }
    }

    /// Of pinned memory.
    #[must_use]
    pub(crate) fn bandwidth(&self) -> Bandwidth {
        let measured = self.pinned_best > 0.0;
        Bandwidth {
            bytes_per_ns: if measured { self.pinned_best } else { USUAL_GBPS },
            measured,
        }
    }
}

/// Whether an idle gap can be the call's fault, or passed in it, or it can be moment of a finding later.
fn is_kept(seen: &Seen<'_>) -> bool {
    match seen.part {
        Part::Launch => seen.ns() >= LONG_NS,
        Part::Other => seen.ns() > PROMPT_NS,
        Part::Copy => seen.event.blocking || seen.ns() > PROMPT_NS,
        Part::Sync | Part::Item | Part::SmallCopy | Part::Alloc | Part::Free | Part::Code => true,
    }
}
