//! Physical memory of the virtual-memory API: it lives while it has a handle or a mapping, and is counted once.

use super::ledger::Live;
use std::collections::{BTreeMap, HashMap};

/// Physical memory.
#[derive(Debug, Clone, Copy)]
struct Block {
    live: Live,
    handles: u32,
    mappings: u32,
}

#[derive(Debug, Clone, Copy)]
struct Handle {
    block: u32,
    references: u32,
}

#[derive(Debug, Clone, Copy)]
struct Mapping {
    bytes: u64,
    /// `None`: of memory that was never seen made.
    block: Option<u32>,
    live: Live,
}

/// Physical memory, its handles and its mappings.
#[derive(Debug, Default)]
pub struct Physical {
    blocks: HashMap<u32, Block>,
    next: u32,
    handles: HashMap<u64, Handle>,
    /// Handles handed out again while their release was on its way.
    displaced: Vec<(u64, Handle, u64)>,
    mappings: BTreeMap<u64, Mapping>,
}

/// What a release or unmap brought to an end.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Gone {
    pub blocks: Vec<Live>,
    pub mappings: Vec<Live>,
    /// Where these began.
    pub addresses: Vec<u64>,
    /// Nothing of the kind was known.
    pub unknown: bool,
}

impl Physical {
    /// New memory under a handle.
    pub fn create(&mut self, handle: u64, live: Live) {
        let block = self.next;
        self.next = self.next.wrapping_add(1);
        let (handles, mappings) = (1, 0);
        self.blocks.insert(
            block,
            Block {
                live,
                handles,
                mappings,
            },
        );
        let new = Handle { block, references: 1 };
        if let Some(old) = self.handles.insert(handle, new) {
            self.displaced.push((handle, old, live.at));
        }
    }

    /// One more handle of what is mapped at `address`, if anything is known to be.
    pub fn retain(&mut self, handle: u64, address: u64) {
        let Some(block) = self.mapping_at(address).and_then(|mapping| mapping.block) else {
            return;
        };
        if let Some(block) = self.blocks.get_mut(&block) {
            block.handles += 1;
        }
        let fresh = Handle { block, references: 0 };
        self.handles.entry(handle).or_insert(fresh).references += 1;
    }

    fn mapping_at(&self, address: u64) -> Option<&Mapping> {
        let (start, mapping) = self.mappings.range(..=address).next_back()?;
        (address - start < mapping.bytes).then_some(mapping)
    }

    /// Whether something has this handle.
    pub fn has(&self, handle: u64) -> bool {
        self.handles.contains_key(&handle)
    }

    /// A handle is given back by a call entered at `entered`.
    pub fn release(&mut self, handle: u64, entered: u64) -> Gone {
        let older = self
            .displaced
            .iter()
            .position(|(key, _, at)| *key == handle && entered < *at);
        if let Some(index) = older {
            let (_, old, _) = self.displaced.swap_remove(index);
            return self.drop_handles(old.block, 1);
        }
        let Some(known) = self.handles.get_mut(&handle) else {
            return Gone {
                unknown: true,
                ..Gone::default()
            };
        };
        known.references -= 1;
        let (block, last) = (known.block, known.references == 0);
        if last {
            self.handles.remove(&handle);
        }
        self.drop_handles(block, 1)
    }

    fn drop_handles(&mut self, block: u32, count: u32) -> Gone {
        if let Some(block) = self.blocks.get_mut(&block) {
            block.handles = block.handles.saturating_sub(count);
        }
        let mut gone = Gone::default();
        self.collect(block, &mut gone);
        gone
    }

    /// Memory that nothing refers to is gone.
    fn collect(&mut self, block: u32, gone: &mut Gone) {
        let unused = |block: &Block| block.handles == 0 && block.mappings == 0;
        if self.blocks.get(&block).is_some_and(unused) {
            gone.blocks.extend(self.blocks.remove(&block).map(|block| block.live));
        }
    }

    /// Memory appears at an address.
    pub fn map(&mut self, address: u64, bytes: u64, handle: u64, live: Live) {
        let block = self.handles.get(&handle).map(|handle| handle.block);
        if let Some(block) = block.and_then(|block| self.blocks.get_mut(&block)) {
            block.mappings += 1;
        }
        self.mappings.insert(address, Mapping { bytes, block, live });
    }

    /// What was mapped in a range of addresses disappears from there.
    pub(crate) fn unmap(&mut self, address: u64, bytes: u64) -> Gone {
        let end = address.saturating_add(bytes);
        let starts: Vec<u64> = self.mappings.range(address..end).map(|(start, _)| *start).collect();
        let mut gone = Gone {
            unknown: starts.is_empty(),
            ..Gone::default()
        };
        for start in starts {
            let Some(mapping) = self.mappings.remove(&start) else {
                continue;
            };
            gone.mappings.push(mapping.live);
            gone.addresses.push(start);
            if let Some(block) = mapping.block {
                if let Some(block) = self.blocks.get_mut(&block) {
                    block.mappings = block.mappings.saturating_sub(1);
                }
                self.collect(block, &mut gone);
            }
        }
        gone
    }

    /// Gives up waiting for releases of handles displaced before `horizon`: what they held alone is gone.
    pub(crate) fn settle_displaced(&mut self, horizon: u64) -> Vec<Live> {
        let (due, waiting) = std::mem::take(&mut self.displaced)
            .into_iter()
            .partition(|(_, _, at)| *at < horizon);
        self.displaced = waiting;
        let due: Vec<(u64, Handle, u64)> = due;
        due.into_iter()
            .flat_map(|(_, old, _)| self.drop_handles(old.block, old.references).blocks)
            .collect()
    }

    /// Where memory is mapped: addresses and bytes.
    pub fn mapped(&self) -> impl Iterator<Item = (u64, u64)> {
        self.mappings.iter().map(|(start, mapping)| (*start, mapping.bytes))
    }

    /// All memory, each with the lowest address that it is mapped at.
    pub fn placed(&self) -> Vec<(Option<u64>, &Live)> {
        let mut lowest: HashMap<u32, u64> = HashMap::new();
        for (address, mapping) in &self.mappings {
            if let Some(block) = mapping.block {
                lowest.entry(block).or_insert(*address);
            }
        }
        let blocks = self.blocks.iter();
        blocks
            .map(|(number, block)| (lowest.get(number).copied(), &block.live))
            .collect()
    }

    /// All memory and mappings.
    pub fn live(&self) -> impl Iterator<Item = &Live> {
        let blocks = self.blocks.values().map(|block| &block.live);
        blocks.chain(self.mappings.values().map(|mapping| &mapping.live))
    }
}
