//! Where the host was outside CUDA, by samples: sums by part of a process's life, and a stack of each place.

use super::cases::{Phased, Sum};
use super::evidence::End;
use super::interner::Id;
use super::scene::Seen;
use super::table::{Bounded, hash};
use crate::frame::json::place_of;
use crate::model::outside::{Placed, Places};

/// Stacks whose places are known without looking again.
const STACKS: usize = 4096;
/// Places of one finding.
const MOST: usize = 32;

impl Sum for Places {
    fn join(&mut self, other: &Places) {
        self.merge(other);
    }
}

/// Where the host was outside CUDA.
#[derive(Debug)]
pub struct Samples {
    sums: Phased<Places>,
    /// Numbers of places from 1 on, by stack.
    by_stack: Bounded<Id>,
    /// The name of each place, and one stack that leads there.
    places: Vec<(String, Box<str>)>,
}

impl Default for Samples {
    fn default() -> Samples {
        Samples {
            sums: Phased::default(),
            by_stack: Bounded::new(STACKS),
            places: Vec::new(),
        }
    }
}

impl Samples {
    /// A row of a sample.
    pub fn take(&mut self, seen: &Seen<'_>) {
        let number = seen.event.stack.and_then(|stack| self.number(stack));
        let name = number
            .and_then(|number| self.places.get(number))
            .map(|(name, _)| name.as_str());
        if let Some((_, places)) = self.sums.of(seen) {
            places.add(name, seen.ns());
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
    pub fn of(&self, end: &End<'_>, pid: u32) -> (Vec<Placed>, u64) {
        let steady = self.sums.steady(end).find(|(one, ..)| *one == pid);
        steady.map_or_else(Default::default, |(_, _, places)| (places.top(MOST), places.samples))
    }

    /// A stack that leads to a place.
    #[must_use]
    pub fn stack(&self, placed: &Placed) -> Option<String> {
        let known = self.places.iter().find(|(name, _)| *name == placed.place);
        known.map(|(_, stack)| stack.to_string())
    }
}
