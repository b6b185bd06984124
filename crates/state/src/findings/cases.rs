//! Evidence by process: what costs the time of one does not add up with what costs that of another.

use super::evidence::{End, Evidence};
use super::seen::{Seen, Stretch};
use super::table::{Bounded, Grow};

/// Processes that a rule tells apart.
const PROCESSES: usize = 1024;

/// Evidence by process; `T` is what a rule keeps beside.
#[derive(Debug)]
pub(crate) struct Cases<T = ()>(Bounded<(Evidence, T)>);

impl<T: Default> Default for Cases<T> {
    fn default() -> Cases<T> {
        Cases(Bounded::new(PROCESSES))
    }
}

impl<T: Default> Cases<T> {
    /// What is known of the process of a row, if there is room.
    pub(crate) fn of(&mut self, seen: &Seen<'_>) -> Option<(&mut Evidence, &mut T)> {
        let (evidence, more) = self.0.entry(u64::from(seen.event.pid))?;
        Some((evidence, more))
    }

    /// All of them, to be changed.
    pub(crate) fn all(&mut self) -> impl Iterator<Item = &mut (Evidence, T)> {
        self.0.values_mut()
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Evidence, &T)> {
        self.0
            .iter()
            .map(|(pid, (evidence, more))| (pid as u32, evidence, more))
    }

    /// The process with the most of `weight`.
    pub(crate) fn worst<W: Ord>(&self, weight: impl Fn(&Evidence, &T) -> W) -> Option<(&Evidence, &T)> {
        let all = self.0.iter().map(|(pid, (evidence, more))| (pid, evidence, more));
        let worst = all.max_by_key(|(pid, evidence, more)| (weight(evidence, more), u64::MAX - pid));
        worst.map(|(_, evidence, more)| (evidence, more))
    }

    /// The one that costs most.
    pub(crate) fn costliest(&self) -> Option<(&Evidence, &T)> {
        self.worst(|evidence, _| evidence.ns)
    }
}

/// What a rule keeps of one stretch of a process's life, to be added up with that of others.
pub trait Sum: Default {
    /// What is known of another stretch counts, too.
    fn join(&mut self, other: &Self);
}

impl Sum for () {
    fn join(&mut self, (): &()) {}
}

/// The longest of some times, and whose it is.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Longest<T> {
    pub(crate) ns: u64,
    pub(crate) whose: T,
}

impl<T: Copy + Default> Sum for Longest<T> {
    fn join(&mut self, other: &Longest<T>) {
        if other.ns > self.ns {
            *self = *other;
        }
    }
}

impl Sum for u64 {
    fn join(&mut self, other: &u64) {
        self.grow(*other);
    }
}

/// Evidence by process and stretch of its life: what is known of start-up and end is left out in the end.
#[derive(Debug)]
pub(crate) struct Phased<T = ()>(Bounded<Vec<(Stretch, Evidence, T)>>);

impl<T> Default for Phased<T> {
    fn default() -> Phased<T> {
        Phased(Bounded::new(PROCESSES))
    }
}

impl<T: Sum> Phased<T> {
    /// What is known of the process of a row in the stretch of it, if there is room.
    pub(crate) fn of(&mut self, seen: &Seen<'_>) -> Option<(&mut Evidence, &mut T)> {
        self.at(seen.event.pid, seen.stretch)
    }

    /// The same of a stretch of process `pid`.
    pub(crate) fn at(&mut self, pid: u32, stretch: Stretch) -> Option<(&mut Evidence, &mut T)> {
        let known = self.0.entry(u64::from(pid))?;
        // mostly the last one; there are few, as stretches of a life are
        let place = match known.iter().rposition(|(one, ..)| *one == stretch) {
            Some(place) => place,
            None => {
                known.push((stretch, Evidence::default(), T::default()));
                known.len() - 1
            }
        };
        known.get_mut(place).map(|(_, evidence, more)| (evidence, more))
    }

    /// Of each process, what is known of its steady part.
    pub(crate) fn steady(&self, end: &End<'_>) -> impl Iterator<Item = (u32, Evidence, T)> {
        self.0.iter().map(|(pid, stretches)| {
            let (mut sum, mut more) = (Evidence::default(), T::default());
            let pid = pid as u32;
            for (_, evidence, beside) in stretches.iter().filter(|(one, ..)| end.courses.is_steady(pid, *one)) {
                sum.merge(evidence);
                more.join(beside);
            }
            (pid, sum, more)
        })
    }

    /// The process with the most of `weight` in its steady part.
    pub(crate) fn worst<W: Ord>(&self, end: &End<'_>, weight: impl Fn(&Evidence, &T) -> W) -> Option<(Evidence, T)> {
        let counts = end.courses.counting();
        let worst = self
            .steady(end)
            .filter(|(pid, ..)| counts(*pid))
            .max_by_key(|(pid, evidence, more)| (weight(evidence, more), u32::MAX - pid));
        worst.map(|(_, evidence, more)| (evidence, more))
    }

    /// The one that costs most there.
    pub(crate) fn costliest(&self, end: &End<'_>) -> Option<(Evidence, T)> {
        self.worst(end, |evidence, _| evidence.ns)
    }
}
