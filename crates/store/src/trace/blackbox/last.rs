//! The last moments of one process.

use super::block::{Block, Loose};
use crate::record::Record;
use arrow_schema::SchemaRef;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Loose rows of a process beyond this are packed at once.
const MOST_LOOSE: usize = 1 << 20;

/// The last moments of one process.
#[derive(Default)]
pub(super) struct Last {
    /// `None`: there were none when they were packed last.
    loose: Option<Loose>,
    blocks: VecDeque<Block>,
    packed: usize,
    /// Whatever was entered later is kept, CLOCK_MONOTONIC ns; `None`: nothing was forgotten.
    from: Option<u64>,
}

impl Last {
    /// Of a process of which something may have been forgotten before `from`.
    pub(super) fn from_then(from: Option<u64>) -> Last {
        Last {
            from,
            ..Last::default()
        }
    }

    pub(super) fn push(&mut self, record: &Record<'_>, schema: &SchemaRef) {
        let loose = self.loose.get_or_insert_with(|| Loose::new(schema));
        loose.push(record);
        if loose.bytes() > MOST_LOOSE {
            self.pack(schema);
        }
    }

    /// Packs loose rows; where there are none, nothing is kept ready for more.
    pub(super) fn pack(&mut self, schema: &SchemaRef) {
        match self.loose.as_mut().and_then(|loose| loose.pack(schema)) {
            Some(block) => {
                self.packed += block.size();
                self.blocks.push_back(block);
            }
            None => self.loose = None,
        }
    }

    /// Forgets what is older than `time`.
    pub(super) fn forget(&mut self, now: Instant, time: Duration) {
        let is_old = |block: &mut Block| now.saturating_duration_since(block.until) > time;
        while let Some(block) = self.blocks.pop_front_if(is_old) {
            self.forgotten(&block);
        }
    }

    /// Drops the oldest block before its time.
    pub(super) fn drop_oldest(&mut self) -> Option<Block> {
        let block = self.blocks.pop_front()?;
        self.forgotten(&block);
        Some(block)
    }

    fn forgotten(&mut self, block: &Block) {
        self.packed -= block.size();
        self.from = Some(block.until_ns);
    }

    pub(super) fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.blocks.iter()
    }

    pub(super) fn from(&self) -> Option<u64> {
        self.from
    }

    pub(super) fn loose(&self) -> usize {
        self.loose.as_ref().map_or(0, Loose::bytes)
    }

    pub(super) fn packed(&self) -> usize {
        self.packed
    }

    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.loose.is_none()
    }
}
