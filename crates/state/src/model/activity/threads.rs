//! What threads that give devices work did lately: their calls, where they were outside CUDA, and whether they had a processor.
//!
//! Owns that memory, and how much of it is kept. Which gap it explains is [`super::waiting`]'s business.

use super::Cause;
use super::causes::{Asked, Outside, Spent};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

/// Threads that are told apart.
const MOST_THREADS: usize = 4096;
/// Calls of one thread, and its samples.
const MOST_CALLS: usize = 1 << 17;
const MOST_SAMPLES: usize = 1 << 12;
/// From the return of a launch until a device that waits for it begins, at the most.
const BEGINS_WITHIN_NS: u64 = 10_000;

/// What a call is to a device that waits; the first of those that are made within each other counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Does {
    Waits,
    Memory,
    Code,
    Else,
}

/// A call that has returned, CLOCK_MONOTONIC ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Called {
    pub entered: u64,
    pub returned: u64,
    pub does: Does,
    /// Where it was called from; `None`: that was not looked for.
    pub site: Option<u64>,
}

/// A thread was outside CUDA. An empty stack is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stay {
    pub from: u64,
    pub until: u64,
    /// On a processor, or away from it.
    pub running: bool,
    pub stack: Rc<str>,
}

/// A thread was looked at between calls that come soon after each other. An empty stack is not known.
#[derive(Debug, Clone)]
struct Look {
    at: u64,
    stack: Rc<str>,
}

/// What the kernel's account of a thread has grown by.
#[derive(Debug, Clone, Copy)]
struct Share {
    from: u64,
    until: u64,
    ran_ns: u64,
    /// Of the time that it waited for a processor, what explains no gap yet.
    unscheduled_ns: u64,
}

/// The account at a moment.
#[derive(Debug, Clone, Copy, Default)]
struct Account {
    at: u64,
    ran_ns: u64,
    unscheduled_ns: u64,
}

#[derive(Debug, Default)]
struct Thread {
    pid: u32,
    calls: VecDeque<Called>,
    stays: VecDeque<Stay>,
    looks: VecDeque<Look>,
    shares: VecDeque<Share>,
    before: Account,
    now: Account,
}

/// Where a thread was for most of its time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// Of the call that took most of it.
    pub site: Option<u64>,
    /// Outside calls; `None`: not sampled.
    pub stack: Option<Rc<str>>,
    /// Where it was when it was looked at between calls: each stands for the time from one look to the next, of any gaps.
    pub looks: Vec<Rc<str>>,
}

/// What threads that give devices work did lately.
#[derive(Debug, Default)]
pub(crate) struct Threads(HashMap<u32, Thread>);

impl Threads {
    fn of(&mut self, pid: u32, tid: u32) -> Option<&mut Thread> {
        if self.0.len() >= MOST_THREADS && !self.0.contains_key(&tid) {
            return None;
        }
        let thread = self.0.entry(tid).or_default();
        thread.pid = pid;
        Some(thread)
    }

    /// A call has come, in the order of entries as far as that goes.
    pub(crate) fn call(&mut self, (pid, tid): (u32, u32), called: Called) {
        if let Some(thread) = self.of(pid, tid) {
            thread.call(called);
        }
    }

    /// A sample of a thread outside CUDA.
    pub(crate) fn stay(&mut self, (pid, tid): (u32, u32), stay: Stay) {
        if let Some(thread) = self.of(pid, tid) {
            if thread.stays.len() == MOST_SAMPLES {
                thread.stays.pop_front();
            }
            thread.stays.push_back(stay);
        }
    }

    /// A look at a thread between calls, at `at`.
    pub(crate) fn look(&mut self, (pid, tid): (u32, u32), at: u64, stack: &Rc<str>) {
        if let Some(thread) = self.of(pid, tid) {
            if thread.looks.len() == MOST_SAMPLES {
                thread.looks.pop_front();
            }
            let stack = Rc::clone(stack);
            // what has no name yet comes later
            let place = thread.looks.partition_point(|look| look.at <= at);
            thread.looks.insert(place, Look { at, stack });
        }
    }

    /// The kernel's account of a thread says so now: of time on a processor, and of time that it waited for one.
    pub(crate) fn account(
        &mut self,
        (pid, tid): (u32, u32),
        at: u64,
        ran_ns: Option<u64>,
        unscheduled_ns: Option<u64>,
    ) {
        if let Some(thread) = self.of(pid, tid) {
            thread.account(at, ran_ns, unscheduled_ns);
        }
    }

    /// What ended before `until` explains nothing any more, of process `pid`.
    pub(crate) fn forget(&mut self, pid: u32, until: u64) {
        for thread in self.0.values_mut().filter(|thread| thread.pid == pid) {
            thread.forget(until);
        }
    }

    /// The same of all.
    pub(crate) fn forget_all(&mut self, until: u64) {
        self.0.values_mut().for_each(|thread| thread.forget(until));
    }

    /// What the thread of `call` did from `since` until that had an effect, at `until`; and where.
    pub(crate) fn asked(&mut self, call: &Cause, since: u64, until: u64) -> (Asked, Place) {
        let launched_at = Place {
            site: call.site,
            ..Place::default()
        };
        let Some(thread) = self.0.get_mut(&call.tid) else {
            return (Asked::Before { waits: call.waits }, launched_at);
        };
        let returned = thread.returned(call.entered);
        let is_given = call.entered <= since && returned.is_none_or(|returned| returned <= since);
        if is_given || call.waits.is_some() && returned.is_some_and(|returned| is_held_up(returned, since, until)) {
            return (Asked::Before { waits: call.waits }, launched_at);
        }
        let entered = call.entered.clamp(since, until);
        let (spent, place) = thread.spent(since, entered);
        let launching = until - entered;
        let is_most = launching >= spent.outside.ns.max(spent.waiting).max(spent.memory);
        let spent = Spent { launching, ..spent };
        let place = if is_most { launched_at } else { place.or(launched_at) };
        let looks = thread.looks(since, entered);
        (Asked::During(spent), Place { looks, ..place })
    }
}

/// Whether for most of a gap nothing of the host's was missing: its call had `returned`, and had no effect for longer than a
/// device needs to begin.
fn is_held_up(returned: u64, since: u64, until: u64) -> bool {
    let held_ns = until.saturating_sub(returned.max(since));
    held_ns > BEGINS_WITHIN_NS && held_ns >= (until - since).div_ceil(2)
}

impl Place {
    fn or(self, other: Place) -> Place {
        if self == Place::default() { other } else { self }
    }
}

impl Thread {
    fn call(&mut self, mut called: Called) {
        let place = self.calls.partition_point(|one| one.entered <= called.entered);
        if let Some(around) = place.checked_sub(1).and_then(|before| self.calls.get_mut(before))
            && around.returned >= called.returned
        {
            return around.absorb(&called);
        }
        // it has returned so late that those within it came before
        while let Some(within) = self.calls.get(place).filter(|one| one.returned <= called.returned) {
            called.absorb(within);
            self.calls.remove(place);
        }
        self.calls.insert(place, called);
        if self.calls.len() > MOST_CALLS {
            self.calls.pop_front();
        }
    }

    /// When the call that was entered then has returned; `None`: that is not known.
    fn returned(&self, entered: u64) -> Option<u64> {
        let place = self.calls.partition_point(|one| one.entered <= entered);
        let one = self.calls.get(place.checked_sub(1)?)?;
        (one.returned >= entered).then_some(one.returned)
    }

    fn account(&mut self, at: u64, ran_ns: Option<u64>, unscheduled_ns: Option<u64>) {
        if at > self.now.at {
            self.close();
            self.before = self.now;
            self.now.at = at;
        }
        self.now.ran_ns = ran_ns.unwrap_or(self.now.ran_ns);
        self.now.unscheduled_ns = unscheduled_ns.unwrap_or(self.now.unscheduled_ns);
    }

    /// What the account has grown by between its last two moments.
    fn close(&mut self) {
        let (before, now) = (self.before, self.now);
        if before.at == 0 || before.at == now.at {
            return;
        }
        if self.shares.len() == MOST_SAMPLES {
            self.shares.pop_front();
        }
        self.shares.push_back(Share {
            from: before.at,
            until: now.at,
            ran_ns: now.ran_ns.saturating_sub(before.ran_ns),
            unscheduled_ns: now.unscheduled_ns.saturating_sub(before.unscheduled_ns),
        });
        self.before = now;
    }

    fn forget(&mut self, until: u64) {
        let old = self.calls.partition_point(|one| one.returned <= until);
        self.calls.drain(..old);
        self.stays.retain(|stay| stay.until > until);
        let old = self.looks.partition_point(|look| look.at <= until);
        self.looks.drain(..old);
        let old = self.shares.partition_point(|share| share.until <= until);
        self.shares.drain(..old);
    }

    /// What it did from `since` to `until`, and where it was most.
    fn spent(&mut self, since: u64, until: u64) -> (Spent, Place) {
        let mut spent = Spent::default();
        let mut longest = (0, None);
        let newest = self.calls.partition_point(|one| one.entered < until);
        let within = self.calls.range(..newest).rev().take_while(|one| one.returned > since);
        for one in within {
            let ns = one.returned.min(until) - one.entered.max(since);
            *spent.part(one.does) += ns;
            longest = longest.max((ns, one.site));
        }
        let in_calls = spent.waiting + spent.memory + spent.code + spent.calls;
        // calls of a thread lie beside each other, unless its id is another thread's by now
        let outside_ns = (until - since).saturating_sub(in_calls);
        let (outside, stack) = self.outside(since, until, outside_ns);
        spent.outside = outside;
        let place = match outside_ns > longest.0 {
            true => Place {
                stack,
                ..Place::default()
            },
            false => Place {
                site: longest.1,
                ..Place::default()
            },
        };
        (spent, place)
    }

    /// Where it was when it was looked at from `since` to `until`.
    fn looks(&self, since: u64, until: u64) -> Vec<Rc<str>> {
        let first = self.looks.partition_point(|look| look.at <= since);
        let within = self.looks.iter().skip(first).take_while(|look| look.at <= until);
        within.map(|look| Rc::clone(&look.stack)).collect()
    }

    /// When a stay began: a sample is of its end, and stands for more time than the thread was there where it has called meanwhile.
    fn came_out(&self, stay: &Stay) -> u64 {
        let entered = self.calls.partition_point(|one| one.entered < stay.until);
        let last = entered.checked_sub(1).and_then(|last| self.calls.get(last));
        last.map_or(stay.from, |call| call.returned.clamp(stay.from, stay.until))
    }

    fn outside(&mut self, since: u64, until: u64, ns: u64) -> (Outside, Option<Rc<str>>) {
        let mut outside = Outside {
            ns,
            ..Outside::default()
        };
        let mut longest: (u64, Option<&Rc<str>>) = (0, None);
        for stay in self.stays.iter().filter(|stay| stay.from < until && stay.until > since) {
            let from = self.came_out(stay).max(since);
            let Some(within) = stay.until.min(until).checked_sub(from).filter(|ns| *ns > 0) else {
                continue;
            };
            *(if stay.running {
                &mut outside.running
            } else {
                &mut outside.asleep
            }) += within;
            if within > longest.0 && !stay.stack.is_empty() {
                longest = (within, Some(&stay.stack));
            }
        }
        let stack = longest.1.cloned();
        self.close();
        (self.scheduled(outside, since, until), stack)
    }

    /// With the kernel's account: what explains one gap explains no other.
    fn scheduled(&mut self, outside: Outside, since: u64, until: u64) -> Outside {
        let first = self.shares.partition_point(|share| share.until <= since);
        let around = self
            .shares
            .iter_mut()
            .skip(first)
            .take_while(|share| share.from < until);
        let (mut ran, mut all, mut unscheduled) = (0, 0, 0);
        let mut whose = Vec::new();
        for share in around {
            ran += share.ran_ns;
            all += share.until - share.from;
            unscheduled += share.unscheduled_ns;
            whose.push(share);
        }
        let unscheduled = unscheduled.min(outside.ns);
        let mut rest = if unscheduled >= outside.ns.div_ceil(2) {
            unscheduled
        } else {
            0
        };
        for share in whose {
            let taken = rest.min(share.unscheduled_ns);
            share.unscheduled_ns -= taken;
            rest -= taken;
        }
        Outside {
            unscheduled,
            on_processor: (all > 0).then(|| (u128::from(ran) * 1000 / u128::from(all)) as u64),
            ..outside
        }
    }
}

impl Called {
    /// One within it may say more of what it is.
    fn absorb(&mut self, within: &Called) {
        self.does = self.does.min(within.does);
        self.site = self.site.or(within.site);
    }
}

impl Spent {
    fn part(&mut self, does: Does) -> &mut u64 {
        match does {
            Does::Waits => &mut self.waiting,
            Does::Memory => &mut self.memory,
            Does::Code => &mut self.code,
            Does::Else => &mut self.calls,
        }
    }
}
