//! How launches come: how many, how long they take their thread, and whether devices are ahead of their host.

use super::scene::{PROMPT_NS, Part, Seen};
use super::table::{Bounded, Grow};
use crate::trace::Event;

/// Processes that are told apart.
const PROCESSES: usize = 1024;
/// Launches between two waits that make a step.
pub const STEP_LAUNCHES: u32 = 8;
/// To fetch a value takes that long when nothing else is to be done.
pub const PROMPT_ITEM_NS: u64 = 50_000;

/// Launches of one process. Times in ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Load {
    pub launches: u64,
    first: Option<i64>,
    last: i64,
    /// In waits that did wait.
    pub waited_ns: u64,
    /// Nothing can have been running.
    pub idle_ns: u64,
}

impl Load {
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
    pub fn busy_ns(&self, tracing_ns: u64) -> u64 {
        let held_up = self.idle_ns.saturating_add(tracing_ns);
        self.window_ns().saturating_sub(held_up)
    }
}

/// See the module.
#[derive(Debug)]
pub struct Loads(Bounded<Load>);

impl Default for Loads {
    fn default() -> Loads {
        Loads(Bounded::new(PROCESSES))
    }
}

impl Loads {
    /// Whether a call of that part has to do with it.
    #[must_use]
    pub fn concerns(&self, part: Part) -> bool {
        matches!(part, Part::Launch | Part::Sync | Part::Item)
    }

    /// A call that counts.
    pub fn take(&mut self, seen: &Seen<'_>) {
        let event = seen.event;
        let Some(load) = self.0.entry(u64::from(event.pid)) else {
            return;
        };
        if seen.part != Part::Launch {
            load.waited_ns.grow(seen.waited_ns().saturating_sub(PROMPT_NS));
        } else if !event.failed {
            load.launches += 1;
            load.first.get_or_insert(event.at);
            load.last = load.last.max(event.at);
        }
    }

    /// When a process has launched first, also if it is gone.
    #[must_use]
    pub fn first(&self, pid: u32) -> Option<i64> {
        self.0.get(u64::from(pid)).and_then(|load| load.first)
    }

    /// A gap; one before the first launch is none of the window.
    pub fn idle(&mut self, event: &Event<'_>) {
        let load = self.0.get_mut(u64::from(event.pid));
        if let Some((load, first)) = load.and_then(|load| load.first.map(|first| (load, first))) {
            let within = event.end().saturating_sub(event.at.max(first));
            load.idle_ns.grow(u64::try_from(within).unwrap_or(0));
        }
    }

    /// Of the process that launches most.
    #[must_use]
    pub fn heaviest(&self) -> Load {
        let loads = self.0.iter().map(|(_, load)| *load);
        loads.max_by_key(|load| load.launches).unwrap_or_default()
    }
}

/// Whether the work of a step was done before the host asked for it.
#[must_use]
pub fn is_late(seen: &Seen<'_>) -> bool {
    let prompt_ns = if seen.part == Part::Item {
        PROMPT_ITEM_NS
    } else {
        PROMPT_NS
    };
    seen.process.step_launches >= STEP_LAUNCHES && seen.waited_ns() <= prompt_ns
}

/// From the first launch of a step to the wait behind it.
#[must_use]
pub fn step_ns(seen: &Seen<'_>) -> u64 {
    seen.event.at.saturating_sub(seen.process.step_from).unsigned_abs()
}
