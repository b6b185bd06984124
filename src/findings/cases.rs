//! Evidence by process: what costs the time of one does not add up with what costs that of another.

use super::evidence::Evidence;
use super::scene::Seen;
use super::table::Bounded;

/// Processes that a rule tells apart.
const PROCESSES: usize = 1024;

/// See the module; `T` is what a rule keeps beside.
#[derive(Debug)]
pub struct Cases<T = ()>(Bounded<(Evidence, T)>);

impl<T: Default> Default for Cases<T> {
    fn default() -> Cases<T> {
        Cases(Bounded::new(PROCESSES))
    }
}

impl<T: Default> Cases<T> {
    /// What is known of the process of a row, if there is room.
    pub fn of(&mut self, seen: &Seen<'_>) -> Option<(&mut Evidence, &mut T)> {
        let (evidence, more) = self.0.entry(u64::from(seen.event.pid))?;
        Some((evidence, more))
    }

    /// All of them, to be changed.
    pub fn all(&mut self) -> impl Iterator<Item = &mut (Evidence, T)> {
        self.0.values_mut()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Evidence, &T)> {
        self.0
            .iter()
            .map(|(pid, (evidence, more))| (pid as u32, evidence, more))
    }

    /// The process with the most of `weight`.
    pub fn worst<W: Ord>(&self, weight: impl Fn(&Evidence, &T) -> W) -> Option<(&Evidence, &T)> {
        let all = self.0.iter().map(|(pid, (evidence, more))| (pid, evidence, more));
        let worst = all.max_by_key(|(pid, evidence, more)| (weight(evidence, more), u64::MAX - pid));
        worst.map(|(_, evidence, more)| (evidence, more))
    }

    /// The one that costs most.
    pub fn costliest(&self) -> Option<(&Evidence, &T)> {
        self.worst(|evidence, _| evidence.ns)
    }
}
