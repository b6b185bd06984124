//! Launches of a part of a process's life: how many, how they come, what happened between them.

use super::pace::Verdict;
use super::part::Part;
use super::seen::Seen;
use super::table::Grow;
use crate::record::Record;

/// Launches between two waits that make a step.
pub(crate) const STEP_LAUNCHES: u32 = 8;
/// What a kernel that does nearly nothing takes its device, as one of a graph, and the next after it.
pub(crate) const LEAST_NS: u64 = 2_000;
/// To fetch a value takes that long when nothing else is to be done.
pub(crate) const PROMPT_ITEM_NS: u64 = 50_000;

/// Launches of one phase, or of several that follow each other. Times in ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Load {
    pub launches: u64,
    pub first: Option<i64>,
    /// When the last one was entered, and when the last call that has to do with work returned.
    pub last: i64,
    pub until: i64,
    /// In waits that did wait.
    pub waited_ns: u64,
    /// Nothing can have been running; and so in the pause behind it.
    pub idle_ns: u64,
    pub(crate) pause_idle_ns: u64,
    /// The host was outside CUDA for long with work given to its device, which was not behind when it was asked, or was
    /// not asked.
    pub outside_ns: u64,
    /// Of the host outside CUDA by what the device has told, with nothing left to do.
    pub(crate) away_ns: u64,
    /// What the device did meanwhile it has told, and that it took so long, each thing by itself.
    pub(crate) is_measured: bool,
    pub(crate) ran_ns: u64,
    /// Whether its host sets the pace, as far as it has waited for its device.
    pub(crate) is_hosts: bool,
}

impl Load {
    /// A launch.
    pub fn launch(&mut self, event: &Record<'_>) {
        self.launches += 1;
        self.first.get_or_insert(event.at);
        self.last = self.last.max(event.at);
        self.until = self.until.max(event.end());
    }

    /// From the first launch to the last.
    #[must_use]
    pub fn window_ns(&self) -> u64 {
        self.first
            .map_or(0, |first| self.last.saturating_sub(first).unsigned_abs())
    }

    /// Launches a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.launches as f64 * 1e9 / self.window_ns().max(1) as f64
    }

    /// Time in which something may have been running, at most; without the `tracing_ns` that it was longer by.
    #[must_use]
    pub(crate) fn busy_ns(&self, tracing_ns: u64) -> u64 {
        let held_up = self.idle_ns.saturating_add(tracing_ns);
        self.window_ns().saturating_sub(held_up)
    }

    /// Time in which the device had nothing to do and no gap says why, at least: launches had not come. Without the `tracing_ns`
    /// that it was longer by.
    #[must_use]
    pub(crate) fn unlaunched_ns(&self, tracing_ns: u64) -> u64 {
        let ran = self.ran_ns.max(self.launches.saturating_mul(LEAST_NS));
        self.busy_ns(tracing_ns)
            .saturating_sub(self.away_ns.saturating_add(self.waited_ns).saturating_add(ran))
    }

    /// What follows it belongs to it, too.
    pub fn join(&mut self, next: &Load) {
        self.launches.grow(next.launches);
        self.first = self.first.or(next.first);
        (self.last, self.until) = (self.last.max(next.last), self.until.max(next.until));
        self.waited_ns.grow(next.waited_ns);
        self.idle_ns.grow(self.pause_idle_ns);
        self.idle_ns.grow(next.idle_ns);
        self.pause_idle_ns = next.pause_idle_ns;
        self.outside_ns.grow(next.outside_ns);
        self.away_ns.grow(next.away_ns);
        self.ran_ns.grow(next.ran_ns);
    }
}

/// Whether the work of a step was done before the host asked for it.
#[must_use]
pub(crate) fn is_late(seen: &Seen<'_>) -> bool {
    let prompt_ns = if seen.part == Part::Item {
        PROMPT_ITEM_NS
    } else {
        super::part::PROMPT_NS
    };
    seen.process.step_launches >= STEP_LAUNCHES && seen.waited_ns() <= prompt_ns && seen.step == Verdict::Ahead
}

/// From the first launch of a step to the wait behind it.
#[must_use]
pub(crate) fn step_ns(seen: &Seen<'_>) -> u64 {
    seen.event.at.saturating_sub(seen.process.step_from).unsigned_abs()
}
