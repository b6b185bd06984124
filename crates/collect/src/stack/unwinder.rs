//! The native stack of a thread of another process that stands still, by the unwind information that its modules carry: with
//! or without frame pointers.
//!
//! Owns what was learnt of a process's code. All that is read may be anything, and changes while it is read.

use super::memory::Memory;
use super::regions::{Region, region_at};
use super::rule::{self, Registers, Rule};
use std::collections::HashMap;

/// Addresses that are remembered.
const MOST_RULES: usize = 1 << 16;

/// Of one process, as long as what it maps stays.
#[derive(Default)]
pub(crate) struct Unwinder {
    regions: Vec<Region>,
    /// The sorted tables of modules, by where these begin.
    indexes: HashMap<u64, Option<u64>>,
    rules: HashMap<u64, Option<Rule>>,
}

/// Return addresses, innermost first.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Walked {
    pub addresses: Vec<u64>,
    /// There are more, which could not be found.
    pub is_cut: bool,
}

impl Unwinder {
    /// For a process that maps this.
    pub(crate) fn new(regions: Vec<Region>) -> Unwinder {
        Unwinder {
            regions,
            ..Unwinder::default()
        }
    }

    /// Whether code is known at an address.
    pub(crate) fn knows(&self, pc: u64) -> bool {
        region_at(&self.regions, pc).is_some_and(|region| region.executable)
    }

    /// What people call the module that an address lies in.
    pub(crate) fn module(&self, pc: u64) -> Option<String> {
        region_at(&self.regions, pc).map(Region::module)
    }

    /// Where a thread is, and where its functions return to; those of the module `left_out` are not told.
    pub(crate) fn walk(&mut self, memory: &impl Memory, from: Registers, most: usize, left_out: &str) -> Walked {
        let mut walked = Walked::default();
        let (mut at, mut is_innermost) = (from, true);
        while walked.addresses.len() < most {
            if region_at(&self.regions, at.pc).is_none_or(|region| region.module() != left_out) {
                walked.addresses.push(at.pc);
            }
            // what a call returns to may be another function's
            let pc = if is_innermost { at.pc } else { at.pc - 1 };
            is_innermost = false;
            let rule = self.rule(memory, pc);
            let caller = rule.as_ref().and_then(|rule| rule.step(memory, at));
            let Some(caller) = caller.filter(|caller| self.knows(caller.pc)) else {
                walked.is_cut = rule.is_none_or(|rule| !rule.is_first());
                break;
            };
            at = caller;
        }
        walked
    }

    fn rule(&mut self, memory: &impl Memory, pc: u64) -> Option<Rule> {
        if let Some(known) = self.rules.get(&pc) {
            return known.clone();
        }
        let index = self.module_of(pc).and_then(|base| {
            let read = || rule::index_of(memory, base);
            *self.indexes.entry(base).or_insert_with(read)
        });
        let rule = index.and_then(|index| Rule::of(memory, index, pc));
        if self.rules.len() >= MOST_RULES {
            self.rules.clear();
        }
        self.rules.insert(pc, rule.clone());
        rule
    }

    /// Where the module that holds an address begins.
    fn module_of(&self, pc: u64) -> Option<u64> {
        let region = region_at(&self.regions, pc)?;
        let Some(file) = region.file() else {
            return Some(region.start);
        };
        let after = self.regions.partition_point(|other| other.start <= pc);
        let before = self.regions[..after].iter().rev();
        let first = before.take_while(|other| other.inode == 0 || other.file().as_ref() == Some(&file));
        first
            .filter(|other| other.inode != 0 && other.offset == 0)
            .last()
            .map(|first| first.start)
    }
}
