//! The names of a symbol table, of which only parts are in memory at a time: large libraries have a hundred megabytes.

use std::ops::ControlFlow;

use super::source::Source;
use super::symbol::{Record, Table};
use super::{ElfError, ElfFile};

const WHAT: &str = "symbol names";
const LIMIT: u64 = 512 << 20;
const BLOCK: u64 = 64 << 10;
/// Linkers put names in nearly the order of their symbols, but share those that several have: this many blocks are
/// enough to read most tables once.
const BLOCKS: usize = 128;
/// What is read beyond a few times the table before all of it is kept, as its names are in no order.
const PATIENCE: u64 = 64 << 20;
const LONGEST_NAME: usize = 1 << 20;

struct SymbolNames<'a> {
    source: &'a Source,
    at: u64,
    size: u64,
    /// The number and bytes of a block, each at the place that its number gives.
    blocks: Vec<Option<(u64, Vec<u8>)>>,
    /// A name that lies in several blocks.
    joined: Vec<u8>,
    read: u64,
}

impl ElfFile {
    /// Calls `visit` with each symbol that has a name.
    pub(super) fn named_records(
        &self,
        table: &Table,
        visit: &mut dyn FnMut(&Record, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), ElfError> {
        let mut names = SymbolNames::new(&self.source, table, BLOCKS)?;
        let mut failed = None;
        self.records(table, &mut |record| match names.get(record.name) {
            Ok(Some(name)) if !name.is_empty() => visit(record, name),
            Ok(_) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        })?;
        failed.map_or(Ok(()), Err)
    }
}

impl<'a> SymbolNames<'a> {
    fn new(source: &'a Source, table: &Table, blocks: usize) -> Result<SymbolNames<'a>, ElfError> {
        let (at, size) = (table.names, table.names_size);
        source.check(WHAT, at, size)?;
        if size > LIMIT {
            return Err(ElfError::TooLarge {
                what: WHAT,
                size,
                limit: LIMIT,
            });
        }
        Ok(SymbolNames {
            source,
            at,
            size,
            blocks: vec![None; blocks],
            joined: Vec::new(),
            read: 0,
        })
    }

    /// The name that begins at `offset`; `None`: there is none, or it has no end.
    fn get(&mut self, offset: u32) -> Result<Option<&[u8]>, ElfError> {
        let offset = u64::from(offset);
        self.load(offset)?;
        let Some(end) = memchr::memchr(0, self.bytes_at(offset)) else {
            return self.join(offset);
        };
        Ok(self.bytes_at(offset).get(..end))
    }

    fn join(&mut self, mut offset: u64) -> Result<Option<&[u8]>, ElfError> {
        self.joined.clear();
        while offset < self.size && self.joined.len() <= LONGEST_NAME {
            self.load(offset)?;
            let mut joined = std::mem::take(&mut self.joined);
            let bytes = self.bytes_at(offset);
            let end = memchr::memchr(0, bytes);
            joined.extend(bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default());
            self.joined = joined;
            if end.is_some() {
                return Ok(Some(&self.joined));
            }
            offset = (offset / BLOCK + 1) * BLOCK;
        }
        Ok(None)
    }

    /// What is loaded from `offset` to the end of its block.
    fn bytes_at(&self, offset: u64) -> &[u8] {
        let number = offset / BLOCK;
        let block = self.blocks.get(self.place(number)).and_then(Option::as_ref);
        let bytes = block
            .filter(|(loaded, _)| *loaded == number)
            .map(|(_, bytes)| bytes.as_slice());
        bytes
            .and_then(|bytes| bytes.get((offset % BLOCK) as usize..))
            .unwrap_or_default()
    }

    fn place(&self, number: u64) -> usize {
        (number % self.blocks.len() as u64) as usize
    }

    fn load(&mut self, offset: u64) -> Result<(), ElfError> {
        if offset >= self.size || !self.bytes_at(offset).is_empty() {
            return Ok(());
        }
        if self.read > 4 * self.size + PATIENCE {
            self.blocks = vec![None; self.size.div_ceil(BLOCK) as usize];
            self.read = 0;
        }
        let number = offset / BLOCK;
        let size = (self.size - number * BLOCK).min(BLOCK);
        let bytes = self.source.read(WHAT, self.at + number * BLOCK, size, BLOCK)?;
        self.read += size;
        let place = self.place(number);
        if let Some(block) = self.blocks.get_mut(place) {
            *block = Some((number, bytes));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn table(size: u64) -> Table {
        Table {
            symbols: 0,
            size: 0,
            names: 3,
            names_size: size,
        }
    }

    #[test]
    fn names_across_blocks_are_whole_and_those_without_end_are_none() {
        let mut bytes = vec![b'x'; 3 * BLOCK as usize];
        bytes[3 + 7] = 0;
        bytes[3 + 2 * BLOCK as usize] = 0;
        let source = Source::from_bytes(bytes);
        let mut names = SymbolNames::new(&source, &table(3 * BLOCK - 3), 2).unwrap();
        let mut length = |at: u64| names.get(at as u32).unwrap().map(<[u8]>::len);
        assert_eq!(
            (length(0), length(7), length(8)),
            (Some(7), Some(0), Some(2 * BLOCK as usize - 8))
        );
        assert_eq!((length(2 * BLOCK + 1), length(3 * BLOCK)), (None, None));
    }

    proptest! {
        #[test]
        fn names_are_those_of_the_whole_table(
            ends in proptest::collection::vec(0_usize..5 * BLOCK as usize, 0..40),
            asked in proptest::collection::vec(0_u32..6 * BLOCK as u32, 1..60),
            patience in 0_u64..3,
        ) {
            let mut bytes = vec![b'x'; 5 * BLOCK as usize];
            ends.iter().for_each(|end| bytes[*end] = 0);
            let source = Source::from_bytes(bytes.clone());
            let mut names = SymbolNames::new(&source, &table(5 * BLOCK - 3), 2).unwrap();
            for at in asked {
                names.read += patience * PATIENCE;
                let expected = super::super::bytes::until_nul(&bytes[3..], at as usize);
                prop_assert_eq!(names.get(at).unwrap(), expected);
            }
        }
    }
}
