//! Looks at threads beside a program's Python: PyTorch's own, which runs the backward pass.
//!
//! Owns what such a thread works for: the thread of Python is taken to wait for it that slept around the look for half a second at
//! most, of several the one that slept for the shortest time. That is inferred. Where none did, the thread is named alone.
//! And what it waits for where it sleeps itself: a thread of Python that works meanwhile, where most looks saw that.

use super::{Known, Pending, STACKS, TICK_NS};
use crate::discover;
use crate::frame::{Frame, Language};
use crate::tracer::sites::SitePlane;
use std::collections::{HashMap, HashSet, VecDeque};

/// A look waits so long for who slept around it: a sleep is told at its end. Causes of idle time wait for looks a second longer.
const PATIENCE_NS: u64 = 1_000_000_000;
/// Who sleeps for longer waits for no step: then nothing can be said, as long sleeps are not told of in time.
const LONGEST_NS: u64 = PATIENCE_NS / 2;
/// Stays of one process that are remembered, of each kind.
const STAYS: usize = 4096;
/// Looks at Python stand for a sleep where they are one part of so many of it, or more: a clock that counts a thread's time on its
/// CPU is late on a busy machine.
const PARTS: u64 = 4;
/// Looks that wait.
const LOOKS: usize = 1 << 16;

/// A thread of Python was at a call site: it slept, or worked when it was looked at, at `until`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stay {
    pub tid: u32,
    pub from: u64,
    pub until: u64,
    pub site: u64,
}

impl Stay {
    fn ns(&self) -> u64 {
        self.until.saturating_sub(self.from)
    }
}

/// What threads of Python did lately, by process, in the order in which it was told.
#[derive(Debug, Default)]
struct Recent(HashMap<u32, VecDeque<Stay>>);

impl Recent {
    fn of(&self, pid: u32) -> impl Iterator<Item = &Stay> {
        self.0.get(&pid).into_iter().flatten()
    }

    fn add(&mut self, pid: u32, stay: Stay) {
        let known = self.0.entry(pid).or_default();
        if known.len() == STAYS {
            known.pop_front();
        }
        known.push_back(stay);
    }

    fn forget(&mut self, until: u64) {
        for known in self.0.values_mut() {
            known.retain(|stay| stay.until >= until);
        }
        self.0.retain(|_, known| !known.is_empty());
    }
}

/// Who worked lately.
#[derive(Debug, Default)]
struct Works(Recent);

impl Works {
    /// The call site that most looks saw between `from` and `until`, where these stand for enough of that time.
    fn within(&self, pid: u32, from: u64, until: u64) -> Option<u64> {
        let mut seen: HashMap<u64, u64> = HashMap::new();
        for work in self.0.of(pid).filter(|work| (from..=until).contains(&work.until)) {
            *seen.entry(work.site).or_default() += 1;
        }
        let looks: u64 = seen.values().sum();
        if looks * TICK_NS * PARTS < until - from {
            return None;
        }
        let most = seen.into_iter().max_by_key(|(site, number)| (*number, *site));
        most.map(|(site, _)| site)
    }

    /// The call site of the look next to that time, where one was due so soon.
    fn near(&self, pid: u32, from: u64, until: u64) -> Option<u64> {
        let apart = |work: &&Stay| work.until.saturating_sub(until).max(from.saturating_sub(work.until));
        let nearest = self.0.of(pid).min_by_key(apart)?;
        (apart(&nearest) <= TICK_NS).then_some(nearest.site)
    }
}

/// Who slept lately.
#[derive(Debug, Default)]
struct Sleeps(Recent);

impl Sleeps {
    fn add(&mut self, pid: u32, sleep: Stay) {
        let known = self.0.0.entry(pid).or_default();
        let goes_on = |one: &&mut Stay| (one.tid, one.site, one.until) == (sleep.tid, sleep.site, sleep.from);
        // a long one is told in parts
        match known.iter_mut().rev().find(goes_on) {
            Some(before) => before.until = sleep.until,
            None => self.0.add(pid, sleep),
        }
    }

    /// The call site that a thread of `pid` slept at around `at`.
    fn around(&self, pid: u32, at: u64) -> Option<u64> {
        let around = self.0.of(pid).filter(|sleep| (sleep.from..=sleep.until).contains(&at));
        let shortest = around.min_by_key(|sleep| sleep.ns())?;
        (shortest.ns() <= LONGEST_NS).then_some(shortest.site)
    }
}

/// Looks at threads beside Python.
#[derive(Default)]
pub(super) struct Beside {
    sleeps: Sleeps,
    works: Works,
    /// Those that wait for who slept around them, in the order in which they came.
    looks: VecDeque<Pending>,
    /// Names of threads: they may have ended when they are told of.
    threads: HashMap<u32, Option<Frame>>,
    /// By thread, and the site that waits for it; 0: none does.
    known: HashMap<(u32, u64), Known>,
}

impl Beside {
    /// A thread of Python of process `pid` slept.
    pub(super) fn slept(&mut self, pid: u32, sleep: Stay) {
        self.sleeps.add(pid, sleep);
    }

    /// A thread of Python of process `pid` worked when it was looked at.
    pub(super) fn worked(&mut self, pid: u32, work: Stay) {
        self.works.0.add(pid, work);
    }

    /// Such a thread was looked at, or has slept.
    pub(super) fn looked(&mut self, look: Pending) {
        let (pid, tid) = look.thread;
        self.threads.entry(tid).or_insert_with(|| thread_frame(pid, tid));
        self.looks.push_back(look);
    }

    /// Those of which it is known by now who slept around them, with its site; `last`: nothing comes any more.
    pub(super) fn settled(&mut self, now: u64, last: bool) -> Vec<Pending> {
        let is_old = |look: &mut Pending| now.saturating_sub(look.until) >= PATIENCE_NS;
        let mut settled = Vec::new();
        while let Some(look) = self.looks.pop_front_if(|look| last || is_old(look)) {
            settled.push(look);
        }
        let too_many = self.looks.len().saturating_sub(LOOKS);
        settled.extend(self.looks.drain(..too_many));
        for look in &mut settled {
            self.settle(look);
        }
        let oldest = self.looks.front().map_or(now, |look| look.until);
        // parts of a sleep that goes on are needed as long as it does
        let oldest = oldest.min(now.saturating_sub(PATIENCE_NS));
        self.sleeps.0.forget(oldest);
        self.works.0.forget(oldest.saturating_sub(PATIENCE_NS));
        settled
    }

    fn settle(&self, look: &mut Pending) {
        let pid = look.thread.0;
        if look.running {
            look.site = self.sleeps.around(pid, look.until).unwrap_or(0);
            return;
        }
        if look.ns > PATIENCE_NS {
            return; // what was seen at its begin is forgotten
        }
        let from = look.until.saturating_sub(look.ns);
        let middle = from + look.ns / 2;
        let meant = self.works.within(pid, from, look.until);
        let meant = meant.or_else(|| self.sleeps.around(pid, middle));
        let is_short = look.ns <= 2 * TICK_NS;
        let near = || is_short.then(|| self.works.near(pid, from, look.until)).flatten();
        if let Some(site) = meant.or_else(near) {
            look.site = site;
            look.beside = true;
        }
    }

    /// Lets go of threads that have ended, but for those of looks that wait.
    pub(super) fn keep_only(&mut self, living: impl Fn(u32) -> bool) {
        let untold: HashSet<u32> = self.looks.iter().map(|look| look.thread.1).collect();
        self.threads.retain(|tid, _| living(*tid) || untold.contains(tid));
        self.known.retain(|(tid, _), _| living(*tid));
    }

    /// What is shown of such a look.
    pub(super) fn shown(&mut self, look: &Pending, sites: &mut SitePlane) -> &Known {
        let tid = look.thread.1;
        let has_room = self.known.len() < STACKS || self.known.contains_key(&(tid, look.site));
        let site = if has_room { look.site } else { 0 };
        let named = || {
            let mut frames: Vec<Frame> = self.threads.get(&tid).cloned().flatten().into_iter().collect();
            let waiting = sites.name_sampled(vec![site]).pop();
            frames.extend(waiting.into_iter().flat_map(|(_, frames)| frames));
            Known::of(&frames)
        };
        self.known.entry((tid, site)).or_insert_with(named)
    }
}

/// Of native code beside Python functions say little, each is another; `pt_autograd_0` says more.
fn thread_frame(pid: u32, tid: u32) -> Option<Frame> {
    let name = discover::comm(pid, tid)?;
    Some(Frame {
        function: format!("thread {name}"),
        module: None,
        offset: None,
        file: None,
        line: None,
        language: Language::Native,
        inlined: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleep(tid: u32, from: u64, until: u64) -> Stay {
        Stay {
            tid,
            from,
            until,
            site: u64::from(tid),
        }
    }

    #[test]
    fn of_those_that_slept_around_a_look_the_one_with_the_shortest_sleep_waited() {
        let mut sleeps = Sleeps::default();
        sleeps.add(7, sleep(1, 100, 200));
        sleeps.add(7, sleep(2, 0, 900));
        sleeps.add(8, sleep(3, 140, 160));
        assert_eq!(sleeps.around(7, 150), Some(1));
        assert_eq!(sleeps.around(7, 250), Some(2));
        assert_eq!((sleeps.around(7, 901), sleeps.around(9, 150)), (None, None));
    }

    #[test]
    fn a_sleep_that_is_told_in_parts_is_as_long_as_all_of_them() {
        let mut sleeps = Sleeps::default();
        sleeps.add(7, sleep(2, 0, 200));
        sleeps.add(7, sleep(1, 50, 300));
        sleeps.add(7, sleep(2, 200, 400));
        assert_eq!(sleeps.around(7, 250), Some(1));
        assert_eq!(sleeps.around(7, 350), Some(2));
    }

    #[test]
    fn who_sleeps_for_long_waits_for_no_step() {
        let mut sleeps = Sleeps::default();
        sleeps.add(7, sleep(1, 0, LONGEST_NS + 1));
        assert_eq!(sleeps.around(7, 5), None);
        sleeps.add(7, sleep(2, 0, LONGEST_NS));
        assert_eq!(sleeps.around(7, 5), Some(2));
    }

    #[test]
    fn no_more_sleeps_are_remembered_than_there_is_room_for() {
        let mut sleeps = Sleeps::default();
        (0..2 * STAYS as u64).for_each(|at| sleeps.add(7, sleep(1, 2 * at, 2 * at + 1)));
        assert_eq!(sleeps.0.0[&7].len(), STAYS);
        sleeps.0.forget(u64::MAX);
        assert!(sleeps.0.0.is_empty());
    }

    #[test]
    fn who_sleeps_while_python_works_waits_for_that() {
        let mut works = Works::default();
        for (at, site) in [(100, 1), (200, 2), (300, 2), (400, 3)] {
            works.0.add(7, work(at, site));
        }
        assert_eq!(works.within(7, 100, 300), Some(2));
        assert_eq!(works.within(7, 110, 190), None);
        assert_eq!(works.within(7, 0, 3 * PARTS * TICK_NS), Some(2));
        assert_eq!(
            works.within(7, 0, 5 * PARTS * TICK_NS),
            None,
            "most of the time it was elsewhere"
        );
        assert_eq!(works.near(7, 110, 195), Some(2));
        assert_eq!(works.near(7, 400 + TICK_NS + 1, 400 + TICK_NS + 9), None);
        assert_eq!((works.within(8, 0, 900), works.near(8, 0, 900)), (None, None));
    }

    fn work(at: u64, site: u64) -> Stay {
        Stay {
            site,
            ..sleep(2, at, at)
        }
    }

    fn look(until: u64) -> Pending {
        Pending {
            site: 0,
            until,
            ns: 1,
            running: true,
            between: true,
            beside: true,
            waited: false,
            thread: (7, 9),
        }
    }

    #[test]
    fn a_look_waits_for_who_slept_around_it() {
        let mut beside = Beside::default();
        let sites = |settled: Vec<Pending>| settled.iter().map(|look| look.site).collect::<Vec<u64>>();
        beside.looked(look(PATIENCE_NS));
        beside.slept(7, sleep(2, PATIENCE_NS - 5, PATIENCE_NS + 5));
        assert!(beside.settled(PATIENCE_NS + 9, false).is_empty());
        beside.keep_only(|_| false);
        assert!(beside.threads.contains_key(&9), "its name is still to be told");
        assert_eq!(sites(beside.settled(2 * PATIENCE_NS, false)), [2]);
        beside.looked(look(2 * PATIENCE_NS));
        assert_eq!(sites(beside.settled(2 * PATIENCE_NS, true)), [0]);
        beside.keep_only(|_| false);
        assert!(beside.threads.is_empty());
    }

    #[test]
    fn a_sleep_is_told_by_what_python_did_meanwhile_or_as_what_it_is() {
        let asleep = |until| Pending {
            site: 55,
            ns: 100,
            running: false,
            beside: false,
            ..look(until)
        };
        let told = |beside: &mut Beside| {
            let settled = beside.settled(u64::MAX, true);
            (settled[0].site, settled[0].beside)
        };
        let mut beside = Beside::default();
        beside.looked(asleep(PATIENCE_NS));
        assert_eq!(told(&mut beside), (55, false), "its own stack");
        let mut beside = Beside::default();
        beside.worked(7, work(PATIENCE_NS - 50, 3));
        beside.slept(7, sleep(2, PATIENCE_NS - 90, PATIENCE_NS));
        beside.looked(asleep(PATIENCE_NS));
        assert_eq!(told(&mut beside), (3, true));
        let mut beside = Beside::default();
        beside.worked(7, work(PATIENCE_NS - 200, 3));
        beside.slept(7, sleep(2, PATIENCE_NS - 90, PATIENCE_NS));
        beside.looked(asleep(PATIENCE_NS));
        assert_eq!(
            told(&mut beside),
            (2, true),
            "who works before and after, and sleeps meanwhile"
        );
    }

    #[test]
    fn a_sleep_that_goes_on_is_as_long_as_it_is_where_nobody_looked_meanwhile() {
        let mut beside = Beside::default();
        let parts = LONGEST_NS / 2;
        for part in 0..6 {
            beside.slept(7, sleep(2, part * parts, (part + 1) * parts));
            beside.settled((part + 1) * parts, false);
        }
        beside.looked(look(6 * parts));
        let settled = beside.settled(u64::MAX, true);
        assert_eq!(settled[0].site, 0, "it slept for longer than anybody waits for a step");
    }
}
