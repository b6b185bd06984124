//! Where the host was outside CUDA, by samples: sums by part of a process's life, and a stack of each place. Where it is known which
//! thread kept its device waiting, and when, sums are of that thread at that time: others may have waited for it.

use super::cases::{Phased, Sum};
use super::evidence::End;
use super::interner::Id;
use super::seen::Seen;
use super::table::{Bounded, hash, is_percent};
use crate::frame::json::place_of;
use crate::model::outside::{BETWEEN, LOOK_NS, Placed, Places, shares};
use crate::record::Record;
use crate::text::quantity::{duration, plural};
use std::collections::{HashMap, VecDeque};

/// Stacks whose places are known without looking again.
const STACKS: usize = 4096;
/// Places of one finding.
const MOST: usize = 32;
/// Places that a sentence names.
const NAMED: usize = 3;
/// So many samples, and such a part of the time that is lost, make a place the one that is named first: few samples in a row
/// are of one moment.
const TELLING_SAMPLES: u64 = 5;
const TELLING_PERCENT: u64 = 20;
/// Samples that gaps may still be told of, which come some seconds later.
const RECENT: usize = 1 << 15;
/// No sample is longer.
const LONGEST_NS: i64 = 1_000_000_000;

impl Sum for Places {
    fn join(&mut self, other: &Places) {
        self.merge(other);
    }
}

/// A sample of a thread.
#[derive(Debug, Clone, Copy)]
struct Recent {
    end: i64,
    /// Index of its place.
    place: Option<usize>,
    /// What it stands for.
    ns: u64,
}

impl Recent {
    /// What it stands for of a gap. The thread was seen there at its end and, where it stands for more than the time from one look to
    /// the next, at each look before: before those it may have been anywhere.
    fn within(&self, gap: &Record<'_>) -> u64 {
        let looks = (self.ns.saturating_add(LOOK_NS / 2) / LOOK_NS).max(1);
        let step = (self.ns / looks).max(1);
        let looks_after = |at: i64| {
            let ns = u64::try_from(self.end.saturating_sub(at)).unwrap_or(0);
            ns.div_ceil(step).min(looks)
        };
        (looks_after(gap.at) - looks_after(gap.end())) * step
    }
}

/// Where a process was outside CUDA, as far as that was sampled.
#[derive(Debug, Default)]
pub(crate) struct Sampled {
    /// Most time first.
    pub(crate) places: Vec<Placed>,
    pub(crate) samples: u64,
    /// What the samples stand for, in all.
    pub(crate) ns: u64,
}

impl Sampled {
    /// What the host did meanwhile, of a time that was lost.
    pub(crate) fn words(&self, lost_ns: u64) -> String {
        if self.places.is_empty() {
            return "what it did there was not sampled".to_owned();
        }
        let where_it_was = shares(&self.places[..self.places.len().min(NAMED)]);
        let samples = plural(self.samples, "sample");
        match self.stands_for(lost_ns) {
            true => format!("where it was: {where_it_was} (of {samples})"),
            false => format!(
                "where it was: {where_it_was} (of {samples}, which stand for {} of that time only)",
                duration(self.ns)
            ),
        }
    }

    fn stands_for(&self, lost_ns: u64) -> bool {
        is_percent(self.ns, lost_ns, TELLING_PERCENT)
    }
}

/// Where the host was outside CUDA.
#[derive(Debug)]
pub(crate) struct Samples {
    sums: Phased<Places>,
    /// The same of threads that ended a gap, during it.
    in_gaps: Phased<Places>,
    /// By thread, in the order of their ends.
    recent: HashMap<(u32, u32), VecDeque<Recent>>,
    recent_count: usize,
    /// Numbers of places from 1 on, by stack.
    by_stack: Bounded<Id>,
    /// The name of each place, and one stack that leads there.
    places: Vec<(String, Box<str>)>,
}

impl Default for Samples {
    fn default() -> Samples {
        Samples {
            sums: Phased::default(),
            in_gaps: Phased::default(),
            recent: HashMap::new(),
            recent_count: 0,
            by_stack: Bounded::new(STACKS),
            places: Vec::new(),
        }
    }
}

impl Samples {
    /// A row of a sample.
    pub(crate) fn take(&mut self, seen: &Seen<'_>) {
        let ns = if seen.event.name == BETWEEN { LOOK_NS } else { seen.ns() };
        let number = seen.event.stack.and_then(|stack| self.number(stack));
        let name = number
            .and_then(|number| self.places.get(number))
            .map(|(name, _)| name.as_str());
        if let Some((_, places)) = self.sums.of(seen) {
            places.add(name, ns);
        }
        self.keep(
            thread(seen.event),
            Recent {
                end: seen.event.end(),
                place: number,
                ns,
            },
        );
    }

    /// Those whose stacks had no names yet come later than others.
    fn keep(&mut self, thread: (u32, u32), recent: Recent) {
        if self.recent_count == RECENT {
            self.forget(thread);
        }
        let own = self.recent.entry(thread).or_default();
        let place = own.partition_point(|one| one.end <= recent.end);
        own.insert(place, recent);
        self.recent_count += 1;
    }

    /// The oldest of this thread, or of the one that has most.
    fn forget(&mut self, thread: (u32, u32)) {
        let most = || self.recent.iter().max_by_key(|(_, own)| own.len()).map(|(key, _)| *key);
        let Some(key) = self.recent.contains_key(&thread).then_some(thread).or_else(most) else {
            return;
        };
        let Some(own) = self.recent.get_mut(&key) else {
            return;
        };
        self.recent_count -= usize::from(own.pop_front().is_some());
        if own.is_empty() {
            self.recent.remove(&key);
        }
    }

    /// A row of a gap that a thread has ended.
    pub(crate) fn gap(&mut self, seen: &Seen<'_>) {
        let (gap, places) = (seen.event, &self.places);
        let Some((_, sum)) = self.in_gaps.of(seen) else {
            return;
        };
        let Some(own) = self.recent.get(&thread(gap)) else {
            return;
        };
        let first = own.partition_point(|sample| sample.end <= gap.at);
        let last = gap.end().saturating_add(LONGEST_NS);
        for sample in own.range(first..).take_while(|sample| sample.end <= last) {
            let ns = sample.within(gap);
            if ns > 0 {
                let place = sample.place.and_then(|place| places.get(place));
                sum.add(place.map(|(name, _)| name.as_str()), ns);
            }
        }
    }

    /// The index of the place of a stack.
    fn number(&mut self, stack: &str) -> Option<usize> {
        let known = self.by_stack.entry(hash(stack))?;
        if *known == 0 {
            let name = place_of(stack)?;
            let index = self
                .places
                .iter()
                .position(|(one, _)| *one == name)
                .unwrap_or(self.places.len());
            if index == self.places.len() {
                self.places.push((name, stack.into()));
            }
            *known = index as Id + 1;
        }
        Some(*known as usize - 1)
    }

    /// Of the steady part of a process.
    #[must_use]
    pub(crate) fn at_any_time(&self, end: &End<'_>, pid: u32) -> Sampled {
        sampled(&self.sums, end, pid)
    }

    /// Of the threads that ended gaps of the steady part of a process, during these.
    #[must_use]
    pub(crate) fn in_gaps(&self, end: &End<'_>, pid: u32) -> Sampled {
        sampled(&self.in_gaps, end, pid)
    }

    /// A stack that leads to the first place, where that has much of the samples, and these may stand for all of a time that was lost.
    #[must_use]
    pub(crate) fn site(&self, sampled: &Sampled, lost_ns: u64) -> Option<String> {
        let first = sampled.places.first()?;
        let is_much = first.percent >= TELLING_PERCENT;
        if sampled.samples < TELLING_SAMPLES || !is_much || !sampled.stands_for(lost_ns) {
            return None;
        }
        let known = self.places.iter().find(|(name, _)| *name == first.place);
        known.map(|(_, stack)| stack.to_string())
    }
}

fn sampled(sums: &Phased<Places>, end: &End<'_>, pid: u32) -> Sampled {
    let steady = sums.steady(end).find(|(one, ..)| *one == pid);
    steady.map_or_else(Sampled::default, |(_, _, places)| Sampled {
        places: places.top(MOST),
        samples: places.samples,
        ns: places.ns,
    })
}

fn thread(event: &Record<'_>) -> (u32, u32) {
    (event.pid, event.tid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Kind;

    const MS: i64 = 1_000_000;

    #[test]
    fn a_sample_is_of_the_moments_at_which_the_thread_was_seen() {
        let gap = |at: i64, ms: u64| Record {
            ns: Some(ms * MS as u64),
            ..Record::new(Kind::Idle, at * MS, 7)
        };
        let sample = |end: i64, ns: u64| Recent {
            end: end * MS,
            place: None,
            ns,
        };
        // it called between the two gaps
        let short = sample(20, LOOK_NS);
        assert_eq!(short.within(&gap(5, 10)), 0);
        assert_eq!(short.within(&gap(18, 10)), LOOK_NS);
        assert_eq!(short.within(&gap(10, 10)), LOOK_NS, "a gap is over behind its end");
        assert_eq!(short.within(&gap(20, 10)), 0);
        let long = sample(100, 5 * LOOK_NS);
        assert_eq!(long.within(&gap(0, 200)), 5 * LOOK_NS);
        assert_eq!(long.within(&gap(75, 200)), 3 * LOOK_NS);
        assert_eq!(long.within(&gap(70, 20)), 2 * LOOK_NS);
        assert_eq!(sample(20, 0).within(&gap(0, 200)), 1, "of no time at all");
    }
}
