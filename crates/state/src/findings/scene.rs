//! What a row is to rules: each call once, at the layer where work is counted, and in one role.
//!
//! Owns which finding an idle gap and a call belong to, so that nothing is counted in two. Remembers a bounded number
//! of recent calls, threads and processes.

use super::course::{Courses, Stretch};
use super::evidence::Bandwidth;
use super::interner::{Id, Interner};
use super::pace::Verdict;
use super::past::Recent;
use super::table::Bounded;
use crate::catalog::{Class, CopyKind, HostMemory};
use crate::model::finding::Moment;
use crate::model::outside;
use crate::record::{Counting, Kind, Record};

pub use super::past::{Fault, Gap, Past};

/// A value or a few, as in [`crate::model::work`].
pub(crate) const ITEM_BYTES: u64 = 64;
pub(crate) const ITEM_GAP_NS: u64 = 50_000;
/// The host is outside CUDA for long.
pub(crate) const OUTSIDE_NS: u64 = 1_000_000;
/// A wait that was shorter was none.
pub(crate) const PROMPT_NS: u64 = 20_000;
/// Copies large enough to tell a bandwidth.
const TELLING_BYTES: u64 = 1 << 20;
/// GB/s of pinned memory over PCIe 4.0 x16, where none is measured.
const USUAL_GBPS: f64 = 25.0;
/// In no part of a process's life: before it has launched anything.
pub(crate) const UNPLACED: Stretch = Stretch::MAX;
const PROCESSES: usize = 4096;
const THREADS: usize = 1024;
/// `CUDA_ERROR_OUT_OF_MEMORY`, `cudaErrorMemoryAllocation`.
pub(crate) const OUT_OF_MEMORY: i64 = 2;

/// What a call is to a device, of calls that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Part {
    Launch,
    /// A wait that was asked for.
    Sync,
    /// A wait for a value of a few bytes: of the copy itself, or right behind it.
    Item,
    /// A few bytes to the host, of which only what follows tells whether they are waited for.
    SmallCopy,
    Copy,
    Alloc,
    Free,
    /// Loads or makes code, or graphs.
    Code,
    #[default]
    Other,
}

/// A process, before the row at hand.
#[derive(Debug, Clone, Copy, Default)]
pub struct Process {
    pub launches: u64,
    /// Of them, since the last wait, and when the first of these was entered.
    pub step_launches: u32,
    pub step_from: i64,
    /// Something was given to a device since the last wait.
    pub pending: bool,
    /// An allocation has failed, and none as large has succeeded since.
    pub short_of: Option<Shortage>,
    /// Device bytes, now and at most.
    pub held: u64,
    pub peak: u64,
    /// When all calls so far had returned, but for those that take no time worth mentioning.
    worked_until: Option<i64>,
}

/// There was not enough memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortage {
    pub bytes: u64,
    /// When it was asked for first.
    pub at: i64,
    /// The process has held as much before, and what was asked for now on top of what it holds.
    pub in_pieces: bool,
}

/// A row with its meaning.
pub struct Seen<'a> {
    pub event: &'a Record<'a>,
    /// It is of the layer where work is counted.
    pub counts: bool,
    pub part: Part,
    /// Where it was called from.
    pub site: Id,
    /// Number of its name, of those that are kept.
    pub name: Id,
    pub process: Process,
    /// Of an item: the copy that is waited for.
    pub copy: Option<Past>,
    /// Of an idle row.
    pub gap: Option<Gap>,
    /// Of a wait: whether the device had done what was launched before it.
    pub step: Verdict,
    /// Before the call no thread of its process was in CUDA for so long, if that was long, and its device may have had
    /// something to do.
    pub outside_ns: u64,
    /// Where in the life of its process it is.
    pub stretch: Stretch,
}

impl Seen<'_> {
    /// Time in the call.
    #[must_use]
    pub fn ns(&self) -> u64 {
        self.event.ns.unwrap_or(0)
    }

    /// Time in a wait; for a value, in the copy that brings it, too.
    #[must_use]
    pub(crate) fn waited_ns(&self) -> u64 {
        self.ns().saturating_add(self.copy.map_or(0, |copy| copy.ns()))
    }

    /// Between host and device, larger than an item.
    #[must_use]
    pub(crate) fn is_transfer(&self) -> bool {
        let over_bus = matches!(self.event.direction, Some(CopyKind::HtoD | CopyKind::DtoH));
        self.part == Part::Copy && over_bus && !self.event.failed
    }
}

/// The last small copy of a thread.
#[derive(Debug, Clone, Copy, Default)]
struct Small {
    copy: Past,
    stream: Option<u64>,
}

/// What a row is to rules.
#[derive(Debug)]
pub struct Scene {
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
    pub fn look_at<'a>(&mut self, event: &'a Record<'a>) -> Seen<'a> {
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
            Kind::Sample if event.name == outside::SAMPLE => self.place(&mut seen),
            Kind::Call | Kind::Idle | Kind::Sample => self.look_beside(&mut seen),
            Kind::Gpu => {
                self.courses.measure(event.pid);
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
    pub fn bandwidth(&self) -> Bandwidth {
        let measured = self.pinned_best > 0.0;
        Bandwidth {
            bytes_per_ns: if measured { self.pinned_best } else { USUAL_GBPS },
            measured,
        }
    }
}

impl Process {
    fn take(&mut self, seen: &Seen<'_>) {
        let event = seen.event;
        match seen.part {
            Part::Launch if !event.failed => {
                self.launches += 1;
                if self.step_launches == 0 {
                    self.step_from = event.at;
                }
                self.step_launches = self.step_launches.saturating_add(1);
                self.pending = true;
            }
            Part::Sync | Part::Item => self.waited(),
            Part::Free if event.ns.is_some_and(|ns| ns > PROMPT_NS) => self.waited(),
            Part::Copy | Part::SmallCopy => self.pending = true,
            Part::Alloc => self.allocated(event),
            _ if matches!(event.class, Class::Memset | Class::Prefetch) => self.pending = true,
            _ => {}
        }
        if let Some(held) = event.held {
            self.holds(held);
        }
    }

    /// How long nobody was in CUDA before a call, if that was long and something was given to a device before.
    fn outside_ns(&mut self, seen: &Seen<'_>) -> u64 {
        let event = seen.event;
        if seen.part == Part::Other && seen.ns() < PROMPT_NS {
            return 0;
        }
        let until = self.worked_until.unwrap_or(event.at);
        self.worked_until = Some(until.max(event.end()));
        let ns = u64::try_from(event.at.saturating_sub(until)).unwrap_or(0);
        if self.pending && ns >= OUTSIDE_NS { ns } else { 0 }
    }

    fn waited(&mut self) {
        self.step_launches = 0;
        self.pending = false;
    }

    fn allocated(&mut self, event: &Record<'_>) {
        let bytes = event.bytes.unwrap_or(0);
        if event.failed {
            if event.result == Some(OUT_OF_MEMORY) {
                self.short_of = Some(Shortage {
                    bytes,
                    at: self.short_of.map_or(event.at, |shortage| shortage.at),
                    in_pieces: self.would_fit(bytes),
                });
            }
        } else if self.short_of.is_some_and(|shortage| bytes >= shortage.bytes) {
            self.short_of = None;
        }
    }

    /// Whether it has held so much more than it holds now.
    #[must_use]
    pub(crate) fn would_fit(&self, bytes: u64) -> bool {
        bytes > 0 && self.held.saturating_add(bytes) <= self.peak
    }

    fn holds(&mut self, held: u64) {
        self.held = held;
        self.peak = self.peak.max(held);
    }
}

/// Whether an idle gap can be the call's fault, or it can be moment of a finding later.
fn is_kept(seen: &Seen<'_>) -> bool {
    match seen.part {
        Part::Launch | Part::Other => false,
        Part::Copy => seen.event.blocking || seen.ns() > PROMPT_NS,
        Part::Sync | Part::Item | Part::SmallCopy | Part::Alloc | Part::Free | Part::Code => true,
    }
}

impl Past {
    /// The call of a row.
    #[must_use]
    pub fn of(seen: &Seen<'_>) -> Past {
        let event = seen.event;
        Past {
            start: event.at,
            end: event.end(),
            pid: event.pid,
            tid: event.tid,
            name: seen.name,
            site: seen.site,
            part: seen.part,
            waited_ns: seen.waited_ns(),
        }
    }

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
