//! What a row is to rules, and what its process was before it.

use super::interner::Id;
use super::pace::Verdict;
use super::part::{PROMPT_NS, Part};
use super::past::{Gap, Past};
use crate::catalog::{Class, CopyKind};
use crate::record::Record;

/// The host is outside CUDA for long.
pub(crate) const OUTSIDE_NS: u64 = 1_000_000;

/// In no part of a process's life: before it has launched anything.
pub(crate) const UNPLACED: Stretch = Stretch::MAX;

/// `CUDA_ERROR_OUT_OF_MEMORY`, `cudaErrorMemoryAllocation`.
pub const OUT_OF_MEMORY: i64 = 2;

/// `CUDA_ERROR_NOT_READY`, `cudaErrorNotReady`.
pub(crate) const NOT_READY: i64 = 600;

/// Whether a call has asked for something that was not done yet.
#[must_use]
pub(crate) fn answers_not_yet(event: &Record<'_>) -> bool {
    event.result == Some(NOT_READY) && !event.failed
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

impl Process {
    pub(super) fn take(&mut self, seen: &Seen<'_>) {
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

    /// How long nobody was in CUDA before a call, if that was long and something was given to a device before, which was not seen
    /// at work since.
    pub(super) fn outside_ns(&mut self, seen: &Seen<'_>) -> u64 {
        let event = seen.event;
        if answers_not_yet(event) {
            self.worked_until = self.worked_until.max(Some(event.end()));
            return 0;
        }
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

    pub(super) fn holds(&mut self, held: u64) {
        self.held = held;
        self.peak = self.peak.max(held);
    }
}

/// There was not enough memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortage {
    pub bytes: u64,
    /// When it was asked for first.
    pub at: i64,
    /// The process has held as much before, and what was asked for now on top of what it holds.
    pub(crate) in_pieces: bool,
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

/// Where in the life of a process something was: twice the number of a phase, and one more for the pause behind it.
pub(crate) type Stretch = u32;

impl Past {
    /// The call of a row.
    #[must_use]
    pub(crate) fn of(seen: &Seen<'_>) -> Past {
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
}
