//! Data that a file names, and where a process that maps the file has it.

use std::ops::ControlFlow;

use object::elf;

use super::symbol::SymbolTable;
use super::{ElfError, ElfFile};

/// What a mapping's offset is a multiple of.
const PAGE: u64 = 4096;

impl ElfFile {
    /// The address, as linked, of the variable that a symbol table names.
    ///
    /// # Errors
    /// A symbol table is cut off or larger than its limit.
    pub fn variable(&self, wanted: &str) -> Result<Option<u64>, ElfError> {
        let mut found = None;
        for table in [SymbolTable::Dynamic, SymbolTable::Local] {
            let Some(place) = self.table(table)? else {
                continue;
            };
            self.named_records(&place, &mut |record, name| {
                let is_variable = record.info & 0xf == elf::STT_OBJECT && record.section != elf::SHN_UNDEF;
                if is_variable && name == wanted.as_bytes() {
                    found = Some(record.value);
                    return ControlFlow::Break(());
                }
                ControlFlow::Continue(())
            })?;
            if found.is_some() {
                break;
            }
        }
        Ok(found)
    }

    /// The address, as linked, at which a section of this name is loaded.
    pub fn section_address(&self, name: &str) -> Option<u64> {
        let section = self.layout.sections.iter().find(|section| section.name == name);
        section.map(|section| section.vaddr).filter(|address| *address != 0)
    }

    /// What to add to an address as linked, in a process that maps the bytes from `offset` on at `start`.
    pub(crate) fn bias(&self, start: u64, offset: u64) -> Option<u64> {
        let page = |number: u64| number & !(PAGE - 1);
        let mut loaded = self.layout.segments.iter().filter(|s| s.kind == elf::PT_LOAD);
        let segment = loaded.find(|s| page(s.offset) == offset)?;
        Some(start.wrapping_sub(page(segment.vaddr)))
    }
}
