//! Copies that hold their thread up: which part of that was for their bytes, and which for work that was ahead of them.
//!
//! What had been launched before has to run whoever waits for it. Where devices told when a copy began, the time before that is left
//! out; where they did not, what the copies cost is at most what they held their threads for.

use super::cases::Sum;
use super::evidence::End;
use super::seen::Seen;
use super::table::{Grow, is_percent};
use crate::model::work::Certainty;
use crate::record::{Record, json};
use crate::text::quantity::{duration, plural};
use std::collections::VecDeque;

/// Calls whose activity may still come.
const AWAITED: usize = 4096;

/// What copies of one stretch of a process's life have in common.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Held {
    pub bytes: u64,
    /// Launches of the process before the last one.
    launches: u64,
    /// Copies behind launches that nobody had waited for.
    behind_work: u64,
    /// Of these, those of which a device told when they began, and how long they waited for that.
    told: u64,
    ahead_ns: u64,
}

impl Sum for Held {
    fn join(&mut self, other: &Held) {
        self.bytes.grow(other.bytes);
        self.behind_work.grow(other.behind_work);
        self.told.grow(other.told);
        self.ahead_ns.grow(other.ahead_ns);
    }
}

impl Held {
    /// One more copy; whether work was ahead of it.
    fn add(&mut self, seen: &Seen<'_>) -> bool {
        let process = &seen.process;
        let is_behind = process.step_launches > 0 && process.launches > self.launches;
        self.bytes.grow(seen.event.bytes.unwrap_or(0));
        self.launches = process.launches;
        self.behind_work.grow(u64::from(is_behind));
        is_behind
    }

    fn began_after(&mut self, ns: u64) {
        self.told.grow(1);
        self.ahead_ns.grow(ns);
    }

    /// What `held_ns` in such calls were longer than moving the bytes takes, without what ran ahead of them.
    #[must_use]
    pub(crate) fn cost_ns(&self, held_ns: u64, end: &End<'_>) -> u64 {
        held_ns
            .saturating_sub(self.ahead_ns)
            .saturating_sub(end.pinned.ns(self.bytes))
    }

    /// How certain that is.
    #[must_use]
    pub(crate) fn certainty(&self, end: &End<'_>) -> Certainty {
        match self.behind_work > self.told {
            true => Certainty::Bound,
            false => end.pinned.certainty(),
        }
    }

    /// What is to be said of work ahead of them, of `held_ns` in all; empty: there was none worth mentioning.
    #[must_use]
    pub(crate) fn words(&self, held_ns: u64) -> String {
        let unknown = self.behind_work.saturating_sub(self.told);
        let told = is_percent(self.ahead_ns, held_ns.max(1), 1).then(|| {
            format!(
                ", {} of that behind work that was ahead of them",
                duration(self.ahead_ns)
            )
        });
        let untold = (unknown > 0).then(|| {
            format!(
                ", where {} had work ahead of them, whose time is not known",
                plural(unknown, "copy")
            )
        });
        told.into_iter().chain(untold).collect()
    }
}

/// Copies behind work, until a device has told when they began.
#[derive(Debug, Default)]
pub(crate) struct Awaited(VecDeque<Call>);

#[derive(Debug)]
struct Call {
    pid: u32,
    tid: u32,
    /// When it was entered, and before that the call around it, which is the one that an activity names.
    at: i64,
    around: i64,
    ns: u64,
}

impl Awaited {
    /// Such a copy was called.
    pub(crate) fn call(&mut self, seen: &Seen<'_>, held: &mut Held) {
        if !held.add(seen) {
            return;
        }
        if self.0.len() == AWAITED {
            self.0.pop_front();
        }
        let event = seen.event;
        self.0.push_back(Call {
            pid: event.pid,
            tid: event.tid,
            at: event.at,
            around: event.at.saturating_sub_unsigned(event.since_caller.unwrap_or(0)),
            ns: seen.ns(),
        });
    }

    /// Whether what a device did may be a copy that is awaited; asked of all that it did.
    pub(crate) fn may_be(&self, activity: &Record<'_>) -> bool {
        activity.direction.is_some() && !self.0.is_empty()
    }

    /// A device did something: the begin of a copy that is awaited says how long it had waited.
    pub(crate) fn began(&mut self, seen: &Seen<'_>, held: &mut Held) {
        let event = seen.event;
        let Some((tid, at)) = cause(event) else {
            return;
        };
        let is_within = |call: &Call| (call.around..=call.at.saturating_add_unsigned(call.ns)).contains(&at);
        let is_meant = |call: &Call| (call.pid, call.tid) == (event.pid, tid) && is_within(call);
        let Some(place) = self.0.iter().rposition(is_meant) else {
            return;
        };
        if let Some(call) = self.0.remove(place) {
            let ahead = u64::try_from(event.at.saturating_sub(call.at)).unwrap_or(0);
            held.began_after(ahead.min(call.ns));
        }
    }
}

/// Thread and time of the call of an activity.
fn cause(event: &Record<'_>) -> Option<(u32, i64)> {
    let Some(activity) = event.activity else {
        return event.args.and_then(json::call_of_activity);
    };
    let call = activity.call?;
    let before = activity.begin.saturating_sub(call.entered);
    Some((call.tid, event.at.saturating_sub_unsigned(before)))
}
