//! Where the host was outside CUDA, by samples: sums by part of a process's life, and a stack of each place. Where it is known which
//! thread kept its device waiting, and when, sums are of that thread at that time: others may have waited for it.

use super::cases::{Phased, Sum};
use super::evidence::End;
use super::interner::Id;
use super::seen::Seen;
use super::table::{Bounded, hash};
use crate::frame::json::place_of;
use crate::model::outside::{Placed, Places};
use crate::record::Record;
use std::collections::VecDeque;

/// Stacks whose places are known without looking again.
const STACKS: usize = 4096;
/// Places of one finding.
const MOST: usize = 32;
/// Samples that gaps may still be told of, which come some seconds later.
const RECENT: usize = 1 << 13;
/// Samples of several threads come in their order but for so much: none is longer.
const OUT_OF_ORDER_NS: i64 = 1_000_000_000;

impl Sum for Places {
    fn join(&mut self, other: &Places) {
        self.merge(other);
    }
}

/// A sample of a thread.
#[derive(Debug, Clone, Copy)]
struct Recent {
    thread: (u32, u32),
    at: i64,
    end: i64,
    /// Index of its place.
    place: Option<usize>,
}

/// Where the host was outside CUDA.
#[derive(Debug)]
pub(crate) struct Samples {
    sums: Phased<Places>,
    /// The same of threads that ended a gap, during it.
    in_gaps: Phased<Places>,
    recent: VecDeque<Recent>,
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
            recent: VecDeque::new(),
            by_stack: Bounded::new(STACKS),
            places: Vec::new(),
        }
    }
}

impl Samples {
    /// A row of a sample.
    pub(crate) fn take(&mut self, seen: &Seen<'_>) {
        let number = seen.event.stack.and_then(|stack| self.number(stack));
        let name = number
            .and_then(|number| self.places.get(number))
            .map(|(name, _)| name.as_str());
        if let Some((_, places)) = self.sums.of(seen) {
            places.add(name, seen.ns());
        }
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(Recent {
            thread: thread(seen.event),
            at: seen.event.at,
            end: seen.event.end(),
            place: number,
        });
    }

    /// A row of a gap that a thread has ended.
    pub(crate) fn gap(&mut self, seen: &Seen<'_>) {
        let (gap, places) = (seen.event, &self.places);
        let Some((_, sum)) = self.in_gaps.of(seen) else {
            return;
        };
        let from = gap.at.saturating_sub(OUT_OF_ORDER_NS);
        let lately = self.recent.iter().rev().take_while(|sample| sample.end >= from);
        for sample in lately.filter(|sample| sample.thread == thread(gap)) {
            let within = sample.end.min(gap.end()).saturating_sub(sample.at.max(gap.at));
            if let Some(ns) = u64::try_from(within).ok().filter(|ns| *ns > 0) {
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

    /// Places of the steady part of a process, most time first, and how many samples that were.
    #[must_use]
    pub(crate) fn of(&self, end: &End<'_>, pid: u32) -> (Vec<Placed>, u64) {
        let of = |sums: &Phased<Places>| sums.steady(end).find(|(one, ..)| *one == pid);
        let in_gaps = of(&self.in_gaps).filter(|(_, _, places)| places.samples > 0);
        let steady = in_gaps.or_else(|| of(&self.sums));
        steady.map_or_else(Default::default, |(_, _, places)| (places.top(MOST), places.samples))
    }

    /// A stack that leads to a place.
    #[must_use]
    pub(crate) fn stack(&self, placed: &Placed) -> Option<String> {
        let known = self.places.iter().find(|(name, _)| *name == placed.place);
        known.map(|(_, stack)| stack.to_string())
    }
}

fn thread(event: &Record<'_>) -> (u32, u32) {
    (event.pid, event.tid)
}
