//! What the dynamic linker reads: the SONAME and, for files without sections, where the symbols are.

use object::elf;

use super::ElfError;
use super::bytes::{printable, u32_at, u64_at, until_nul};
use super::layout::Layout;
use super::source::Source;

const DYNAMIC_LIMIT: u64 = 1 << 20;
const NAME_LIMIT: usize = 4096;
/// Chains longer than this would be of a table larger than any the symbol reader accepts.
const MOST_CHAINED: u64 = 1 << 24;

#[derive(Debug, Default)]
pub(super) struct Dynamic {
    pub soname: Option<String>,
    pub symbols: Option<u64>,
    pub strings: Option<u64>,
    pub strings_size: u64,
    gnu_hash: Option<u64>,
    hash: Option<u64>,
}

impl Dynamic {
    pub(super) fn read(source: &Source, layout: &Layout) -> Result<Self, ElfError> {
        let mut found = Self::default();
        let Some(segment) = layout.segments.iter().find(|s| s.kind == elf::PT_DYNAMIC) else {
            return Ok(found);
        };
        let table = source.read("the dynamic table", segment.offset, segment.size, DYNAMIC_LIMIT)?;
        let mut soname = None;
        for record in table.chunks_exact(16) {
            let (Some(tag), Some(value)) = (u64_at(record, 0), u64_at(record, 8)) else {
                break;
            };
            let place = layout.offset_of(value);
            match tag.cast_signed() {
                elf::DT_NULL => break,
                elf::DT_SONAME => soname = Some(value),
                elf::DT_STRTAB => found.strings = place,
                elf::DT_STRSZ => found.strings_size = value,
                elf::DT_SYMTAB => found.symbols = place,
                elf::DT_HASH => found.hash = place,
                elf::DT_GNU_HASH => found.gnu_hash = place,
                _ => {}
            }
        }
        found.soname = match (soname, found.strings) {
            (Some(name), Some(strings)) => name_at(source, strings.saturating_add(name))?,
            _ => None,
        };
        Ok(found)
    }
}

impl Dynamic {
    /// How many symbols there are: only the hash tables tell, where no section does.
    pub(super) fn symbol_count(&self, source: &Source) -> Result<u64, ElfError> {
        if let Some(at) = self.hash {
            let table = source.read("the symbol hash table", at, 8, 8)?;
            return Ok(u32_at(&table, 4).map_or(0, u64::from));
        }
        match self.gnu_hash {
            Some(at) => gnu_hash_count(source, at),
            None => Ok(0),
        }
    }
}

/// The highest symbol of all buckets, and from there to the end of its chain.
fn gnu_hash_count(source: &Source, at: u64) -> Result<u64, ElfError> {
    const WHAT: &str = "the symbol hash table";
    let head = source.read(WHAT, at, 16, 16)?;
    let field = |index: usize| u32_at(&head, index * 4).map_or(0, u64::from);
    let (buckets, first, blooms) = (field(0), field(1), field(2));
    let buckets_at = at + 16 + blooms * 8;
    let table = source.read(WHAT, buckets_at, buckets * 4, MOST_CHAINED * 4)?;
    let highest = table
        .chunks_exact(4)
        .filter_map(|b| u32_at(b, 0))
        .max()
        .map_or(0, u64::from);
    if highest < first {
        return Ok(first);
    }
    let chains_at = buckets_at + buckets * 4;
    for index in highest - first..MOST_CHAINED {
        let link = source.read(WHAT, chains_at + index * 4, 4, 4)?;
        if u32_at(&link, 0).is_none_or(|hash| hash & 1 == 1) {
            return Ok(first + index + 1);
        }
    }
    Err(ElfError::Damaged("a chain of the symbol hash table has no end"))
}

fn name_at(source: &Source, offset: u64) -> Result<Option<String>, ElfError> {
    let bytes = source.read_up_to(offset, NAME_LIMIT)?;
    Ok(until_nul(&bytes, 0).filter(|name| !name.is_empty()).map(printable))
}
