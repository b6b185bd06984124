//! Totals while a run goes on, for a recording: whatever ends it, it has what was exactly true up to a second before.
//!
//! Owns when they are made, and those that wait for their place behind the rows of calls that they count. What is true is
//! added up by [`super::report`], as at the end; how much room there is, is the recording's business.

use super::Tracer;
use crate::clock::{monotonic_ns, thread_cpu};
use crate::engine::totals::Snapshot;
use crate::model::cost::Hits;
use crate::model::memory::ProcessReport;
use crate::model::summary::Summary;
use anyhow::Result;
use std::time::{Duration, Instant};

/// Between two of them at least.
const SPACING: Duration = Duration::from_millis(900);
/// How long after the last batch they are made: with the rows before them they are ready for the next one.
const BEFORE_BATCH: Duration = Duration::from_millis(850);
/// Making them takes one part of so many of the time, at most.
const TIME_SHARE: u32 = 100;
/// Names of kernels that are being looked for are waited for so long.
const PATIENCE: Duration = Duration::from_secs(5);

/// Totals while a run goes on, for a recording.
pub(super) struct SnapshotPlane {
    pace: Pace,
    counted: Counted,
    ready: Option<Ready>,
}

/// Totals that have no row yet.
pub(super) struct Ready {
    /// Up to then, CLOCK_MONOTONIC ns.
    pub at: u64,
    pub totals: String,
}

/// What changes when anything does that was counted.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Counted {
    entered: u64,
    lost: u64,
    returned: u64,
    processes: usize,
}

impl Counted {
    fn of(snapshot: &Snapshot, processes: usize) -> Counted {
        let counters = &snapshot.counters;
        Counted {
            entered: counters.iter().map(|counter| counter.entered).sum(),
            lost: counters.iter().map(|counter| counter.lost).sum(),
            returned: snapshot.totals.iter().map(|(_, total)| total.calls()).sum(),
            processes,
        }
    }
}

/// When the next are due.
struct Pace {
    due: Instant,
    /// Since when names are waited for.
    waits: Option<Instant>,
}

impl Pace {
    /// Those that were begun at `begun` took so much of a CPU.
    fn took(&mut self, begun: Instant, took: Duration) {
        self.due = begun + SPACING.max(took * TIME_SHARE);
        self.waits = None;
    }

    /// Whether it is time, `since_batch` after the last batch; `busy`: names are being looked for.
    fn is_due(&mut self, now: Instant, since_batch: Duration, busy: bool) -> bool {
        if now < self.due || since_batch < BEFORE_BATCH {
            return false;
        }
        let since = *self.waits.get_or_insert(now);
        !busy || now.duration_since(since) >= PATIENCE
    }
}

impl SnapshotPlane {
    pub(super) fn new() -> SnapshotPlane {
        SnapshotPlane {
            pace: Pace {
                due: Instant::now(),
                waits: None,
            },
            counted: Counted::default(),
            ready: None,
        }
    }

    /// Those whose rows are to be written: what came before them goes out, too, up to `horizon`.
    pub(super) fn take_ready(&mut self, horizon: u64) -> Option<Ready> {
        self.ready.take_if(|ready| ready.at <= horizon)
    }
}

impl Tracer {
    /// Makes totals of now, if somebody keeps them and they are due. To be called with each step.
    pub(super) fn take_totals(&mut self) {
        let has_room = self
            .encoder
            .as_ref()
            .is_some_and(|encoder| encoder.has_room_for_totals());
        let busy = self.memory.stubs.is_busy() || self.memory.late.is_busy();
        let begun = Instant::now();
        if !has_room || !self.snapshots.pace.is_due(begun, self.last_second.elapsed(), busy) {
            return;
        }
        let at = monotonic_ns();
        let (counted, reading) = timed(|| self.engine.snapshot(self.rows.plans.len()));
        // a table that cannot be read is told of at the end
        let adding = counted.map_or(Duration::ZERO, |counted| self.add_up_if_changed(at, &counted));
        self.snapshots.pace.took(begun, reading + adding);
    }

    /// How long that took.
    fn add_up_if_changed(&mut self, at: u64, counted: &Snapshot) -> Duration {
        let changed = Counted::of(counted, self.memory.alive().count());
        if std::mem::replace(&mut self.snapshots.counted, changed) == changed {
            return Duration::ZERO;
        }
        // names of what was counted have come before it
        self.follow(monotonic_ns());
        let (totals, took) = timed(|| self.totals_up_to(counted));
        if let Ok(totals) = totals {
            self.snapshots.ready = Some(Ready { at, totals });
        }
        took
    }

    fn totals_up_to(&mut self, counted: &Snapshot) -> Result<String> {
        let mut totals = self.summary_up_to(counted)?;
        totals.findings = self.undiagnosed();
        Ok(crate::sink::summary::to_snapshot_line(&totals))
    }

    /// What a summary would say now, with what is wrong so far; without call stacks and what tracing has cost. Ends nothing.
    /// `prices`: of [`Self::prices`], as measuring them each time would cost more than what they are for.
    ///
    /// # Errors
    /// The totals cannot be read.
    pub(crate) fn summary_so_far(&mut self, prices: &[Hits]) -> Result<Summary> {
        let counted = self.engine.snapshot(self.rows.plans.len())?;
        self.follow(monotonic_ns());
        let mut summary = self.summary_up_to(&counted)?;
        let in_calls_ns = self.in_calls_ns(&counted.counters, prices);
        let blind = summary.work.iter().any(|process| process.gpu.inferred);
        summary.findings = self.diagnose(blind, in_calls_ns, &summary.functions);
        Ok(summary)
    }

    fn summary_up_to(&mut self, counted: &Snapshot) -> Result<Summary> {
        let ended = (self.tally.clone(), self.launches.clone(), self.aggregates.clone());
        let summary = self.summary_with(counted);
        (self.tally, self.launches, self.aggregates) = ended;
        summary
    }

    /// As the end of a run, but that it goes on. What the kernel has counted is in the sums of ended processes afterwards.
    fn summary_with(&mut self, counted: &Snapshot) -> Result<Summary> {
        self.add_counted(counted)?;
        self.work.show_graphs(&mut self.launches);
        let calls = (self.open_calls(), self.switches());
        let standing = self.standing(calls);
        let mut totals = self.add_up(counted, standing, self.started.elapsed().as_secs_f64())?;
        let now = monotonic_ns();
        totals.work = self.work.report_of_records(self.engine.as_ref(), now);
        self.doubt_idleness(counted.waits_expired, &mut totals.work);
        totals.memory = self
            .memory
            .stackless_report(self.engine.as_ref(), &self.rows.catalog, now);
        totals.memory.processes.iter_mut().for_each(forget_sites);
        totals.totals.device_memory = self.taken(&totals.memory);
        Ok(totals)
    }
}

/// What `work` gives, and the time that this thread was on a CPU for it.
fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let begun = thread_cpu();
    let done = work();
    (done, thread_cpu().saturating_sub(begun))
}

/// Without their stacks they say nothing.
fn forget_sites(process: &mut ProcessReport) {
    process.sites.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(at: Instant) -> Pace {
        Pace { due: at, waits: None }
    }

    #[test]
    fn they_are_made_once_before_each_batch() {
        let begun = Instant::now();
        let mut pace = pace(begun);
        let at = |ms: u64| begun + Duration::from_millis(ms);
        let since = Duration::from_millis;
        assert!(!pace.is_due(at(500), since(500), false));
        assert!(pace.is_due(at(860), since(860), false));
        pace.took(at(860), since(3));
        assert!(!pace.is_due(at(900), since(900), false), "that of this batch is made");
        assert!(pace.is_due(at(1900), since(880), false));
    }

    #[test]
    fn what_takes_long_comes_seldom() {
        let begun = Instant::now();
        let mut pace = pace(begun);
        pace.took(begun, Duration::from_millis(40));
        let later = |ms: u64| begun + Duration::from_millis(ms);
        assert!(!pace.is_due(later(3950), BEFORE_BATCH, false));
        assert!(pace.is_due(later(4000), BEFORE_BATCH, false));
    }

    #[test]
    fn names_are_waited_for_and_not_for_ever() {
        let begun = Instant::now();
        let mut pace = pace(begun);
        assert!(!pace.is_due(begun, BEFORE_BATCH, true));
        assert!(!pace.is_due(begun + PATIENCE / 2, BEFORE_BATCH, true));
        assert!(pace.is_due(begun + PATIENCE, BEFORE_BATCH, true));
    }

    #[test]
    fn rows_of_what_came_before_totals_go_out_before_them() {
        let mut plane = SnapshotPlane::new();
        plane.ready = Some(Ready {
            at: 500,
            totals: String::new(),
        });
        assert!(plane.take_ready(499).is_none());
        assert!(plane.take_ready(500).is_some_and(|ready| ready.at == 500));
        assert!(plane.take_ready(u64::MAX).is_none(), "once");
    }
}
