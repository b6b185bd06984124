//! Where threads that call CUDA were while they were outside of it, by samples of their stacks.
//!
//! Owns the sums by place. Plain numbers: each sample stands for some time, and shares are of all of them. Who calls again within a
//! millisecond is only looked at now and then: such a look stands for all the time from one to the next, which is an estimate.

use std::collections::{BTreeMap, HashMap};

/// Rows of samples have this name.
pub const SAMPLE: &str = "host.outside";
/// And rows of looks at a thread that had called less than a millisecond before.
pub const BETWEEN: &str = "host.between";
/// From one look at a thread to the next: 99 a second.
pub const LOOK_NS: u64 = 1_000_000_000 / 99;
/// Places of one process that are told apart.
const PLACES: usize = 256;
const PROCESSES: usize = 1024;
/// Stands for places beyond these, and for stacks without a name.
pub(crate) const ELSEWHERE: &str = "elsewhere";

/// Time by place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    pub samples: u64,
    pub ns: u64,
    by: HashMap<String, u64>,
}

/// One place and the time that samples of it stand for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// `train.py:10 load_batch`, for people.
    pub place: String,
    pub ns: u64,
    /// Of all of the process: per cent.
    pub percent: u64,
}

impl Places {
    /// A sample that stands for `ns`; `place` `None`: its stack has no name.
    pub fn add(&mut self, place: Option<&str>, ns: u64) {
        self.samples = self.samples.saturating_add(1);
        self.spend(place.unwrap_or(ELSEWHERE), ns);
    }

    fn spend(&mut self, place: &str, ns: u64) {
        self.ns = self.ns.saturating_add(ns);
        let known = self.by.len() < PLACES || self.by.contains_key(place);
        let place = if known { place } else { ELSEWHERE };
        match self.by.get_mut(place) {
            Some(sum) => *sum = sum.saturating_add(ns),
            None => drop(self.by.insert(place.to_owned(), ns)),
        }
    }

    /// Those of `other` count, too.
    pub fn merge(&mut self, other: &Places) {
        self.samples = self.samples.saturating_add(other.samples);
        for (place, ns) in &other.by {
            self.spend(place, *ns);
        }
    }

    /// The places with most time first, at most `most`.
    #[must_use]
    pub fn top(&self, most: usize) -> Vec<Placed> {
        let mut all: Vec<(&String, u64)> = self.by.iter().map(|(place, ns)| (place, *ns)).collect();
        all.sort_by(|a, b| (b.1, a.0).cmp(&(a.1, b.0)));
        let percent = |ns: u64| (u128::from(ns) * 100 / u128::from(self.ns.max(1))) as u64;
        let placed = |(place, ns): (&String, u64)| Placed {
            place: place.clone(),
            ns,
            percent: percent(ns),
        };
        all.into_iter().take(most).map(placed).collect()
    }
}

/// Where the threads of a process were.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Whereabouts {
    /// While they were outside for a millisecond or more.
    pub long: Places,
    /// Between calls that came sooner: each look stands for [`LOOK_NS`].
    pub between: Places,
}

/// Of each process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outside(BTreeMap<u32, Whereabouts>);

impl Outside {
    fn of(&mut self, pid: u32) -> Option<&mut Whereabouts> {
        let has_room = self.0.len() < PROCESSES || self.0.contains_key(&pid);
        has_room.then(|| self.0.entry(pid).or_default())
    }

    /// A sample of a thread of process `pid`.
    pub fn add(&mut self, pid: u32, place: Option<&str>, ns: u64) {
        if let Some(process) = self.of(pid) {
            process.long.add(place, ns);
        }
    }

    /// A look at a thread of process `pid` between calls.
    pub fn look(&mut self, pid: u32, place: Option<&str>) {
        if let Some(process) = self.of(pid) {
            process.between.add(place, LOOK_NS);
        }
    }

    /// Those with most time first.
    #[must_use]
    pub fn processes(&self) -> Vec<(u32, &Whereabouts)> {
        let mut all: Vec<(u32, &Whereabouts)> = self.0.iter().map(|(pid, one)| (*pid, one)).collect();
        all.sort_by_key(|(pid, one)| (std::cmp::Reverse(one.long.ns.saturating_add(one.between.ns)), *pid));
        all
    }
}

/// `97 % in train.py:10 load_batch, 2 % in train.py:20 log`; places are escaped where they are made.
pub fn shares(places: &[Placed]) -> String {
    let one = |placed: &Placed| match placed.place.as_str() {
        ELSEWHERE => format!("{} % {ELSEWHERE}", placed.percent),
        place => format!("{} % in {place}", placed.percent),
    };
    // but of what is all of little, nothing would be left
    let telling = places
        .iter()
        .enumerate()
        .filter(|(place, placed)| *place == 0 || placed.percent > 0);
    let all: Vec<String> = telling.map(|(_, placed)| one(placed)).collect();
    all.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_all_samples_of_a_process() {
        let mut outside = Outside::default();
        outside.add(7, Some("train.py:10 load_batch"), 97);
        outside.add(7, None, 2);
        outside.add(7, Some("train.py:20 log"), 1);
        outside.add(8, Some("x"), 500);
        let processes = outside.processes();
        assert_eq!((processes[0].0, processes[1].0), (8, 7));
        let top = processes[1].1.long.top(2);
        let shares: Vec<(&str, u64)> = top
            .iter()
            .map(|placed| (placed.place.as_str(), placed.percent))
            .collect();
        assert_eq!(shares, [("train.py:10 load_batch", 97), (ELSEWHERE, 2)]);
    }

    #[test]
    fn places_beyond_the_bound_are_elsewhere_and_no_time_is_lost() {
        let mut places = Places::default();
        (0..2 * PLACES as u64).for_each(|place| places.add(Some(&place.to_string()), 1));
        assert_eq!((places.ns, places.samples), (2 * PLACES as u64, 2 * PLACES as u64));
        assert_eq!(places.top(1)[0].place, ELSEWHERE);
        assert!(places.top(usize::MAX).len() <= PLACES + 1);
    }

    #[test]
    fn a_look_stands_for_the_time_to_the_next_beside_what_lasts_for_long() {
        let mut outside = Outside::default();
        outside.add(7, Some("train.py:10 load_batch"), 5);
        (0..3).for_each(|_| outside.look(7, Some("train.py:30 step")));
        let processes = outside.processes();
        assert_eq!((processes[0].1.long.ns, processes[0].1.between.ns), (5, 3 * LOOK_NS));
    }

    #[test]
    fn places_of_less_than_a_hundredth_are_named_where_they_are_the_first_alone() {
        let place = |place: &str, percent| Placed {
            place: place.to_owned(),
            ns: 1,
            percent,
        };
        assert_eq!(shares(&[place("a", 99), place("b", 0)]), "99 % in a");
        assert_eq!(shares(&[place("a", 0), place("b", 0)]), "0 % in a");
    }
}
