//! Functions that symbol tables name, at file offsets.

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;

use object::elf;

use super::bytes::{printable, u16_at, u32_at, u64_at};
use super::extent::Extent;
use super::{ElfError, ElfFile};

/// Size of the on-disk record, in bytes.
const RECORD: usize = 24;
/// Eleven million symbols; Chromium with all its symbols has two.
const TABLE_LIMIT: u64 = 256 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Binding {
    Local,
    Global,
    Weak,
}

/// Where a symbol was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SymbolTable {
    /// `.dynsym`: what other files can call.
    Dynamic,
    /// `.symtab`, which stripping removes.
    Local,
}

/// A function that has code in this file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// Without any `@version`. Bytes that are not printable UTF-8 appear as `\xNN`.
    pub name: String,
    /// Where its first instruction is in the file, in bytes.
    pub file_offset: u64,
    /// In bytes; 0 where the file does not say.
    pub size: u64,
    pub binding: Binding,
    pub table: SymbolTable,
}

pub(super) struct Table {
    pub(super) symbols: u64,
    pub(super) size: u64,
    pub(super) names: u64,
    pub(super) names_size: u64,
}

pub(super) struct Record {
    pub(super) name: u32,
    pub(super) info: u8,
    pub(super) section: u16,
    pub(super) value: u64,
    pub(super) size: u64,
}

impl ElfFile {
    /// Every function of `.dynsym` and `.symtab` that has code in this file. A function which both tables name appears
    /// once, as of `.dynsym`; aliases of one offset all appear, see [`by_offset`].
    ///
    /// # Errors
    /// A symbol table is cut off or larger than its limit.
    pub fn symbols(&self) -> Result<Vec<Symbol>, ElfError> {
        self.symbols_where(&|_| true)
    }

    /// As [`ElfFile::symbols`], keeping only the names that `keep` accepts.
    ///
    /// # Errors
    /// A symbol table is cut off or larger than its limit.
    pub fn symbols_where(&self, keep: &dyn Fn(&str) -> bool) -> Result<Vec<Symbol>, ElfError> {
        let mut found = self.symbols_of(SymbolTable::Dynamic, keep)?;
        let seen: HashSet<(u64, String)> = found.iter().map(|s| (s.file_offset, s.name.clone())).collect();
        let local = self.symbols_of(SymbolTable::Local, keep)?;
        found.extend(
            local
                .into_iter()
                .filter(|s| !seen.contains(&(s.file_offset, s.name.clone()))),
        );
        Ok(found)
    }

    /// The functions of one table that `keep` accepts.
    pub(super) fn symbols_of(&self, table: SymbolTable, keep: &dyn Fn(&str) -> bool) -> Result<Vec<Symbol>, ElfError> {
        let mut found = Vec::new();
        let Some(place) = self.table(table)? else {
            return Ok(found);
        };
        self.named_records(&place, &mut |record, name| {
            let Some(file_offset) = self.function_offset(record) else {
                return ControlFlow::Continue(());
            };
            let name = name.split(|&b| b == b'@').next().unwrap_or_default();
            let name = printable(name);
            if !name.is_empty() && keep(&name) {
                let binding = binding(record.info);
                found.push(Symbol {
                    name,
                    file_offset,
                    size: record.size,
                    binding,
                    table,
                });
            }
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }

    /// Every function's place, sorted by offset; kept after the first call.
    pub(super) fn extents(&self) -> Result<&[Extent], ElfError> {
        if let Some(known) = self.extents.get() {
            return Ok(known);
        }
        let mut found = Vec::new();
        for table in [SymbolTable::Dynamic, SymbolTable::Local] {
            let Some(place) = self.table(table)? else {
                continue;
            };
            self.records(&place, &mut |record| {
                found.extend(self.function_offset(record).map(|offset| Extent {
                    offset,
                    size: record.size,
                }));
                ControlFlow::Continue(())
            })?;
        }
        found.sort_unstable();
        found.dedup();
        Ok(self.extents.get_or_init(|| found))
    }

    pub(super) fn function_offset(&self, record: &Record) -> Option<u64> {
        // An indirect function's code is its resolver, which runs once and is no call of the function.
        if record.info & 0xf != elf::STT_FUNC || record.section == elf::SHN_UNDEF {
            return None;
        }
        let offset = self.layout.offset_of(record.value)?;
        self.layout.code_at(offset).map(|_| offset)
    }

    pub(super) fn table(&self, table: SymbolTable) -> Result<Option<Table>, ElfError> {
        let kind = match table {
            SymbolTable::Dynamic => elf::SHT_DYNSYM,
            SymbolTable::Local => elf::SHT_SYMTAB,
        };
        if let Some(section) = self.layout.section(kind) {
            let names = self
                .layout
                .sections
                .get(section.link as usize)
                .filter(|s| s.kind == elf::SHT_STRTAB);
            let names = names.ok_or(ElfError::Damaged("a symbol table without its names"))?;
            return Ok(Some(Table {
                symbols: section.offset,
                size: section.size,
                names: names.offset,
                names_size: names.size,
            }));
        }
        let (SymbolTable::Dynamic, Some(symbols), Some(names)) = (table, self.dynamic.symbols, self.dynamic.strings)
        else {
            return Ok(None);
        };
        let size = self.dynamic.symbol_count(&self.source)?.saturating_mul(RECORD as u64);
        Ok(Some(Table {
            symbols,
            size,
            names,
            names_size: self.dynamic.strings_size,
        }))
    }

    pub(super) fn records(
        &self,
        table: &Table,
        visit: &mut dyn FnMut(&Record) -> ControlFlow<()>,
    ) -> Result<(), ElfError> {
        const WHAT: &str = "a symbol table";
        if table.size > TABLE_LIMIT {
            return Err(ElfError::TooLarge {
                what: WHAT,
                size: table.size,
                limit: TABLE_LIMIT,
            });
        }
        self.source.check(WHAT, table.symbols, table.size)?;
        let end = table.symbols + table.size;
        let mut next = table.symbols;
        self.source
            .chunks(WHAT, table.symbols..end, RECORD - 1, &mut |at, bytes| {
                let skip = usize::try_from(next - at).unwrap_or_default();
                for record in bytes
                    .get(skip..)
                    .unwrap_or_default()
                    .chunks_exact(RECORD)
                    .filter_map(record)
                {
                    next += RECORD as u64;
                    visit(&record)?;
                }
                ControlFlow::Continue(())
            })
    }
}

/// Aliases side by side: the symbols of each file offset, in the order given.
pub fn by_offset(symbols: &[Symbol]) -> BTreeMap<u64, Vec<&Symbol>> {
    let mut groups: BTreeMap<u64, Vec<&Symbol>> = BTreeMap::new();
    for symbol in symbols {
        groups.entry(symbol.file_offset).or_default().push(symbol);
    }
    groups
}

fn record(bytes: &[u8]) -> Option<Record> {
    Some(Record {
        name: u32_at(bytes, 0)?,
        info: *bytes.get(4)?,
        section: u16_at(bytes, 6)?,
        value: u64_at(bytes, 8)?,
        size: u64_at(bytes, 16)?,
    })
}

fn binding(info: u8) -> Binding {
    match info >> 4 {
        elf::STB_LOCAL => Binding::Local,
        elf::STB_WEAK => Binding::Weak,
        _ => Binding::Global,
    }
}
