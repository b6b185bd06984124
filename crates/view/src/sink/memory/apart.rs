//! One line for a call site, with the frames that tell it from the others in a list: an `alloc()` that everybody calls is
//! not one site.

use crate::frame::Frame;
use crate::frame::lines::own_path;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// Frames of a line beside the first.
const MORE: usize = 3;
/// Frames of a stack that are looked at.
const DEEP: usize = 32;
/// Frames of all stacks together; what differs beyond them is one.
const MOST: usize = 1 << 16;

/// The call sites of a list: a tree of their frames, from the line that a person looks for outward.
#[derive(Debug, Default)]
pub(crate) struct Apart {
    nodes: HashMap<(usize, String), usize>,
    /// What leads on from each; the first is the root.
    ways: Vec<Ways>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Ways {
    on: usize,
    ends: bool,
}

impl Ways {
    /// Stacks that are alike up to here differ behind it.
    fn part(self) -> bool {
        self.on + usize::from(self.ends) > 1
    }
}

impl Apart {
    /// Of these stacks, innermost frame first.
    pub(crate) fn of<'a>(stacks: impl Iterator<Item = &'a [Frame]>) -> Apart {
        let mut apart = Apart {
            ways: vec![Ways::default()],
            ..Apart::default()
        };
        stacks.for_each(|stack| apart.add(stack));
        apart
    }

    fn add(&mut self, stack: &[Frame]) {
        let mut at = 0;
        for name in own_path(stack).take(DEEP) {
            let key = (at, name);
            at = match self.nodes.get(&key) {
                Some(known) => *known,
                None if self.ways.len() >= MOST => return,
                None => {
                    self.ways[at].on += 1;
                    self.ways.push(Ways::default());
                    self.nodes.insert(key, self.ways.len() - 1);
                    self.ways.len() - 1
                }
            };
        }
        self.ways[at].ends = true;
    }

    /// Two sums of each of these call sites by their labels, largest first; of sites without a stack nothing is said.
    #[must_use]
    pub(crate) fn sums(sites: &[(&[Frame], [u64; 2])]) -> Vec<([u64; 2], String)> {
        let apart = Apart::of(sites.iter().map(|(frames, _)| *frames));
        let mut sums: BTreeMap<String, [u64; 2]> = BTreeMap::new();
        for (frames, more) in sites.iter().filter(|(frames, _)| !frames.is_empty()) {
            let sum = sums.entry(apart.label(frames)).or_default();
            *sum = [sum[0].saturating_add(more[0]), sum[1].saturating_add(more[1])];
        }
        let mut sums: Vec<([u64; 2], String)> = sums.into_iter().map(|(label, sum)| (sum, label)).collect();
        sums.sort_by_key(|(sum, _)| Reverse(*sum));
        sums
    }

    /// `pool.py:12 alloc ← train.py:40 forward`: the line that a person looks for, and where its callers part.
    #[must_use]
    pub(crate) fn label(&self, stack: &[Frame]) -> String {
        let (mut at, mut told) = (0, Vec::new());
        for name in own_path(stack).take(DEEP) {
            let wanted = told.is_empty() || self.ways.get(at).is_some_and(|ways| ways.part());
            let Some(next) = self.nodes.get(&(at, name.clone())) else {
                if told.is_empty() {
                    told.push(name);
                }
                break;
            };
            at = *next;
            if wanted {
                told.push(name);
            }
            if told.len() > MORE {
                break;
            }
        }
        told.join(" ← ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Language;

    fn frame(file: &str, line: u32, function: &str) -> Frame {
        Frame {
            function: function.to_owned(),
            module: None,
            offset: None,
            file: Some(file.to_owned()),
            line: Some(line),
            language: Language::Python,
            inlined: false,
        }
    }

    fn labels(stacks: &[&[Frame]]) -> Vec<String> {
        let apart = Apart::of(stacks.iter().copied());
        stacks.iter().map(|stack| apart.label(stack)).collect()
    }

    #[test]
    fn sites_that_share_a_helper_are_told_apart_by_where_their_callers_part() {
        let alloc = frame("pool.py", 12, "alloc");
        let cached = frame("pool.py", 30, "cached");
        let stack = |line, function| [alloc.clone(), cached.clone(), frame("train.py", line, function)];
        let (forward, backward) = (stack(40, "forward"), stack(50, "backward"));
        assert_eq!(
            labels(&[&forward, &backward]),
            [
                "pool.py:12 alloc ← train.py:40 forward",
                "pool.py:12 alloc ← train.py:50 backward"
            ]
        );
        assert_eq!(labels(&[&forward, &forward]), ["pool.py:12 alloc", "pool.py:12 alloc"]);
    }

    #[test]
    fn a_site_that_is_the_end_of_another_has_no_more_to_say() {
        let alloc = frame("pool.py", 12, "alloc");
        let long = [alloc.clone(), frame("train.py", 40, "forward")];
        assert_eq!(
            labels(&[&long[..1], &long]),
            ["pool.py:12 alloc", "pool.py:12 alloc ← train.py:40 forward"]
        );
    }

    #[test]
    fn frames_of_a_framework_tell_no_sites_apart() {
        let torch = |line| frame("/usr/lib/python3/site-packages/torch/module.py", line, "_call");
        let stack = |line| {
            [
                torch(line),
                frame("a.py", 1, "f"),
                torch(line),
                frame("a.py", 9, "main"),
            ]
        };
        assert_eq!(labels(&[&stack(1), &stack(2)]), ["a.py:1 f", "a.py:1 f"]);
    }

    #[test]
    fn without_a_stack_there_is_no_line() {
        assert_eq!(labels(&[&[]]), [""]);
    }
}
