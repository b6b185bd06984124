//! When a recording is due: a moment after its cause, and not for every repetition of it.
//!
//! Pure: the clock is handed in.

use super::{Ask, Cause};
use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::time::{Duration, Instant};

/// What was under way when it happened is to be in the recording, too.
const SETTLE: Duration = Duration::from_secs(1);
/// Alarms that wait; further ones are covered by these, or come again.
const MOST: usize = 1000;

/// Whose last moments are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Whom {
    /// Those of this process, and of those counted with it.
    Process(u32),
    /// Those that the request chooses.
    Asked(Ask),
    Everybody,
}

impl Whom {
    /// The process that it is about; `None`: several, or whoever is meant.
    pub(crate) fn process(&self) -> Option<u32> {
        match self {
            Whom::Process(pid) => Some(*pid),
            Whom::Asked(_) | Whom::Everybody => None,
        }
    }
}

/// A recording that is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Alarm {
    pub cause: Cause,
    pub whom: Whom,
    due: Instant,
}

/// What one recording tells of: a cause, and an owner, or a process whose owner is not known, or everybody.
type Key<O> = (Cause, Option<O>, Option<u32>);

/// Recordings that are to be written; `O` is what stands for an owner.
#[derive(Debug)]
pub(crate) struct Alarms<O> {
    /// Between two recordings of one owner for one cause.
    spacing: Duration,
    pending: Vec<Alarm>,
    written: HashMap<Key<O>, Instant>,
    /// Processes in which nothing works any more: there is nothing new to be told of these.
    dead: HashSet<u32>,
}

impl<O: Clone + Eq + Hash> Alarms<O> {
    /// Of recordings that have `spacing` in them.
    pub(crate) fn new(spacing: Duration) -> Alarms<O> {
        Alarms {
            spacing,
            pending: Vec::new(),
            written: HashMap::new(),
            dead: HashSet::new(),
        }
    }

    /// Something has happened at `now`.
    pub(crate) fn raise(&mut self, cause: Cause, whom: Whom, now: Instant) {
        if let (Cause::FatalError, Whom::Process(pid)) = (cause, &whom)
            && !self.dead.insert(*pid)
        {
            return;
        }
        let known = |alarm: &Alarm| alarm.cause == cause && alarm.whom == whom;
        if self.pending.len() < MOST && !self.pending.iter().any(known) {
            let due = now + SETTLE;
            self.pending.push(Alarm { cause, whom, due });
        }
    }

    /// What is to be written now, with what else is told by the same recording taken away. One of an owner and cause that
    /// had its recording lately waits until that is `spacing` ago: its rows are kept as long.
    pub(crate) fn take_due(&mut self, now: Instant, owner_of: impl Fn(&Whom) -> Option<O>) -> Option<Alarm> {
        let pause = self.spacing.saturating_sub(SETTLE * 2);
        self.written.retain(|_, at| now.saturating_duration_since(*at) < pause);
        let key = |alarm: &Alarm| {
            let owner = owner_of(&alarm.whom);
            let nobodys = alarm.whom.process().filter(|_| owner.is_none());
            (alarm.cause, owner, nobodys)
        };
        let may = |alarm: &Alarm| alarm.cause == Cause::Webhook || !self.written.contains_key(&key(alarm));
        let place = self.pending.iter().position(|alarm| alarm.due <= now && may(alarm))?;
        let alarm = self.pending.swap_remove(place);
        let told = key(&alarm);
        if alarm.cause != Cause::Webhook {
            self.pending.retain(|other| other.due > now || key(other) != told);
            self.written.insert(told, now);
        }
        Some(alarm)
    }

    /// Forgets processes of which nothing is kept any more.
    pub(crate) fn keep_only(&mut self, is_kept: impl Fn(u32) -> bool) {
        self.dead.retain(|pid| is_kept(*pid));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    /// Processes of the same ten are one owner's; those from 1000 on are nobody's.
    fn owner(whom: &Whom) -> Option<u32> {
        match whom {
            Whom::Process(pid) => Some(pid / 10).filter(|_| *pid < 1000),
            _ => None,
        }
    }

    fn drawn(alarms: &mut Alarms<u32>, now: Instant) -> Vec<Whom> {
        std::iter::from_fn(|| alarms.take_due(now, owner))
            .map(|alarm| alarm.whom)
            .collect()
    }

    #[test]
    fn a_moment_passes_before_it_is_written() {
        let (mut alarms, now) = (Alarms::new(MINUTE), Instant::now());
        alarms.raise(Cause::Xid, Whom::Everybody, now);
        assert_eq!(drawn(&mut alarms, now), []);
        assert_eq!(drawn(&mut alarms, now + SETTLE), [Whom::Everybody]);
        assert_eq!(drawn(&mut alarms, now + MINUTE), [], "once");
    }

    #[test]
    fn all_processes_of_an_owner_that_fail_together_have_one_recording() {
        let (mut alarms, now) = (Alarms::new(MINUTE), Instant::now());
        for pid in [11, 12, 19, 21] {
            alarms.raise(Cause::FatalError, Whom::Process(pid), now);
            alarms.raise(Cause::FatalError, Whom::Process(pid), now);
        }
        assert_eq!(drawn(&mut alarms, now + SETTLE).len(), 2);
        alarms.raise(Cause::FatalError, Whom::Process(11), now + MINUTE * 9);
        assert_eq!(drawn(&mut alarms, now + MINUTE * 10), [], "it is dead, and was told");
    }

    #[test]
    fn a_process_whose_owner_is_not_known_is_not_taken_for_another() {
        let (mut alarms, now) = (Alarms::new(MINUTE), Instant::now());
        for pid in [1001, 1002] {
            alarms.raise(Cause::FatalError, Whom::Process(pid), now);
        }
        assert_eq!(drawn(&mut alarms, now + SETTLE).len(), 2);
    }

    #[test]
    fn what_happens_again_is_told_within_the_time_that_rows_are_kept() {
        let (mut alarms, now) = (Alarms::new(MINUTE), Instant::now());
        alarms.raise(Cause::OutOfMemory, Whom::Process(11), now);
        assert_eq!(drawn(&mut alarms, now + SETTLE).len(), 1);
        let again = now + SETTLE * 5;
        alarms.raise(Cause::OutOfMemory, Whom::Process(12), again);
        assert_eq!(drawn(&mut alarms, again + SETTLE), [], "it is too soon");
        assert_eq!(drawn(&mut alarms, again + MINUTE - SETTLE), [Whom::Process(12)]);
    }

    #[test]
    fn who_asks_is_answered_each_time() {
        let (mut alarms, now) = (Alarms::new(MINUTE), Instant::now());
        for at in [now, now + SETTLE * 2] {
            alarms.raise(Cause::Webhook, Whom::Asked(Ask::default()), at);
            assert_eq!(drawn(&mut alarms, at + SETTLE).len(), 1);
        }
    }

    #[test]
    fn there_are_only_so_many() {
        let (mut alarms, now) = (Alarms::<u32>::new(MINUTE), Instant::now());
        (0..5000).for_each(|pid| alarms.raise(Cause::Xid, Whom::Process(pid), now));
        assert_eq!(alarms.pending.len(), MOST);
    }
}
